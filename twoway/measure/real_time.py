"""What a run on a clock that goes on while the machine works can say, and what it cannot.

In virtual time packets are handled in no time and timers are never late. Elsewhere both take some,
which no theory of the papers knows. How much is measured in each run, by its own captures. Each
metric's error follows from that, and expectation.judge says what such a metric can tell.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from capture_analysis import ack_compression
from capture_analysis.columns import IntArray, Packets

from twoway.measure.analysis import Analysis, ConnectionView, QueueView

# Of many timers few are very late; what one packet in a hundred meets decides no metric.
QUANTILE = 0.99
# In 99 % of cases a random walk stays within so many standard deviations of its last point. By the
# reflection principle at most twice as many leave that range as end outside it, and 0.5 % of the
# normal distribution are outside 2.81.
WALK_DEVIATIONS = 2.81
# Metrics of how high a queue is at its highest or lowest, which depends on when bursts meet there.
HEIGHTS = ("queue_peak", "plateau_")


@dataclass(frozen=True)
class ClockError:
    """How far a run's machine is from one that takes no time.

    Args:
        analysis: the run.
    """

    analysis: Analysis

    @cached_property
    def timer_ns(self) -> int:
        """How late 99 % of the observer's samples are complete, the reading included."""
        table = self.analysis.run.table("sockets/queues.csv", "time_ns", "read_ns")
        late = np.array(table["read_ns"], dtype=np.int64) - np.array(table["time_ns"], np.int64)
        return quantile(late)

    @cached_property
    def round_trip_ns(self) -> int:
        """What the machine adds to 99 % of round trips, besides transmission and propagation.

        Captures on both sides show how late segments and acks reach their hosts once they have
        left their queues. As much again is allowed for what no capture shows: hosts that answer,
        and the ways to the queues. Machines whose clocks may differ see each of two ways, twice,
        wrong by as much.
        """
        views = self.analysis.connections.values()
        late_ns = max((2 * _late_ns(self.analysis, view) for view in views), default=0)
        return late_ns + 4 * self.analysis.run.clocks_differ_ns

    @cached_property
    def phase_ns(self) -> int:
        """Bound the error of the phase between two connections, in 99 % of runs.

        TCP never restores that phase, so its errors add up. The first is the difference of how late
        the connections start. Each round trip adds the difference of the machine's parts of theirs:
        over n round trips a random walk of n steps, whose deviation follows from the captures. What
        the machine adds to both alike does not change the phase.
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

    def of(self, metric: str, measured: float, unit: str) -> float:
        """Bound how far the machine alone puts a metric off.

        The error depends on the measurement, not on what is expected: an absurd expectation must
        not make its own error large.

        Args:
            metric: its name, family and all.
            measured: the metric.
            unit: its unit.

        Returns: the error in the metric's unit; infinite where the clock resolves too little.
        """
        family, _, place = metric.partition(".")
        if family.startswith(("compression_factor", "ack_bunch")):
            view = self.analysis.connections[place]
            closer = spacing_error_ns(view) / max(view.ack_service_ns, 1)
            if family.startswith("compression_factor"):
                return measured * closer
            # Acks whose gap is larger than so many transmissions count as two bunches.
            if closer > ack_compression.BUNCH_SERVICE_TIMES - 1:
                return math.inf
        if unit == "s":
            return self.round_trip_ns / 1e9
        if unit in {"packets", "acks", "segments"}:
            moved_ns = self.phase_ns if family.startswith(HEIGHTS) else 0
            packets = (self.round_trip_ns + moved_ns) / self._shortest_ns
            # Who comes first when two are due at once is the machine's choice.
            return packets if family.endswith("_mean") else max(1, math.ceil(packets))
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
    """The least value that 99 % of some numbers do not exceed; 0 of none."""
    return int(np.quantile(values, QUANTILE, method="inverted_cdf")) if len(values) else 0


def departure_error_ns(view: QueueView) -> int:
    """How far 99 % of a queue's departures are from when they should have been."""
    return quantile(np.abs(view.error_ns))


def spacing_errors_ns(view: ConnectionView) -> IntArray:
    """How far acks that leave their bottleneck one after the other are from an ack's transmission.

    Returns: shape (n,), ns, one per pair of which the second waited for the first.
    """
    passed, queue = view.reverse.passed, view.reverse.queue
    rows = passed.departures
    left, packets = passed.left_ns[rows], passed.packets.where(rows)
    is_ack = ~passed.is_data[rows]
    waited = is_ack[1:] & is_ack[:-1] & (packets.time_ns[1:] < left[:-1])
    gaps = np.diff(left) - queue.service_ns(packets.frame_bytes[1:].astype(np.int64))
    return np.asarray(gaps[waited], dtype=np.int64)


