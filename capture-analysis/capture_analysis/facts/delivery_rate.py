"""A path's delivery: the most data that passed in a window of time.

A bottleneck is at least as fast as the delivery. Both data and the data that its ACKs acknowledge
are counted, and the smaller count is taken. Data may be sent into a queue faster than the queue
empties, and ACKs that waited may acknowledge at one instant data that took longer to arrive. Both
cannot happen over a window that is long compared with the round trips and with the delay that
queues add. An ACK that follows the filling of a hole acknowledges data that had arrived long
before: it is left out. So are bytes that the capture lacks: when they arrived is unknown.
"""

from dataclasses import replace

import numpy as np

from capture_analysis.columns import BoolArray, IntArray
from capture_analysis.facts.busy_series import BinnedSums
from capture_analysis.facts.directions import Block, View
from capture_analysis.facts.facts import LEAST_SHIFT, Facts, FloatArray, RateSource
from capture_analysis.facts.running_totals import LaneArray, starts_of

# A window lasts at least this number of round trips, and this multiple of the delay that queues
# add, but by the second rule at most this share of the direction's time.
_ROUND_TRIPS, _WAITS, _OF_TIME = 5, 20, 1 / 8
_MOST_SHIFT = 36
# If a link seems to transmit for more than this share of the time, its rate is wrong.
MOST_UTILISATION = 1.05
# Rates from these sources belong to one link that all connections share.
LINK_SOURCES = RateSource.GIVEN, RateSource.LINK_DATA, RateSource.LINK_ACKS


