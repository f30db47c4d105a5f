"""Finding the events of a run that a metric may depend on.

Events are losses, marks, time-outs, pauses of applications, and receivers' windows that are shut.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from capture_analysis.columns import IntArray, Mark, Packets, merge

from twoway.contract.model import LATEST_NS
from twoway.contract.network import CHANGE_NS, START_NS, Connection, DatagramFlow, whole_ns
from twoway.description.interventions import (
    Intervention,
    drops_when_full_alone,
    loses_at_random,
    may_keep,
)
from twoway.description.point import Point
from twoway.measure.analysis import Analysis
from twoway.measure.connection_view import ConnectionView
from twoway.measure.queue_view import QueueView
from twoway.measure.run_folder import Run
from twoway.report.comparing import relative

# A silence before a segment that is sent again, from which on it counts as a time-out.
_TIMEOUT_NS = 200_000_000
# The most losses of a time-out that are averted one by one in one run.
_MOST_TOGETHER = 90
# Both bits of ECN in a packet's marks: congestion experienced.
_CE = Mark.ECT_0 | Mark.ECT_1
# What happens to a packet, what that is called, and the intervention without it.
_VERBS = {
    "dropped": ("drop", "keep"),
    "lost": ("loss", "keep"),
    "marked": ("mark", "unmark"),
    "pauses": ("pause", "resume"),
    "has a shut window": ("shut window", "read"),
    "starts": ("flow", "start"),
}
# A silence of an application that counts as a pause, s.
PAUSE_S = 0.2
_RESET = 4


@dataclass(frozen=True)
class Event:
    """An event of a run, and the metric without it.

    Attributes:
        time_s: its time after the traffic's start.
        last_s: the time of its last packet.
        queue: the queue, or the queue before the link; empty if it happens to no packet.
        packets: number of its packets.
        flow: the connection whose data they are; None for several, ACKs and datagrams.
        segment: the segment's number, from 1; None if it is not one of data.
        burst: number of the burst that it belongs to, or is.
        place: its number in its burst, from 1; 0 for several packets.
        interventions: the run without it, as in an experiment's file.
        verb: what happens to its packets: dropped by the queue, lost behind it, or marked; or what
            its flow does: pauses, or has a shut window.
        lasts_s: the time that this takes.
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
    lasts_s: float | None = None
    timeout_s: float | None = None
    value: float | None = None
    effect: float | None = None
    problem: str = ""

    @property
    def text(self) -> str:
        """The event in words, without its time."""
        if not self.queue:
            lasts = f" for {self.lasts_s:.3f} s" if self.lasts_s else ""
            return f"{self.flow} {self.verb}{lasts}"
        of = f" of {self.flow}" if self.flow else ""
        what = f"segment {self.segment}{of}" if of else "a packet"
        if self.packets > 1:
            what = f"{self.packets} packets{of}"
        ends = f", which ends in a time-out at {self.timeout_s:.3f} s" if self.timeout_s else ""
        return f"{self.queue} {self.verb} {what}{ends}"

    @property
    def subject(self) -> str:
        """The place of the event: the flow, the queue, or the link behind it."""
        if not self.queue:
            return "flow"
        return "link" if self.verb == "lost" else "queue"

    @property
    def kind(self) -> str:
        """The fate of a packet, or what its flow does, as a noun."""
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
    """Packets of one queue with one fate.

    Attributes:
        together: an intervention on all packets of a time changes the fate of these alone.
    """

    queue: str
    verb: str
    packets: Packets
    together: bool = True


def events_of(
    analysis: Analysis, point: Point, pause_s: float = PAUSE_S
) -> tuple[list[Event], int]:
    """List the events of a run; count the losses that cannot be averted."""
    found: list[Event] = []
    kinds, elsewhere = _happened(analysis, point)
    for happened in kinds:
        if not len(happened.packets):
            continue
        singles = _singles(analysis, happened)
        gaps = np.diff(happened.packets.time_ns) > analysis.longest_round_trip_ns
        for rows in np.split(np.arange(len(singles)), np.flatnonzero(gaps) + 1):
            of = [singles[row] for row in rows.tolist()]
            found += _burst(of, len(found), together=happened.together)
    found = _with_timeouts(analysis, found)
    found += [
        replace(e, burst=n) for n, e in enumerate(_of_programs(analysis, pause_s), len(found))
    ]
    return found, elsewhere


