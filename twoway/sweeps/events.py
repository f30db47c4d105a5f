"""Finding the events of a run that a metric may depend on: losses, marks and time-outs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from capture_analysis.columns import IntArray, Mark, Packets, merge

from twoway.contract.network import START_NS
from twoway.description.interventions import loses_at_random, may_keep
from twoway.description.point import Point
from twoway.measure.analysis import Analysis
from twoway.measure.connection_view import ConnectionView
from twoway.measure.queue_view import QueueView
from twoway.report.comparing import relative

# A silence before a segment that is sent again, from which on it counts as a time-out.
_TIMEOUT_NS = 200_000_000
# The most losses of a time-out that are averted one by one in one run.
_MOST_TOGETHER = 90
# Both bits of ECN in a packet's marks: congestion experienced.
_CE = Mark.ECT_0 | Mark.ECT_1
# What happens to a packet, what that is called, and the intervention without it.
_VERBS = {"dropped": ("drop", "keep"), "lost": ("loss", "keep"), "marked": ("mark", "unmark")}


@dataclass(frozen=True)
class Event:
    """An event of a run, and the metric without it.

    Attributes:
        time_s: its time after the traffic's start.
        last_s: the time of its last packet.
        queue: the queue, or the queue before the link.
        packets: number of its packets.
        flow: the connection whose data they are; None for several, ACKs and datagrams.
        segment: the segment's number, from 1; None if it is not one of data.
        burst: number of the burst that it belongs to, or is.
        place: its number in its burst, from 1; 0 for several packets.
        interventions: the run without it, as in an experiment's file.
        verb: what happens to its packets: dropped by the queue, lost behind it, or marked.
        timeout_s: the time of the time-out in which it ends; None without one.
        value: the metric without it; None if it is undefined, or if there is no such run.
        effect: by how much that is more than the run's own.
        problem: why there is no such run; empty otherwise.
    """

    time_s: float
    last_s: float
    queue: str
    packets: int
    flow: str | None
    segment: int | None
    burst: int
    place: int
    interventions: tuple[dict[str, Any], ...]
    verb: str = "dropped"
    timeout_s: float | None = None
    value: float | None = None
    effect: float | None = None
    problem: str = ""

    @property
    def text(self) -> str:
        """The event in words, without its time."""
        of = f" of {self.flow}" if self.flow else ""
        what = f"segment {self.segment}{of}" if of else "a packet"
        if self.packets > 1:
            what = f"{self.packets} packets{of}"
        ends = f", which ends in a time-out at {self.timeout_s:.3f} s" if self.timeout_s else ""
        return f"{self.queue} {self.verb} {what}{ends}"

    @property
    def subject(self) -> str:
        """The place of the event: the queue, or the link behind it."""
        return "link" if self.verb == "lost" else "queue"

    @property
    def kind(self) -> str:
        """The fate of a packet, as a noun."""
        return _VERBS[self.verb][0]

    @property
    def noun(self) -> str:
        """The event's packets as a noun, after `Without`."""
        return "these" if self.packets > 1 else f"that {self.kind}"

    @property
    def when(self) -> str:
        """The event's time in words."""
        first, last = (f"{each:.3f}" for each in (self.time_s, self.last_s))
        return f"{first} s" if first == last else f"{first} to {last} s"


class _Happened(NamedTuple):
    """Packets of one queue with one fate."""

    queue: str
    verb: str
    packets: Packets


def events_of(analysis: Analysis, point: Point) -> tuple[list[Event], int]:
    """List the events of a run; count the losses that cannot be averted."""
    found: list[Event] = []
    kinds, elsewhere = _happened(analysis, point)
    for happened in kinds:
        if not len(happened.packets):
            continue
        singles = _singles(analysis, happened)
        gaps = np.diff(happened.packets.time_ns) > analysis.longest_round_trip_ns
        for rows in np.split(np.arange(len(singles)), np.flatnonzero(gaps) + 1):
            found += _burst([singles[row] for row in rows.tolist()], len(found))
    return _with_timeouts(analysis, found), elsewhere


def _happened(analysis: Analysis, point: Point) -> tuple[list[_Happened], int]:
    """List losses and marks that can be averted; count the other losses."""
    found, elsewhere, run = [], 0, analysis.run
    directions, ecn = point.profile.directions, point.experiment.has_ecn
    for name, view in analysis.queues.items():
        passed, link = view.passed, directions.get(view.queue.link or "")
        refused = run.elements(view.queue).refuse(
            passed.packets.time_ns, passed.packets.frame_bytes
        )
        in_time = passed.packets.time_ns < run.stop_ns
        dropped = passed.packets.where(passed.dropped & in_time & ~refused).widen()
        hops = analysis.follow_behind(view.queue) if run.loses_on_links else ()
        sent = [travel.sent.where(travel.lost) for _, travel in hops]
        lost = merge(sent).widen() if sent else dropped.where(slice(0))
        lost = lost.where(lost.time_ns < run.stop_ns)
        for verb, packets, averted in (
            ("dropped", dropped, link is not None and may_keep(link, ecn=ecn)),
            ("lost", lost, link is not None and loses_at_random(link) and not ecn),
        ):
            if averted:
                found.append(_Happened(name, verb, packets))
            else:
                elsewhere += len(packets)
        if ecn:
            found.append(_Happened(name, "marked", _marked(analysis, view)))
    return found, elsewhere


