"""Errors of metrics on a clock that runs while the host works.

In virtual time packets are handled in no time and timers are never late. On a real clock handling
takes time and timers are late, which the papers' theories ignore. The captures of each run show
these errors. The error of each metric follows from them, and contract.judge.judge uses it to decide
whether a statement can be told.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from capture_analysis import ack_compression
from capture_analysis.columns import IntArray, Packets
from capture_analysis.two_captures.matching import partners

from twoway.contract.judge import Verdict
from twoway.contract.metrics import FidelityRow
from twoway.measure.analysis import Analysis
from twoway.measure.connection_view import ConnectionView
from twoway.measure.metric import BY_UNIT, HostError
from twoway.measure.queue_view import QueueView
from twoway.measure.queues import Passage
from twoway.measure.registry import host_errors

# A few of many timers are very late; one packet in a hundred does not decide a metric.
QUANTILE = 0.99
# A random walk stays within this multiple of its last step's standard deviation in 99 % of cases.
# By the reflection principle at most twice as many walks leave that range as end outside it, and
# 0.5 % of the normal distribution are outside 2.81.
WALK_DEVIATIONS = 2.81


@dataclass(frozen=True)
class ClockError:
    """Differences between a run's host and an ideal host, which takes no time."""

    analysis: Analysis

    @cached_property
    def timer_ns(self) -> int:
        """Lateness of 99 % of the observer's samples, with the time of reading, ns."""
        table = self.analysis.queue_samples
        return quantile(table["read_ns"] - table["time_ns"])

    @cached_property
    def round_trip_ns(self) -> int:
        """Time that the host adds to 99 % of round trips, ns.

        Captures on both sides show the lateness of segments and ACKs on arrival, after their
        queues. The same is added again for delays that no capture shows: those of answering hosts,
        and of paths to the queues. In a multi-host run the difference of two clocks enters both
        directions, and is doubled as well.
        """
        views = self.analysis.connections.values()
        late_ns = max((2 * _late_ns(self.analysis, view) for view in views), default=0)
        return late_ns + 4 * self.analysis.run.clocks_differ_ns

    @cached_property
    def phase_ns(self) -> int:
        """Bound of the phase error of two connections, in 99 % of runs, ns.

        TCP never restores that phase, so its errors add up. The first error is the difference of
        the connections' late starts. Each round trip adds the difference of the delays that the
        host adds to each connection: over n round trips this is a random walk of n steps, whose
        deviation follows from the captures. Delays that both connections share do not change the
        phase.
        """
        views = self.analysis.connections.values()
        if len(views) < 2:
            return 0
        late_ns = [_start_late_ns(view) for view in views]
        run = self.analysis.run
        trips = (run.stop_ns - min(v.connection.start_ns for v in views)) / self._base_rtt_ns
        step_ns = math.sqrt(2) * max(_spread_ns(self.analysis, view) for view in views)
        walk_ns = WALK_DEVIATIONS * step_ns * math.sqrt(trips)
        return max(late_ns) - min(late_ns) + math.ceil(walk_ns)

    def bound_error(self, metric: str, measured: float, unit: str) -> float:
        """Bound the error of a metric that is due to the host alone.

        The error depends on the measurement, not on the statement: an absurd claim must not make
        its own error large.

        Args:
            metric: the metric's full name, "FAMILY.PLACE".
            measured: its value.
            unit: its unit.

        Returns: the error in the metric's unit; infinite if the clock does not resolve the metric.
        """
        family, _, place = metric.partition(".")
        declared = host_errors().get(family, BY_UNIT)
        if declared & (HostError.SPACING | HostError.BUNCH):
            view = self.analysis.connections[place]
            closer = spacing_error_ns(view) / max(view.ack_service_ns, 1)
            if HostError.SPACING in declared:
                return measured * closer
            # ACKs with a gap above this number of transmission times count as two bunches.
            if closer > ack_compression.BUNCH_SERVICE_TIMES - 1:
                return math.inf
        if unit == "s":
            # The host lengthens each of the round trips within the measured time.
            trips = max(1.0, abs(measured) * 1e9 / self._base_rtt_ns)
            return trips * self.round_trip_ns / 1e9
        if unit in {"packets", "acks", "segments"}:
            moved_ns = self.phase_ns if HostError.LEVEL in declared else 0
            packets = (self.round_trip_ns + moved_ns) / self._shortest_ns
            # Two packets due at the same time may come in either order, so this is at least 1.
            return packets if HostError.MEAN in declared else max(1, math.ceil(packets))
        return abs(measured) * self.round_trip_ns / self._base_rtt_ns

    @cached_property
    def _shortest_ns(self) -> int:
        views = self.analysis.connections.values()
        return min((view.data_service_ns for view in views if view.data_service_ns), default=1)

    @cached_property
    def _base_rtt_ns(self) -> int:
        views = self.analysis.connections.values()
        return min((_links_ns(view, view.segment_frame_bytes) for view in views), default=1)