class Delivered:
    """The most that each direction, and all directions of a link together, delivered in a window.

    Args:
        facts: the facts of the connections on which the windows depend.
    """

    def __init__(self, facts: Facts) -> None:
        shift = int(facts.delivery_shift.max(initial=LEAST_SHIFT))
        # By direction, for data and for ACKs: the window of the last packet, and the bytes in it so
        # far.
        self._last = tuple(LaneArray(np.maximum, -1, 2) for _ in range(2))
        # By direction: the most bytes in a window, then all bytes; each of frames, and of payload
        # acknowledged.
        self._most = LaneArray(np.maximum, 0), LaneArray(np.maximum, 0)
        self._all = LaneArray(np.add, 0), LaneArray(np.add, 0)
        # Bytes of each link's frames, then bytes of each link's payload that were acknowledged.
        self._links = facts.links
        self._together = BinnedSums(2 * self._links, shift)

    def add(self, block: Block) -> None:
        """Take the next packets."""
        for which, (view, column) in enumerate(
            ((block.data, "frame_bytes"), (block.acks, "acked_bytes"))
        ):
            if len(view):
                size = view[column]
                self._all[which].add(view.directions, view.sum(size))
                if view is block.acks and block.tracked.unseen_bytes.any():
                    size = size - view["unseen_bytes"]
                # An ACK of data that was sent again has no round trip.
                counted = view["rtt_ns"] >= 0 if view is block.acks else np.True_
                self._take(which, view, size * counted, block.facts)

    def _take(self, which: int, view: View, size: IntArray, facts: Facts) -> None:
        """Take sizes in bytes: of frames, or of payload acknowledged."""
        shift = view.spread(facts.delivery_shift)
        window = view["time_ns"] >> shift
        opens = starts_of(window)
        opens[view.starts] = True
        starts = np.flatnonzero(opens)
        lane, window, shift = view.direction[starts], window[starts], shift[starts]
        total = np.add.reduceat(size, starts)
        # The first window of a direction in this block may have begun in an earlier one.
        first = np.searchsorted(starts, view.starts)
        last = np.append(first[1:], len(starts)) - 1
        before = self._last[which].values_of(view.directions)
        so_far = total.copy()
        so_far[first] += np.where(before[:, 0] == window[first], before[:, 1], 0)
        self._last[which].replace(view.directions, np.stack((window[last], so_far[last]), axis=1))
        self._most[which].add_rows(lane, so_far)
        link = facts.link[lane]
        some = link >= 0
        rows = link + self._links * which, window << shift, total
        self._together.add(*(each if some.all() else each[some] for each in rows))

    def merge(self, other: "Delivered") -> None:
        """Add the deliveries of other connections."""
        for name in ("_most", "_all"):
            for mine, theirs in zip(getattr(self, name), getattr(other, name), strict=True):
                mine.merge(theirs)
        self._together.merge(other._together)  # noqa: SLF001 - the same class

    def least_bit(self, facts: Facts) -> tuple[FloatArray, FloatArray]:
        """Return two lower bounds of the rate of each direction's link, bit/s, each (directions,).

        Returns: from the direction alone, and from all connections in that direction.
        """
        rows = np.arange(len(facts))
        bits, all_bits, first = self._bits(facts)
        most = bits * np.stack([each.values_of(rows) for each in self._most]) - first
        alone = _lesser(all_bits, most / (1 << facts.delivery_shift))
        together = self._together.largest_sums().reshape(2, -1)
        sums = np.zeros(together.shape)
        for link in range(self._links):
            mine = facts.link == link
            sums[:, link] = all_bits[:, mine].sum(axis=1)
            acked = max(int(self._all[1].values_of(rows[mine]).sum()), 1)
            together[:, link] *= 8, sums[1, link] / acked
            together[:, link] -= first[:, mine].max(axis=1, initial=0) / self._together.width_ns
        return alone, np.append(_lesser(sums, together), 0)[facts.link]

    def whole_bit(self, facts: Facts, active_ns: IntArray) -> FloatArray:
        """Return each direction's delivery over its time without pauses, bit/s, (directions,).

        Args:
            facts: the facts found or given.
            active_ns: shape (2, directions), time of data and of its ACKs, without pauses.
        """
        _, all_bits, first = self._bits(facts)
        return _lesser(all_bits, (all_bits - first) / np.maximum(active_ns, 1))

    def _bits(self, facts: Facts) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return bits per byte, all bits, and bits sent before a window; (2, directions)."""
        rows = np.arange(len(facts))
        # Payload acknowledged stands for the frames of its segments.
        frames = facts.segment_frame_bytes / np.maximum(facts.segment_bytes, 1)
        bits = np.stack((np.full(len(facts), 8.0), 8 * frames))
        # The first frame in a window was transmitted before the window began.
        first = 8.0 * facts.segment_frame_bytes * np.array([[1], [1]])
        first[1] *= np.maximum(np.nan_to_num(facts.segments_per_ack), 1)
        return bits, bits * np.stack([each.values_of(rows) for each in self._all]), first


def delivery_shifts(head: Block, round_trip_ns: FloatArray, waiting_ns: FloatArray) -> IntArray:
    """Choose the length of each direction's windows; binary logarithms of ns.

    Args:
        head: the first packets.
        round_trip_ns: the shortest round trips, NaN if unknown.
        waiting_ns: the delay that queues add to them, NaN if unknown.
    """
    data, time_ns = head.data, np.zeros(len(round_trip_ns))
    if len(data):
        time_ns[data.directions] = data["time_ns"][data.ends] - data["time_ns"][data.starts]
    waits_ns = np.minimum(_WAITS * waiting_ns, _OF_TIME * time_ns)
    longest_ns = np.fmax(np.fmax(_ROUND_TRIPS * round_trip_ns, waits_ns), 1)
    return np.clip(np.ceil(np.log2(longest_ns)), LEAST_SHIFT, _MOST_SHIFT).astype(np.int64)


def _lesser(all_bits: IntArray | FloatArray, most: FloatArray) -> FloatArray:
    """Take the smaller of data and data acknowledged, bit/s; shape (n,).

    ACKs that travel on data of the opposite direction are not counted: if the pure ones acknowledge
    less than half, only the data is taken.

    Args:
        all_bits: shape (2, n), for data and for data acknowledged.
        most: shape (2, n), the most in a window, bit per ns.
    """
    lesser = np.where(2 * all_bits[1] >= all_bits[0], most.min(axis=0), most[0])
    found: FloatArray = 1e9 * np.maximum(lesser, 0)
    return found


def without_contradicted_rates(
    facts: Facts,
    delivered: Delivered,
    active_ns: IntArray,
    answered: BoolArray,
    *,
    one_pair: bool,
) -> Facts:
    """Remove rates that the delivery contradicts.

    A given rate stays: round trips in standing queues may be many times the shortest, by which
    windows are measured, and ACKs that waited together then acknowledge more in a window than was
    transmitted in it. A rate below a direction's delivery over its time without pauses, which may
    be shorter than a window, becomes a guess. A utilisation above MOST_UTILISATION is undefined in
    any case.

    Data of a direction without an answer may be before a queue that empties more slowly: that it
    was delivered is not known.

    All connections share a link if its rate was found from all of them or given for all, or if they
    have the same two hosts.

    Args:
        facts: the facts found or given.
        delivered: the delivery of the same connections.
        active_ns: their times, as in `whole_bit`.
        answered: shape (directions,), False if the capture has packets of one direction only.
        one_pair: True if all connections have the same two hosts.
    """
    alone, together = delivered.least_bit(facts)
    shared = np.isin(facts.rate_source, LINK_SOURCES) | one_pair | (facts.link >= 2)
    least_bit = np.where(shared, np.maximum(alone, together), alone)
    # Data at one time has no rate.
    least_bit = np.where(active_ns[0] > 0, least_bit, 0)
    facts = replace(facts, delivered_bit=np.where(answered, least_bit, 0))
    contradicted = MOST_UTILISATION * facts.rate_bit < least_bit
    facts = facts.without_rates(contradicted & (facts.rate_source != RateSource.GIVEN))
    return facts.with_doubts(
        MOST_UTILISATION * facts.rate_bit < delivered.whole_bit(facts, active_ns)
    )
