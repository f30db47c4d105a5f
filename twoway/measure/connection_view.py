"""A connection of a run, as metrics see it."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import TypeVar

import numpy as np
from capture_analysis import ack_compression
from capture_analysis.ack_compression import AckTimes
from capture_analysis.columns import BoolArray, IntArray, Packets
from capture_analysis.step_functions import queue_length

from twoway.contract.network import Connection
from twoway.measure import throughput
from twoway.measure.lanes import Lanes, numbers_of
from twoway.measure.paws_rejections import rejected_as_old
from twoway.measure.queue_view import QueueView
from twoway.measure.queues import Occupancy, occupancy
from twoway.measure.round_trips import RoundTrips, round_trips
from twoway.measure.run_folder import Run

_Found = TypeVar("_Found")
_Compute = Callable[["ConnectionView"], _Found]


def once_per_connection(compute: "_Compute[_Found]") -> "_Compute[_Found]":
    """Compute a property once, unless another connection is measured meanwhile."""

    @wraps(compute)
    def found(view: "ConnectionView") -> _Found:
        known = view.run.values_of(view.connection)
        if compute not in known:
            known[compute] = compute(view)
        value: _Found = known[compute]
        return value

    return found


@dataclass(frozen=True)
class ConnectionView:
    """One connection: data and ACKs at both ends, data in the queue.

    Large columns are selected from the captures on each use.

    Attributes:
        connection: the connection.
        forward: the slowest queue of its data.
        reverse: the slowest queue of its ACKs.
        last_reverse: the last queue of its ACKs, whose rate limits how close they arrive.
        run: the run.
    """

    connection: Connection
    forward: QueueView
    reverse: QueueView
    last_reverse: QueueView
    run: Run = field(repr=False)

    @property
    def sent(self) -> Packets:
        """The packets of the data's sender, in the capture at the sender."""
        return self.run.packets_between(
            self.connection.source_interface, self.connection, forward=True
        )

    @property
    def arrived(self) -> Packets:
        """The packets of the data's sender that reached its sink, in the sink's capture."""
        return self.run.packets_between(
            self.connection.sink_interface, self.connection, forward=True
        )

    @property
    def taken(self) -> Packets:
        """The packets in `arrived` that the sink did not reject for an old time stamp."""
        rejected = self.rejected
        return self.arrived.where(~rejected) if rejected.any() else self.arrived

    @property
    @once_per_connection
    def rejected(self) -> BoolArray:
        """Marks of the packets in `arrived` that the sink rejected for an old time stamp."""
        arrived, sink = self.arrived, self.connection.sink_interface
        if not self.run.counters(self.connection.to).get("PAWSEstab"):
            return np.zeros(len(arrived), dtype=np.bool_)
        whole = self.run.whole_capture(sink)
        lanes = Lanes(numbers_of(whole))
        both = (
            whole.where(self.run.rows(lanes, self.connection, forward=forward))
            for forward in (True, False)
        )
        return rejected_as_old(*both)

    @property
    @once_per_connection
    def segments_in(self) -> Packets:
        """The segments that the data's sink took."""
        return self.taken.data()

    @property
    @once_per_connection
    def brought(self) -> IntArray:
        """Bytes of each of `segments_in` that no earlier one brought."""
        return throughput.new_payload(self.segments_in)

    @property
    @once_per_connection
    def completed_ns(self) -> int | None:
        """Arrival of a transfer's last byte; None if it is unlimited, or not complete."""
        size, data = self.connection.transfer_bytes, self.segments_in
        if size is None:
            return None
        arrived = np.cumsum(np.where(data.time_ns >= self.connection.start_ns, self.brought, 0))
        last = int(np.searchsorted(arrived, size))
        if last == len(data) or data.time_ns[last] >= self.run.stop_ns:
            return None
        return int(data.time_ns[last])

    @property
    @once_per_connection
    def sending_ns(self) -> tuple[int, int]:
        """Start and end of the connection's own sending time in the steady window.

        A transfer sends until its last byte has arrived. A connection that is stopped sends until
        then, or until what it had written has arrived.
        """
        run, stop_ns = self.run, self.connection.stop_ns
        end_ns = self.completed_ns or run.stop_ns
        if stop_ns is not None and self.completed_ns is None:
            new_ns = self.segments_in.time_ns[self.brought > 0]
            end_ns = max(stop_ns, int(new_ns.max(initial=0)))
        return max(run.steady_ns, self.connection.start_ns), min(end_ns, run.stop_ns)

    def rate_bit(self, time_ns: IntArray, size_bytes: IntArray) -> float:
        """Divide what came while the connection sent, its last byte included, by that time, bit/s.

        Args:
            time_ns: shape (n,), times.
            size_bytes: shape (n,), what came at each.

        Returns: NaN if it did not send in the steady window.
        """
        begin_ns, end_ns = self.sending_ns
        if begin_ns >= end_ns:
            return math.nan
        last_ns = min(end_ns, self.run.stop_ns - 1)
        inside = (time_ns >= begin_ns) & (time_ns <= last_ns)
        return int(size_bytes[inside].sum()) * 8e9 / (end_ns - begin_ns)

    @property
    def acks_in(self) -> Packets:
        """The packets of the sink that reached the data's sender, in the sender's capture."""
        return self.run.packets_between(
            self.connection.source_interface, self.connection, forward=False
        )

    @property
    def acks_out(self) -> Packets:
        """The packets of the sink, in the sink's capture."""
        return self.run.packets_between(
            self.connection.sink_interface, self.connection, forward=False
        )

    @property
    def acks(self) -> AckTimes:
        """The ACKs of the steady window at both ends."""
        return self._matched[0]

    @property
    def acks_lost(self) -> int:
        """Number of ACKs of the steady window that never arrived."""
        return self._matched[1]

    @property
    def acks_sent(self) -> int:
        """Number of ACKs sent in the steady window."""
        return len(self.acks.sent_ns) + self.acks_lost

    @property
    @once_per_connection
    def _matched(self) -> tuple[AckTimes, int]:
        return ack_compression.match_acks(self.run.select_steady(self.acks_out), self.acks_in)

    @property
    @once_per_connection
    def round_trips(self) -> RoundTrips:
        """The round trips of its data."""
        return round_trips(self.sent.data(), self.acks_in)

    @property
    def queued(self) -> Occupancy:
        """The connection's data in the bottleneck's queue over time."""
        passed = self.forward.passed
        rows = self.run.rows(self.forward.lanes, self.connection, forward=True)
        return occupancy(passed, rows[passed.is_data[rows]])

    @property
    @once_per_connection
    def window(self) -> Occupancy:
        """The connection's flight over time, in full segments."""
        data, acks = self.sent.data(), self.acks_in
        if not len(data) or not len(acks):
            return Occupancy(data.time_ns[:0], data.time_ns[:0])
        origin, full = int(data.seq[0]), int(data.payload_bytes.max())
        sent = np.maximum.accumulate((data.seq - origin) % (1 << 32) + data.payload_bytes)
        # The ACK of the handshake acknowledges the byte before the first.
        ahead = (acks.ack - origin) % (1 << 32)
        acked = np.maximum.accumulate(np.where(ahead > 1 << 31, 0, ahead))
        # As if data entered a queue that ACKs leave: its length tells how many of each have come.
        time_ns, more = queue_length(data.time_ns, acks.time_ns)
        last = np.flatnonzero(np.append(time_ns[1:] > time_ns[:-1], True))
        segments = (last + 1 + more[last]) // 2
        newest = np.concatenate(([0], sent))[segments]
        oldest = np.concatenate(([0], acked))[last + 1 - segments]
        return Occupancy(time_ns[last], (-(-(newest - oldest) // full)).astype(np.int32))

    @cached_property
    def segment_frame_bytes(self) -> int:
        """Captured size of the largest data segment; 0 if none arrived."""
        return int(self.segments_in.frame_bytes.max(initial=0))

    @cached_property
    def ack_frame_bytes(self) -> int:
        """Captured size of the smallest ACK: ACKs with SACK are larger."""
        return int(self.acks.frame_bytes.min()) if len(self.acks.frame_bytes) else 0

    @property
    def has_one_rate(self) -> bool:
        """True if the rates for data and for arriving ACKs are constant.

        Compression has a bound only then.
        """
        return self.forward.has_one_rate and self.last_reverse.has_one_rate

    @property
    def data_service_ns(self) -> int:
        """Transmission time of a full segment on its bottleneck; 0 if none was sent."""
        size = self.segment_frame_bytes
        return int(self.forward.queue.service_ns(size)) if size else 0

    @property
    def ack_service_ns(self) -> int:
        """Transmission time of an ACK on the last link before the data's sender, 0 if none."""
        size = self.ack_frame_bytes
        return int(self.last_reverse.queue.service_ns(size)) if size else 0
