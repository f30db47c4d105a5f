"""One Tahoe connection over several drop-tail queues in a row, packet by packet.

The printed forms are Barakat and Altman's inequality and the resulting fluid cycle. The inequality
ends slow start's burst where the window reaches its threshold. On the wire the packets that follow,
now at the rate of ACKs, still find queues in the nodes, and reach the bottleneck as fast as those
before them. The model, `simulate`, has each packet, so that it says where slow start loses, how
much, and what the repair costs.

Every queue is first in, first out, and ACKs never queue. So a packet's fate is known when it is
sent: it leaves each queue one transmission after the packet before it or after its own arrival,
whichever is later, and is lost if the packet that is `limit` places before it has not left. No
events are needed but ACKs and the timer.

    ACK of new data    w < ssthresh ? w += 1 : one in each floor(w) ACKs adds 1
    loss               ssthresh = max(w / 2, 2), w = 1; found by the timer, which repeats all from
                       the oldest; with `fast_retransmit` also by the third duplicate ACK, which
                       repeats one segment
    timer              Linux's: srtt + max(4 rttvar, 200 ms) after the last ACK of new data, and
                       half a step of the timer wheel, whose phase is not known

The model shares no code with the kernel module, or with `barakat`, which has the printed forms.
Times are whole ns.
"""

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from twoway.contract.network import Connection
from twoway.theory import tables
from twoway.theory.network import Bottleneck, Setup
from twoway.theory.predictions import barakat
from twoway.theory.tahoe.timers import LinuxTimer

NAME = "tahoe_chain"
# A cluster of losses in the sense of `sawtooth_period` ends after a round trip with full queues.
_PRINTED = ("sawtooth_efficiency", "sawtooth_period", "window_peak")
_INFINITE = 1 << 30
_DUPLICATES = 3
# Linux's timer wheel has steps of 64 ms for timers of 0.512 to 4.096 s, and rounds up: on average a
# timer is late by half a step.
_LATENESS_NS = 32_000_000


@dataclass(frozen=True)
class Hop:
    """A queue with its link.

    Attributes:
        service_ns: transmission time of a full segment.
        limit: the most packets in the queue, the one in transmission included.
    """

    service_ns: int
    limit: int


@dataclass
class Course:
    """The events of a connection.

    Attributes:
        arrived_ns: when payload arrived that had not been seen before, sorted.
        lost_ns: when each lost packet was sent, sorted.
        lost_at: in which queue each was lost, by index.
        windows: (time, segments sent and not acknowledged) whenever segments were sent.
        first_loss_window: segments from the oldest unacknowledged to the first one lost.
    """

    arrived_ns: list[int] = field(default_factory=list)
    lost_ns: list[int] = field(default_factory=list)
    lost_at: list[int] = field(default_factory=list)
    windows: list[tuple[int, int]] = field(default_factory=list)
    first_loss_window: int = 0


def simulate(
    hops: Sequence[Hop], back_ns: int, stop_ns: int, *, fast_retransmit: bool = False
) -> Course:
    """Run the connection from its first segment on.

    Args:
        hops: the queues, in order.
        back_ns: time from the end of the last transmission to the ACK's arrival at the sender.
        stop_ns: when to stop; the connection starts at 0.
        fast_retransmit: whether the third duplicate ACK means a loss.
    """
    sender = _Sender(_Pipe(hops, back_ns), fast_retransmit=fast_retransmit)
    sender.run(stop_ns)
    return sender.course


class _Pipe:
    """The queues, the receiver, and the ACKs on their way."""

    def __init__(self, hops: Sequence[Hop], back_ns: int) -> None:
        self.back_ns = back_ns
        self.trip_ns = back_ns + sum(hop.service_ns for hop in hops)
        # The last `limit` departures of a queue: full if the first of them is still to come.
        self._queues = [(hop.service_ns, deque([0] * hop.limit, hop.limit)) for hop in hops]
        self._expected = 0
        self._early: set[int] = set()
        self.acks: deque[tuple[int, int]] = deque()

    def carry(self, segment: int, now: int, course: Course) -> bool:
        """Send a segment; note its loss, or its arrival and its ACK.

        Returns: whether it arrives.
        """
        time = now
        for place, (service_ns, departures) in enumerate(self._queues):
            if departures[0] > time:
                course.lost_ns.append(now)
                course.lost_at.append(place)
                return False
            last = departures[-1]
            time = (max(time, last)) + service_ns
            departures.append(time)
        if segment == self._expected:
            self._expected += 1
            while self._expected in self._early:
                self._early.remove(self._expected)
                self._expected += 1
            course.arrived_ns.append(time)
        elif segment > self._expected and segment not in self._early:
            self._early.add(segment)
            course.arrived_ns.append(time)
        self.acks.append((time + self.back_ns, self._expected))
        return True