def _marked(analysis: Analysis, view: QueueView) -> Packets:
    """Select the packets that a queue marked."""
    run, entering = analysis.run, view.passed.packets

    def with_ce(interface: str) -> IntArray:
        whole = run.whole_capture(interface)
        return whole.where(whole.marks & _CE == _CE).key()

    before = np.concatenate([with_ce(each) for each in view.queue.taps_in])
    after = with_ce(view.queue.interface)
    marked = np.isin(entering.key(), after) & ~np.isin(entering.key(), before)
    return entering.where(marked & (entering.time_ns < run.stop_ns)).widen()


def _singles(analysis: Analysis, happened: _Happened) -> list[Event]:
    """Describe each packet of one fate at one queue."""
    packets, (queue, verb, _) = happened.packets, happened
    owners: dict[int, str] = {}
    for name, view in analysis.connections.items():
        owners |= dict.fromkeys(analysis.data_rows(packets, view).tolist(), name)
    sequences, _ = relative(packets, analysis.run.flows)
    found = []
    for row, time_ns in enumerate(packets.time_ns.tolist()):
        time_s = (time_ns - START_NS) / 1e9
        asked: dict[str, Any] = {"queue": queue, "from_s": time_s}
        segment, owner = None, owners.get(row)
        if owner:
            asked |= {"flow": owner, "sequence": int(sequences[row])}
            largest = analysis.connections[owner].sent.payload_bytes.max()
            segment = int(sequences[row] // largest) + 1
        elif at_once := _before_at_once(analysis, happened, row):
            asked["packet"] = at_once + 1
        without = ({_VERBS[verb][1]: asked},)
        found.append(Event(time_s, time_s, queue, 1, owner, segment, 0, 0, without, verb))
    return found


def _before_at_once(analysis: Analysis, happened: _Happened, row: int) -> int:
    """Count the packets that came to the same queue at the same time, before one that it drops."""
    came = analysis.queues[happened.queue].passed.packets
    time_ns = happened.packets.time_ns[row]
    first, end = np.searchsorted(came.time_ns, (time_ns, time_ns + 1))
    same = came.key()[first:end] == happened.packets.key()[row]
    return int(np.argmax(same)) if len(same) else 0


def _burst(singles: list[Event], number: int) -> Iterator[Event]:
    """List the burst itself, if it is more than one packet, and each event with its number."""
    if len(singles) > 1:
        first, last = singles[0], singles[-1]
        span = {"from_s": first.time_s, "until_s": round(last.time_s + 1e-9, 9)}
        action = _VERBS[first.verb][1]
        yield _several(singles, number, ({action: {"queue": first.queue, **span}},))
    for place, each in enumerate(singles, 1):
        yield replace(each, burst=number, place=place)


def _several(singles: Sequence[Event], number: int, without: tuple[dict[str, Any], ...]) -> Event:
    first, flows = singles[0], {each.flow for each in singles}
    return replace(
        first,
        last_s=singles[-1].time_s,
        packets=len(singles),
        flow=first.flow if len(flows) == 1 else None,
        segment=None,
        burst=number,
        place=0,
        interventions=without,
    )


def _with_timeouts(analysis: Analysis, found: list[Event]) -> list[Event]:
    """Add the losses that end in each time-out: to the event that they are, or as another."""
    singles = [each for each in found if each.place and each.verb != "marked"]
    for name, view in analysis.connections.items():
        for time_s, sequence in _timeouts(analysis, view):
            mine = [each for each in singles if each.flow == name and each.time_s < time_s]
            of = [e.time_s for e in mine if _sequence(e) == sequence]
            members = sorted((e for e in mine if of and e.time_s >= of[-1]), key=lambda e: e.time_s)
            if not members:
                continue
            burst = {each.burst for each in members}
            is_whole = [
                at
                for at, each in enumerate(found)
                if {each.burst} == burst
                and each.packets == len(members)
                and (each.place == 0 or each.time_s == members[0].time_s)
            ]
            if is_whole:
                found[is_whole[0]] = replace(found[is_whole[0]], timeout_s=time_s)
            elif len(members) <= _MOST_TOGETHER:
                without = tuple(each for e in members for each in e.interventions)
                event = _several(members, len(found), without)
                found.append(replace(event, timeout_s=time_s))
    return found


def _sequence(event: Event) -> int:
    return int(event.interventions[0]["keep"]["sequence"])


def _timeouts(analysis: Analysis, view: ConnectionView) -> Iterator[tuple[float, int]]:
    """List the time-outs of a connection: times, and the numbers of the segments sent again."""
    sent = view.sent.data()
    if not len(sent):
        return
    sequences, _ = relative(sent, analysis.run.flows)
    ends = np.maximum.accumulate(sequences + sent.payload_bytes)
    again = np.append(False, sequences[1:] < ends[:-1])
    silent = np.diff(sent.time_ns, prepend=sent.time_ns[:1]) >= _TIMEOUT_NS
    for row in np.flatnonzero(again & silent).tolist():
        yield analysis.run.seconds(int(sent.time_ns[row])), int(sequences[row])