def quantile(values: IntArray) -> int:
    """Find the least value that 99 % of some numbers do not exceed.

    Returns: 0 if there are no numbers.
    """
    return int(np.quantile(values, QUANTILE, method="inverted_cdf")) if len(values) else 0


def departure_error_ns(view: QueueView) -> int:
    """Bound the errors of 99 % of a queue's departures, early or late, ns."""
    return quantile(np.abs(view.error_ns))


def spacing_errors_ns(view: ConnectionView) -> IntArray:
    """Compare the spacings of departing ACKs with transmission times.

    Returns: shape (n,), ns, spacing less transmission time of each ACK that waited for the one
        before it.
    """
    passed, queue = view.reverse.passed, view.reverse.queue
    rows = passed.departures
    left, arrived_ns = passed.left_ns[rows], passed.packets.time_ns[rows]
    is_ack = ~passed.is_data[rows]
    waited = is_ack[1:] & is_ack[:-1] & (arrived_ns[1:] < left[:-1])
    gaps = np.diff(left) - queue.service_ns(passed.frame_bytes[rows[1:]])
    return np.asarray(gaps[waited], dtype=np.int64)


def spacing_error_ns(view: ConnectionView) -> int:
    """Bound the size of 99 % of `spacing_errors_ns`."""
    return quantile(np.abs(spacing_errors_ns(view)))


def closer_ns(analysis: Analysis, view: ConnectionView) -> int:
    """Bound by how much ACKs arrive closer than a transmission time, ns.

    The bound adds two errors: ACKs leave their queue too close together, and the path behind the
    queue delays one ACK more than the next.
    """
    late_ns = _acks_late_ns(analysis, view)
    apart_ns = int(late_ns.max() - late_ns.min()) if len(late_ns) else 0
    return int(-spacing_errors_ns(view).min(initial=0)) + apart_ns


def checks(analysis: Analysis, error: ClockError) -> list[FidelityRow]:
    """List the clock's errors for the report, each with its bound."""
    segment_ns = min((v.data_service_ns for v in analysis.connections.values()), default=0)
    rows = [
        _row("timers and samples late in 99 %, ns", error.timer_ns, segment_ns, "a segment takes"),
        _row("host delay in 99 %, ns", error.round_trip_ns, segment_ns, "a segment takes"),
    ]
    if differ_ns := analysis.run.clocks_differ_ns:
        rows.append(
            _row(
                "bound of the difference between two machines' clocks, ns",
                differ_ns,
                segment_ns,
                "a segment takes",
            )
        )
    for name, view in analysis.connections.items():
        off_ns = spacing_error_ns(view)
        rows.append(
            _row(
                f"{name}: ack spacing off in 99 %, ns", off_ns, view.ack_service_ns, "an ack takes"
            )
        )
    return rows


