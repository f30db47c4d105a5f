"""The events of a few directions: of each kind the largest, or the first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from capture_analysis.annotation.notes import LATE, Note, Notebook, Places, say
from capture_analysis.columns import IntArray
from capture_analysis.flow_table import FlowTable
from capture_analysis.overriding import override
from capture_analysis.tracking import Repair

# Events of each kind that are kept for a direction.
KEPT = 3
# Kinds whose largest events are kept; of other kinds the first are kept.
_SIZED = {Note.BUNCH: "the largest", Note.IDLE: "the longest"}
_KINDS = {
    Note.BUNCH: "Bunches of ACKs",
    Note.IDLE: "Times without data",
    Note.QUEUE: "Starts of a queue",
    Note.NO_QUEUE: "Ends of a queue",
}
_AGAIN = {
    Repair.NONE: "Retransmissions",
    Repair.SPURIOUS: "Spurious retransmissions",
    Repair.TIMEOUT: "Retransmissions by time-out",
    Repair.FAST: "Retransmissions because ACKs reported a gap",
    Repair.OTHER: "Other retransmissions",
    LATE: "Holes filled by late data",
}


@dataclass(frozen=True)
class Event:
    """An event of one direction.

    Attributes:
        time_ns: time of its first packet; of an idle time the end.
        words: the event in words, as `annotate` writes them.
        wireshark_filter: the display filter that shows its packets in the original capture.
    """

    time_ns: int
    words: str
    wireshark_filter: str


@dataclass(frozen=True)
class Group:
    """The events of one kind: a title that says which of them are here, and the events."""

    title: str
    events: list[Event]


class Events(Notebook):
    """Keeps events of some directions.

    Args:
        directions: their numbers.
        every_packet: True if all packets of the capture are searched; otherwise the data packets
            before a bunch are not counted, since those of other connections are unknown.
    """

    def __init__(self, directions: Sequence[int], *, every_packet: bool) -> None:
        self._every_packet = every_packet
        self._directions = directions
        # Number of events, and the rows kept, by direction, note and kind of retransmission.
        self._found: dict[tuple[int, Note, int], tuple[int, IntArray]] = {}

    @override
    def add(self, note: Note, places: Places, first: IntArray, second: IntArray | int) -> None:
        if note is Note.BUNCH and not self._every_packet:
            second = 0
        columns = np.broadcast_arrays(places.frame, places.other, places.time_ns, first, second)
        rows = np.stack(columns, axis=1).astype(np.int64)
        for direction in self._directions:
            mine = rows[places.direction == direction]
            if note is Note.AGAIN:
                for why in np.unique(mine[:, 3]).tolist():
                    self._keep((direction, note, why), mine[mine[:, 3] == why])
            elif len(mine):
                self._keep((direction, note, 0), mine)

    def _keep(self, key: tuple[int, Note, int], rows: IntArray) -> None:
        count, kept = self._found.get(key, (0, rows[:0]))
        both = np.concatenate((kept, rows))
        size = both[:, 3] if key[1] in _SIZED else -both[:, 0]
        largest = np.argsort(-size, kind="stable")[:KEPT]
        self._found[key] = (count + len(rows), both[largest])

    def groups(self, direction: int, flows: FlowTable) -> list[Group]:
        """Return a direction's events grouped by kind, in time order."""
        return [
            Group(_title(note, why, count, len(rows)), list(_events(rows, note, direction, flows)))
            for (mine, note, why), (count, rows) in sorted(self._found.items())
            if mine == direction
        ]


def _title(note: Note, why: int, count: int, kept: int) -> str:
    kind = _AGAIN[why] if note is Note.AGAIN else _KINDS[note]
    which = _SIZED.get(note, "the first")
    return f"{kind}: {count:,}" if count == kept else f"{kind}: {which} {kept} of {count:,}"


def _events(rows: IntArray, note: Note, direction: int, flows: FlowTable) -> Iterator[Event]:
    for frame, other, time_ns, first, second in rows[np.argsort(rows[:, 2])].tolist():
        shown = _filter(note, frame, other, direction, flows)
        yield Event(time_ns, say(note, first, second), shown)


def _filter(note: Note, frame: int, other: int, direction: int, flows: FlowTable) -> str:
    """Select a bunch's ACKs, the data on both sides of an idle time, or else one frame."""
    flow, sender = divmod(direction, 2)
    if note is Note.BUNCH:
        acks = f"{flows.wireshark_filter(flow, 1 - sender)} && tcp.len == 0 && tcp.flags.fin == 0"
        return f"{acks} && frame.number in {{{frame}..{other}}}"
    if note is Note.IDLE and other > 0:
        data = f"{flows.wireshark_filter(flow, sender)} && tcp.len > 0"
        return f"{data} && frame.number in {{{other}..{frame}}}"
    return f"frame.number == {frame}"
