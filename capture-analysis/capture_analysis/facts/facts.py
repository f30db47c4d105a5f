"""Facts of connections that measures need.

The facts are rates, sizes, clocks, and the tap's place, estimated from the first HEAD_PACKETS
packets (fact_finder.py), with the number of samples of each estimate. A rate that the user gives is
not estimated.
"""

from dataclasses import dataclass, fields, replace
from enum import IntEnum, IntFlag
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from capture_analysis.columns import BoolArray, IntArray

FloatArray = NDArray[np.float64]
Number = TypeVar("Number", bound=np.generic)

HEAD_PACKETS = 1 << 17
# An estimate needs this number of gaps or ticks.
MIN_SAMPLES = 20
# Gaps this close to the mode, as a share of it, agree with it.
AGREES = 0.05

# A tap is near an end if it is at most this share of the round trip time away from it.
NEAR = 0.1
# A path with a shorter round trip is a LAN, on which hosts take as long as packets do.
LAN_NS = 1_000_000

# The shortest window in which deliveries are counted, as a power of two of ns: 0.13 s.
LEAST_SHIFT = 27

# The scale of windows if the capture cut the options of the handshake.
OPTION_CUT = -2

# Segments of this share of the largest are nearly full.
NEARLY_FULL = 0.8
# The first is the largest payload of a frame, used if no MSS was announced: longer segments were
# merged. The second is the size that every host must accept (RFC 9293): connections with shorter
# segments are no bulk transfer.
_LONGEST_BYTES, _SHORTEST_BYTES = 9216, 536


class Placed(IntFlag):
    """The evidence for the tap's place (vantage.py)."""

    TIMES = 1
    """Times to both ends and back."""
    CHECKSUMS = 2
    """One end's network card fills in the checksums, behind the tap."""
    PADDING = 4
    """The other end's short frames are padded, as on a wire."""
    TTL = 8
    """A router lowered the other end's TTLs."""
    CONTRADICTION = 16
    """The evidence, or a guess and the evidence, contradict each other: the place is unknown."""

    def words(self) -> list[str]:
        """Name the evidence."""
        return [str(each.name).lower() for each in self if each is not Placed.CONTRADICTION]


class RateSource(IntEnum):
    """The packets from which the rate of a link was estimated."""

    UNKNOWN = 0
    GIVEN = 1
    DATA = 2
    """The direction's data: size over the gap before; the tap is behind the queue."""
    ACKS = 3
    """Bytes that the direction's ACKs acknowledge, over the gap before; the tap is before the
    queue."""
    LINK_DATA = 4
    """The same from all connections of a direction, which share their link."""
    LINK_ACKS = 5
    """As ACKS, from all connections in that direction together."""
    OPPOSITE = 6
    """No estimate: assumed to be that of the opposite direction."""

    def __str__(self) -> str:
        return self.name.lower().replace("_", " ")