def _row(what: str, value: int, least_ns: int, which: str) -> FidelityRow:
    """Make the row of a measured error.

    An error of `least_ns` or more fails nothing, but the row then says that `which` is not
    resolved.
    """
    resolved = value < least_ns
    bound = f"real time: {which} {least_ns}" + ("" if resolved else ", so it is not resolved")
    verdict = Verdict.PASS if resolved else Verdict.CANNOT_TELL
    return FidelityRow(check=what, value=value, bound=bound, verdict=verdict)


def _links_ns(view: ConnectionView, frame_bytes: int) -> int:
    """Compute the time of a frame and its ACK on the bottlenecks alone."""
    there, back = view.forward.queue, view.reverse.queue
    return int(there.service_ns(frame_bytes) + there.delay_ns + view.ack_service_ns + back.delay_ns)


def _late_ns(analysis: Analysis, view: ConnectionView) -> int:
    """Add up the lateness of segments and of ACKs, 99 % of each, ns."""
    return quantile(_data_late_ns(analysis, view)) + quantile(_acks_late_ns(analysis, view))


def _data_late_ns(analysis: Analysis, view: ConnectionView) -> IntArray:
    """Compute how late segments arrive after their slowest queue, ns."""
    said = view.connection
    return _lateness_ns(_from(analysis, said.direction, said.directions), view.arrived)


def _acks_late_ns(analysis: Analysis, view: ConnectionView) -> IntArray:
    """Compute how late ACKs arrive after their slowest queue, ns."""
    said = view.connection
    queues = _from(analysis, said.ack_direction, said.ack_directions)
    return _lateness_ns(queues, view.acks_in)


def _from(analysis: Analysis, direction: str, directions: Sequence[str]) -> list[QueueView]:
    """List the queues of a path from one direction on."""
    return [analysis.queues[name] for name in directions[directions.index(direction) :]]


def _start_late_ns(view: ConnectionView) -> int:
    """Compute the lateness of a connection's first data; 0 if it sends none."""
    late_ns = view.sent.time_ns[view.sent.payload_bytes > 0] - view.connection.start_ns
    late_ns = late_ns[late_ns >= 0]  # a byte before the start only samples the round trip
    return int(late_ns.min()) if len(late_ns) else 0


def _spread_ns(analysis: Analysis, view: ConnectionView) -> float:
    """Compute the deviation of the host's part of round trips, ns."""
    found = (_data_late_ns(analysis, view), _acks_late_ns(analysis, view))
    return math.sqrt(sum(float(late_ns.var()) for late_ns in found if len(late_ns)))


def _lateness_ns(queues: Sequence[QueueView], arrived: Packets) -> IntArray:
    """Compute the lateness of packets on arrival, after queues and propagation.

    The time in a later queue, which captures show, does not count as the host's.

    Args:
        queues: the queues in the order in which the packets pass them.
        arrived: the packets at the end of the path.

    Returns: shape (n,), ns, of the packets that left all queues.
    """
    first, *later = queues
    keys = arrived.key()
    late_ns = arrived.time_ns - first.queue.delay_ns
    left = np.zeros(len(late_ns), dtype=np.bool_)
    passed = first.passed
    rows, at = _common(passed, keys)
    left[at] = passed.left_ns[rows] > 0
    late_ns[at] -= passed.left_ns[rows]
    for view in later:
        passed = view.passed
        rows, at = _common(passed, keys)
        late_ns[at] -= passed.left_ns[rows] - passed.packets.time_ns[rows] + view.queue.delay_ns
    return np.asarray(late_ns[left], dtype=np.int64)


def _common(passed: Passage, keys: IntArray) -> tuple[IntArray, IntArray]:
    """Find the packets of a queue among some keys: rows of the queue, and places of the keys."""
    places = partners(passed.packets.key(), keys)
    rows = np.flatnonzero(places >= 0)
    return rows, places[rows]