def spacing_error_ns(view: ConnectionView) -> int:
    """As `spacing_errors_ns`, of 99 %."""
    return quantile(np.abs(spacing_errors_ns(view)))


def closer_ns(analysis: Analysis, view: ConnectionView) -> int:
    """By how much, at worst, acks arrive closer together than an ack's transmission.

    They leave their queue that much closer, and on the way from there one is later than the next.
    """
    late_ns = _lateness_ns(view.reverse, _acks(analysis, view))
    apart_ns = int(late_ns.max() - late_ns.min()) if len(late_ns) else 0
    return int(-spacing_errors_ns(view).min(initial=0)) + apart_ns


def checks(analysis: Analysis, error: ClockError) -> list[dict[str, Any]]:
    """What the clock's errors are, for the report: measured, and what each must be below."""
    segment_ns = min((v.data_service_ns for v in analysis.connections.values()), default=0)
    rows = [
        _row("timers and samples late in 99 %, ns", error.timer_ns, segment_ns, "a segment takes"),
        _row(
            "machine's part of a round trip in 99 %, ns",
            error.round_trip_ns,
            segment_ns,
            "a segment takes",
        ),
    ]
    if differ_ns := analysis.run.clocks_differ_ns:
        rows.append(
            _row("two machines' clocks may differ by, ns", differ_ns, segment_ns, "a segment takes")
        )
    for name, view in analysis.connections.items():
        off_ns = spacing_error_ns(view)
        rows.append(
            _row(
                f"{name}: ack spacing off in 99 %, ns", off_ns, view.ack_service_ns, "an ack takes"
            )
        )
    return rows


def _row(what: str, value: int, least_ns: int, which: str) -> dict[str, Any]:
    """A measured error; one beyond what it is compared with fails nothing, but is not resolved."""
    resolved = value < least_ns
    bound = f"real time: {which} {least_ns}" + ("" if resolved else ", so it is not resolved")
    return {"check": what, "value": value, "bound": bound, "pass": True, "supported": resolved}


def _links_ns(view: ConnectionView, frame_bytes: int) -> int:
    """A round trip's time on the bottleneck links alone: a frame one way, an ack the other."""
    there, back = view.forward.queue, view.reverse.queue
    return int(there.service_ns(frame_bytes) + there.delay_ns + view.ack_service_ns + back.delay_ns)


def _late_ns(analysis: Analysis, view: ConnectionView) -> int:
    """How much later than their links say 99 % of a connection's segments, and acks, arrive."""
    acks = _acks(analysis, view)
    return sum(
        quantile(_lateness_ns(queue, arrived))
        for queue, arrived in ((view.forward, view.arrived), (view.reverse, acks))
    )


def _start_late_ns(view: ConnectionView) -> int:
    """Measure how late a connection sends its first data; 0 if it sends none."""
    late_ns = view.sent.time_ns[view.sent.payload_bytes > 0] - view.connection.start_ns
    late_ns = late_ns[late_ns >= 0]  # what iperf3 says before it starts
    return int(late_ns.min()) if len(late_ns) else 0


def _spread_ns(analysis: Analysis, view: ConnectionView) -> float:
    """Return the standard deviation of the machine's part of a connection's round trips."""
    found = [
        _lateness_ns(queue, arrived)
        for queue, arrived in ((view.forward, view.arrived), (view.reverse, _acks(analysis, view)))
    ]
    return math.sqrt(sum(float(late_ns.var()) for late_ns in found if len(late_ns)))


def _acks(analysis: Analysis, view: ConnectionView) -> Packets:
    """A connection's acks as they reach its source."""
    return analysis.run.between(view.connection.source_interface, view.connection, forward=False)


def _lateness_ns(queue: QueueView, arrived: Packets) -> IntArray:
    """How much later than the link says packets of a queue arrive; shape (n,), ns."""
    passed = queue.passed
    _, rows, at = np.intersect1d(passed.packets.key(), arrived.key(), return_indices=True)
    rows, at = rows[passed.left_ns[rows] > 0], at[passed.left_ns[rows] > 0]
    late_ns = arrived.time_ns[at] - passed.left_ns[rows] - queue.queue.delay_ns
    return np.asarray(late_ns, dtype=np.int64)