class Evidence(IntEnum):
    """Evidence for a rate; metrics/bottleneck_rate.py states the thresholds."""

    NONE = 0
    GUESSED = 1
    """Enough for a picture, not for a verdict."""
    MEASURED = 2
    """A true mode of the gaps, which nothing in the capture contradicts."""
    GIVEN = 3
    """The user's."""

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True)
class Facts:
    """Columns by direction (2 * flow + half, see directions.py).

    Attributes:
        segment_bytes: largest payload of a segment; 0 without data.
        segment_frame_bytes: size of the largest data frame; 0 without data.
        mss_bytes: the largest segment that the data's receiver announced; 0 if unknown.
        window_shift: scale of the windows that the data's receiver announces; -1 without a
            handshake, OPTION_CUT if the capture cut its options.
        ack_frame_bytes: size of the smallest pure ACK's frame; 0 without ACKs.
        header_bytes: IP and TCP headers of that ACK, without link headers; 0 without ACKs.
        segments_per_ack: mean number of segments that an ACK of new data acknowledges; NaN if
            unknown.
        rate_bit: rate of the bottleneck on the path of the direction's data, in bits of captured
            frames a second, NaN if unknown; its ACKs pass that of the opposite direction.
        rate_share: share of the gaps that lie within AGREES of that rate.
        rate_gaps: number of all gaps behind rate_share.
        rate_other_pace: share of the time in which packets came evenly, slower than at that rate.
        rate_source: a RateSource.
        rate_evidence: an Evidence.
        delivered_bit: most bits a second that passed over a window of time (delivery_rate.py).
        tap_at: place of the tap on the path of the data, from 0 (the sender) to 1 (the receiver),
            in shares of the round trip time; NaN if unknown.
        tap_agreement: 1 minus the difference of the places by handshake and by data; 0.5 if only
            one of them is known. Below 0.5 tap_at is NaN.
        tap_evidence: bits of Placed; 0 if nothing places the tap: on a LAN it then counts as at the
            sender.
        tap_samples: number of round trips behind the estimate.
        round_trip_ns: sum of the shortest times from the tap to both ends and back; NaN if unknown.
        delivery_shift: binary logarithm of the windows of time, ns, in which deliveries are
            counted (delivery_rate.py).
        handshake_ns: time from SYN to the answer to its SYN-ACK; NaN if unknown.
        tick_ns: tick of the time stamps in the ACKs, NaN if unknown.
        ticks: number of ticks seen to pass.
        clock_ns: resolution of the capture's clock, the same for all.
        side: the side of the tap, 0 or 1, with the data's sender.
        link: number of the link that the direction's data shares with those of other directions;
            -1 if nothing shows that it shares any (shared_links.py).
    """

    segment_bytes: IntArray
    segment_frame_bytes: IntArray
    mss_bytes: IntArray
    window_shift: IntArray
    ack_frame_bytes: IntArray
    header_bytes: IntArray
    segments_per_ack: FloatArray
    rate_bit: FloatArray
    rate_share: FloatArray
    rate_gaps: IntArray
    rate_other_pace: FloatArray
    rate_source: IntArray
    rate_evidence: IntArray
    delivered_bit: FloatArray
    tap_at: FloatArray
    tap_agreement: FloatArray
    tap_evidence: IntArray
    tap_samples: IntArray
    round_trip_ns: FloatArray
    delivery_shift: IntArray
    handshake_ns: FloatArray
    tick_ns: FloatArray
    ticks: IntArray
    clock_ns: IntArray
    side: IntArray
    link: IntArray

    @classmethod
    def without_knowledge(cls, directions: int) -> "Facts":
        """Return facts of `directions` directions without any knowledge."""
        nan = {"segments_per_ack", "rate_bit", "tap_at", "round_trip_ns", "handshake_ns", "tick_ns"}
        columns: dict[str, Any] = {
            f.name: np.full(directions, np.nan)
            if f.name in nan
            else np.zeros(directions, np.float64 if f.type is FloatArray else np.int64)
            for f in fields(cls)
        }
        columns["window_shift"][:] = columns["link"][:] = -1
        columns["delivery_shift"][:] = LEAST_SHIFT
        return cls(**columns)

    def __len__(self) -> int:
        return len(self.tap_at)

    def without_rates(self, which: BoolArray) -> "Facts":
        """Remove the rates of some directions."""
        return replace(
            self,
            rate_bit=np.where(which, np.nan, self.rate_bit),
            rate_source=np.where(which, RateSource.UNKNOWN, self.rate_source),
            rate_evidence=np.where(which, Evidence.NONE, self.rate_evidence),
        )

    def with_doubts(self, which: BoolArray) -> "Facts":
        """Turn the measured rates of some directions into guesses."""
        doubted = which & (self.rate_evidence == Evidence.MEASURED)
        return replace(self, rate_evidence=np.where(doubted, Evidence.GUESSED, self.rate_evidence))

    @cached_property
    def origin(self) -> IntArray:
        """End of the path, 0 or 1, from which each direction's data is sent."""
        return self.side

    @cached_property
    def links(self) -> int:
        """Number of links that have a number, at least those of both sides."""
        return max(int(self.link.max(initial=-1)) + 1, 2)

    @cached_property
    def ack_rate_bit(self) -> FloatArray:
        """Rate of the bottleneck that each direction's ACKs pass."""
        return swap_directions(self.rate_bit)

    @cached_property
    def longest_bytes(self) -> IntArray:
        """Longest payload of one segment."""
        return np.where(self.mss_bytes > 0, self.mss_bytes, _LONGEST_BYTES)

    @cached_property
    def merged(self) -> BoolArray:
        """True if an offload merged segments: some are longer than one segment can be."""
        return np.asarray(self.segment_bytes > self.longest_bytes)

    @cached_property
    def full_bytes(self) -> IntArray:
        """Payload of a segment of full size."""
        largest = np.maximum(self.segment_bytes, _SHORTEST_BYTES)
        return np.where(self.mss_bytes > 0, self.mss_bytes, largest)

    @cached_property
    def afar(self) -> BoolArray:
        """True if the tap is beyond the data's sender, or somewhere on a LAN."""
        unknown = np.isnan(self.tap_at) & (self.round_trip_ns < LAN_NS)
        return np.asarray((self.tap_at > NEAR) | unknown)

    @cached_property
    def small(self) -> BoolArray:
        """True if even the largest segment is far from full."""
        full = np.where(self.mss_bytes > 0, self.mss_bytes, _SHORTEST_BYTES)
        return np.asarray(self.segment_bytes < NEARLY_FULL * full)

    @cached_property
    def data_ns_per_byte(self) -> FloatArray:
        """Time of a captured byte on the data's bottleneck; NaN if unknown."""
        return 8e9 / self.rate_bit

    @cached_property
    def ack_ns_per_byte(self) -> FloatArray:
        """Time that a captured byte takes on the ACKs' bottleneck; NaN if unknown."""
        return 8e9 / self.ack_rate_bit

    @cached_property
    def data_service_ns(self) -> FloatArray:
        """Transmission time of a full segment; NaN if unknown."""
        return self.data_ns_per_byte * self.segment_frame_bytes

    @cached_property
    def ack_service_ns(self) -> FloatArray:
        """Transmission time of an ACK; NaN if unknown."""
        return self.ack_ns_per_byte * self.ack_frame_bytes

    @cached_property
    def acked_ns_per_byte(self) -> FloatArray:
        """Time of a byte of payload, in full segments, on the data's bottleneck."""
        return self.data_service_ns / np.maximum(self.segment_bytes, 1)

    @cached_property
    def tick_whole_ns(self) -> IntArray:
        """The tick of each direction's ACKs, 0 if unknown."""
        return np.nan_to_num(self.tick_ns).astype(np.int64)


def swap_directions(column: NDArray[Number]) -> NDArray[Number]:
    """Exchange both directions of each connection in a column by direction."""
    return column.reshape(-1, 2)[:, ::-1].ravel()