def starts_of(point: Point, metric: str) -> Iterator[Event]:
    """List the starts of the flows that a metric does not name; without it a flow never sends."""
    senders: tuple[Connection | DatagramFlow, ...] = (*point.connections, *point.datagrams)
    for number, each in enumerate(senders):
        if each.name not in metric.split("."):
            end_s = min(point.experiment.duration_s, _seconds(each.stop_ns or LATEST_NS))
            asked = {"flow": each.name, "at_s": end_s - CHANGE_NS / 1e9}
            start_s = _seconds(each.start_ns)
            of = (start_s, start_s, "", 1, each.name, None, number, 1)
            yield Event(*of, ({"start": asked},), "starts")


def _seconds(time_ns: int) -> float:
    return (time_ns - START_NS) / 1e9


def _happened(analysis: Analysis, point: Point) -> tuple[list[_Happened], int]:
    """List losses and marks that can be averted; count the other losses."""
    found, elsewhere, run = [], 0, analysis.run
    directions, ecn = point.profile.directions, point.experiment.has_ecn
    for name, view in analysis.queues.items():
        passed, link = view.passed, directions.get(view.queue.link or "")
        refused = run.elements(view.queue).refuse(
            passed.packets.time_ns, passed.packets.frame_bytes
        )
        gone = passed.dropped & (passed.packets.time_ns < run.stop_ns)
        # A manager marks what has ECN, so it drops that only when its queue is full.
        by_law = link is not None and ecn and not drops_when_full_alone(link)
        if by_law:
            knows = (Mark.ECT_0, Mark.ECT_1, _CE)
            refused |= np.isin(passed.packets.key(), _keys(run, view.queue.taps_in, knows))
        elsewhere += int((gone & refused).sum())
        dropped = passed.packets.where(gone & ~refused).widen()
        hops = analysis.follow_behind(view.queue) if run.loses_on_links else ()
        sent = [travel.sent.where(travel.lost) for _, travel in hops]
        lost = merge(sent).widen() if sent else dropped.where(slice(0))
        lost = lost.where(lost.time_ns < run.stop_ns)
        for verb, packets, averted in (
            ("dropped", dropped, link is not None and may_keep(link, ecn=ecn)),
            ("lost", lost, link is not None and loses_at_random(link) and not ecn),
        ):
            if averted:
                found.append(_Happened(name, verb, packets, together=not by_law))
            else:
                elsewhere += len(packets)
        if ecn:
            found.append(_Happened(name, "marked", _marked(analysis, view)))
    return found, elsewhere


def _marked(analysis: Analysis, view: QueueView) -> Packets:
    """Select the packets that a queue marked."""
    run, entering = analysis.run, view.passed.packets
    before = _keys(run, view.queue.taps_in, (_CE,))
    after = _keys(run, (view.queue.interface,), (_CE,))
    marked = np.isin(entering.key(), after) & ~np.isin(entering.key(), before)
    return entering.where(marked & (entering.time_ns < run.stop_ns)).widen()


def _keys(run: Run, interfaces: Iterable[str], ecn: Sequence[int]) -> IntArray:
    """List the packets at interfaces whose bits of ECN are among some, as keys."""
    captures = [run.whole_capture(each) for each in interfaces]
    return np.concatenate([each.where(np.isin(each.marks & _CE, ecn)).key() for each in captures])


def _singles(analysis: Analysis, happened: _Happened) -> list[Event]:
    """Describe each packet of one fate at one queue."""
    queue, verb, packets, _ = happened
    owners: dict[int, str] = {}
    for name, view in analysis.connections.items():
        owners |= dict.fromkeys(analysis.data_rows(packets, view).tolist(), name)
    sequences, _ = relative(packets, analysis.run.flows)
    found = []
    for row, time_ns in enumerate(packets.time_ns.tolist()):
        time_s = _seconds(time_ns)
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