class _Sender:
    """Tahoe."""

    def __init__(self, pipe: _Pipe, *, fast_retransmit: bool) -> None:
        self._pipe, self._fast = pipe, fast_retransmit
        self.course = Course()
        self._window, self._share, self._threshold = 1, 0, _INFINITE
        self._oldest = self._next = self._highest = self._repeated = 0
        self._duplicates = 0
        self._timer = LinuxTimer()
        self._timer.sample(pipe.trip_ns // 1000, 0, 0)  # the handshake

    def run(self, stop_ns: int) -> None:
        acks = self._pipe.acks
        self._send(0)
        deadline = self._fires(0)
        while True:
            if acks and acks[0][0] <= deadline:
                now, ack = acks.popleft()
                if now >= stop_ns:
                    return
                if self._acknowledge(ack, now):
                    deadline = self._fires(now)
            else:
                now = deadline
                if now >= stop_ns:
                    return
                self._lose()
                self._duplicates = 0
                self._repeated, self._next = self._highest, self._oldest
                self._timer.timed_out()
                self._send(now)
                deadline = self._fires(now)

    def _acknowledge(self, ack: int, now: int) -> bool:
        """Take an ACK; tell whether the timer starts again."""
        if ack <= self._oldest:
            return self._duplicate(now)
        self._duplicates = 0
        self._timer.note_acked(self._oldest, ack, self._highest, now)
        self._oldest = ack
        self._next = max(self._next, ack)
        if self._window < self._threshold:
            self._window += 1
        else:
            self._share += 1
            if self._share >= self._window:
                self._window, self._share = self._window + 1, 0
        self._send(now)
        return True

    def _duplicate(self, now: int) -> bool:
        if not self._fast or self._oldest == self._highest or self._oldest <= self._repeated:
            return False
        self._duplicates += 1
        if self._duplicates != _DUPLICATES:
            return False
        self._lose()
        self._carry(self._oldest, now)
        return True

    def _lose(self) -> None:
        self._threshold = max(self._window // 2, 2)
        self._window, self._share = 1, 0

    def _send(self, now: int) -> None:
        end = self._oldest + self._window
        while self._next < end:
            self._carry(self._next, now)
            self._next += 1
        self._highest = max(self._highest, self._next)
        self.course.windows.append((now, self._highest - self._oldest))

    def _carry(self, segment: int, now: int) -> None:
        if segment < self._highest:
            self._timer.retransmits(segment)
        else:
            self._timer.note_sent(segment, now)
        if not self._pipe.carry(segment, now, self.course) and not self.course.first_loss_window:
            self.course.first_loss_window = segment + 1 - self._oldest

    def _fires(self, now: int) -> int:
        """Return when a timer that starts now fires."""
        return self._timer.expires(now) + _LATENESS_NS


def predict(setup: Setup) -> dict[str, float]:
    """Predict a flow's cycle, its losses and its largest window.

    Raises: ValueError if there are several flows, or one that is not Tahoe.
    """
    return tables.look_up(NAME, parameters(setup)) or compute(setup)


def printed_values(setup: Setup) -> dict[str, float]:
    """Compute the cycle of the paper's inequality and fluid, and W_B.

    Raises: ValueError as `predict`.
    """
    (flow,) = setup.connections
    fluid = barakat.predict(setup)
    forms = {f"{name}.{flow.name}": fluid[f"{name}.{flow.name}"] for name in _PRINTED}
    return forms | {f"first_loss_window.{flow.name}": barakat.overflow_window(setup, flow)}


def parameters(setup: Setup) -> Mapping[str, Any]:
    """Collect the parameters that the model needs from a setup.

    Raises: ValueError if there are several flows, or one that is not Tahoe.
    """
    if len(setup.connections) != 1:
        raise ValueError(f"is about one flow, got {len(setup.connections)}")
    (flow,) = setup.connections
    if flow.congestion not in ("tahoe", "tahoe_rto"):
        raise ValueError(f"is about tahoe, not {flow.congestion}")
    return {
        "congestion": flow.congestion,
        "hops": [vars(hop) for hop in _hops(setup, flow)],
        "back_ns": _back_ns(setup, flow),
        "watched_s": [setup.warm_up_s, setup.duration_s],
    }


def compute(setup: Setup) -> dict[str, float]:
    """Run the model, and measure it as runs are measured.

    Raises: ValueError as `predict`.
    """
    parameters(setup)
    (flow,) = setup.connections
    hops = _hops(setup, flow)
    course = simulate(
        hops,
        _back_ns(setup, flow),
        round(setup.duration_s * 1e9),
        fast_retransmit=flow.congestion == "tahoe",
    )
    steady_ns = (round(setup.warm_up_s * 1e9), round(setup.duration_s * 1e9))
    gap_ns = _back_ns(setup, flow) + sum(hop.service_ns * hop.limit for hop in hops)
    epochs = _clusters(course.lost_ns, gap_ns)
    values = _cycle(course, epochs, steady_ns, setup.links[flow.direction].data_s)
    steady = [each for each in epochs if steady_ns[0] <= each[0] < steady_ns[1]]
    windows = [window for time, window in course.windows if time >= steady_ns[0]]
    found = {f"{name}.{flow.name}": value for name, value in values.items()}
    arrived = bisect_left(course.arrived_ns, steady_ns[1]) - bisect_left(
        course.arrived_ns, steady_ns[0]
    )
    data_s = setup.links[flow.direction].data_s
    found[f"efficiency.{flow.name}"] = arrived * data_s * 1e9 / (steady_ns[1] - steady_ns[0])
    found[f"window_peak.{flow.name}"] = float(max(windows))
    if epochs:
        found[f"first_loss_window.{flow.name}"] = float(course.first_loss_window)
    if steady:
        found["drops_per_epoch"] = sum(map(len, steady)) / len(steady)
    return found


def _hops(setup: Setup, flow: Connection) -> list[Hop]:
    return [_hop(setup.links[name]) for name in flow.directions]


def _hop(link: Bottleneck) -> Hop:
    """Make a hop whose transmission times are cut to whole ns, as netem's."""
    size_bytes = round(link.data_s * link.rate_bit / 8)
    return Hop(size_bytes * 1_000_000_000 // (int(link.rate_bit) // 8), link.buffer_packets)


def _back_ns(setup: Setup, flow: Connection) -> int:
    there = sum(setup.links[name].delay_ns for name in flow.directions)
    back = [setup.links[name] for name in flow.ack_directions]
    return there + sum(link.delay_ns + round(link.ack_s * 1e9) for link in back)


def _clusters(times_ns: Sequence[int], gap_ns: int) -> list[list[int]]:
    """Group losses into epochs, separated by at least a round trip with full queues."""
    found: list[list[int]] = []
    for time in times_ns:
        if found and time - found[-1][-1] <= gap_ns:
            found[-1].append(time)
        else:
            found.append([time])
    return found


def _cycle(
    course: Course, epochs: list[list[int]], steady_ns: tuple[int, int], data_s: float
) -> dict[str, float]:
    """Measure whole cycles, as metrics/window.py does; nothing without a whole cycle."""
    starts = [each[0] for each in epochs]
    since = [time - before for time, before in zip(starts, [0, *starts], strict=False)]
    steady = [i for i, time in enumerate(starts) if steady_ns[0] <= time < steady_ns[1]]
    longest = max((since[i] for i in steady), default=math.inf)
    ends = [starts[i] for i in steady if 2 * since[i] >= longest]
    if len(ends) < 2:
        return {}
    arrived = bisect_left(course.arrived_ns, ends[-1]) - bisect_left(course.arrived_ns, ends[0])
    seconds = (ends[-1] - ends[0]) / 1e9
    return {
        "sawtooth_period": seconds / (len(ends) - 1),
        "sawtooth_efficiency": arrived * data_s / seconds,
    }