def still_dropped(analysis: Analysis, asked: Sequence[Intervention]) -> int:
    """Count the packets that queues drop although they were to keep all of that time."""
    found = 0
    for keep in (each.keep for each in asked if each.keep and each.keep.until_s):
        view = analysis.queues[keep.queue or ""]
        times_ns = view.passed.packets.time_ns
        refused = analysis.run.elements(view.queue).refuse(
            times_ns, view.passed.packets.frame_bytes
        )
        begin_ns, end_ns = (START_NS + whole_ns(s) for s in (keep.from_s, keep.until_s or 0))
        then = (times_ns >= begin_ns) & (times_ns < end_ns)
        found += int((view.passed.dropped & ~refused & then).sum())
    return found


def _burst(singles: list[Event], number: int, *, together: bool) -> Iterator[Event]:
    """List the burst itself, if it is more than one packet, and each event with its number."""
    if together and len(singles) > 1:
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
            sequences = ((e.time_s, e.interventions[0]["keep"]["sequence"]) for e in mine)
            of = [lost_s for lost_s, its in sequences if its == sequence]
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


def _of_programs(analysis: Analysis, pause_s: float) -> Iterator[Event]:
    """List the pauses of senders, and the times of receivers with a shut window."""
    run = analysis.run
    nodes = {a: i.node for i in run.manifest.interfaces for a in (i.address, i.address6)}
    own = {((c.source, c.source_port), (c.destination, c.port)): c for c in run.connections}
    for interface in run.manifest.interfaces:
        if interface.node not in run.manifest.nodes.hosts:
            continue
        for here, there, sent, came in run.whole_connections(interface.name):
            if nodes.get(here[0]) != interface.node:
                continue
            for pair, spans, verb in (
                ((here, there), _pauses(run, sent, came, pause_s), "pauses"),
                ((there, here), _shut(run, sent, came), "has a shut window"),
            ):
                named: dict[str, Any] = {"ports": [port for _, port in pair]}
                name = " > ".join(f"{nodes.get(a, a)}:{port}" for a, port in pair)
                start_ns = 0
                if connection := own.get(pair):
                    name, start_ns = connection.name, connection.start_ns
                    named = {"flow": name}
                for begin_ns, end_ns in spans:
                    at_s, end_s = run.seconds(begin_ns), run.seconds(end_ns)
                    named |= {"at_s": at_s} | ({"until_s": end_s} if verb == "pauses" else {})
                    without = ({_VERBS[verb][1]: {**named}},)
                    if start_ns <= begin_ns < run.stop_ns:
                        lasts_s = end_s - at_s
                        yield Event(
                            at_s, at_s, "", 1, name, None, 0, 1, without, verb, lasts_s=lasts_s
                        )


def _pauses(run: Run, packets: Packets, came: Packets, pause_s: float) -> Iterator[tuple[int, int]]:
    """List the times at which a sender has sent all, and all has arrived, and it sends no more."""
    sent = packets.data()
    if not len(sent) or not len(came):
        return
    sequences, _ = relative(sent, run.flows)
    ends = np.maximum.accumulate(sequences + sent.payload_bytes)
    acked = np.maximum.accumulate(relative(came, run.flows)[1])
    before = np.searchsorted(came.time_ns, sent.time_ns[1:]) - 1
    whole = (sequences[1:] >= ends[:-1]) & (acked[before] >= ends[:-1]) & (before >= 0)
    silent = (np.diff(sent.time_ns) >= pause_s * 1e9) & (came.window[before] > 0)
    for row in np.flatnonzero(silent & whole).tolist():
        yield int(sent.time_ns[row]), int(sent.time_ns[row + 1])


def _shut(run: Run, acks: Packets, came: Packets) -> Iterator[tuple[int, int]]:
    """List the times at which a receiver lets nothing come, each from the last data on."""
    data_ns = came.data().time_ns
    shut = (acks.window == 0) & (acks.flags & _RESET == 0)
    opens_ns = acks.time_ns[~shut]
    for row in np.flatnonzero(shut & ~np.append(False, shut[:-1])).tolist():
        at_ns = acks.time_ns[row]
        last = int(np.searchsorted(data_ns, at_ns, "right")) - 1
        after = int(np.searchsorted(opens_ns, at_ns, "right"))
        if last >= 0:
            yield int(data_ns[last]), int([*opens_ns, run.stop_ns][after])
