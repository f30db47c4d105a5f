"""Queue between the taps: occupancy, levels, period, utilisation.

A packet is in the queue from its first tap until its second minus the propagation time, which is
the shortest delay minus the transmission time of the packet with that delay; the packet in
transmission counts, as in the kernel's drop-tail limit. Lost packets and packets that a capture
missed do not count. Levels are in packets and bytes as captured; means are over time, from the
first packet to the last, without pauses (empty for a second or more).

The square wave of two-way traffic (Zhang, Shenker, Clark 1991) shows in the median levels above and
below the middle, which is half of the 95th percentile of the level over the time in which the queue
holds anything. The period is the lag of the first high peak of the level's autocorrelation
(Oscillation; among peaks above 0.8 of the highest, in a run above 0.9). Utilisation is the share
of time in which the link transmits.
"""

import numpy as np
from numpy.typing import NDArray

from capture_analysis.columns import IntArray
from capture_analysis.definition import Definition
from capture_analysis.metrics.utilisation import UTILISATION
from capture_analysis.overriding import override
from capture_analysis.two_captures.from_pair import FromPair, Step, Values
from capture_analysis.two_captures.packets_between import ABSENT, Crossings
from capture_analysis.two_captures.queue_levels import ActiveTime, Levels, transmission_starts

# Number of bins of a segment; the autocorrelations of all segments are averaged (Welch 1967).
SEGMENT_BINS = 4096
_LEAST_BINS = 64
# An autocorrelation with a lower peak shows no period.
LEAST_CORRELATION = 0.3


class Oscillation:
    """Collects a step function and finds its period.

    Args:
        bin_ns: width of a bin, which is about the resolution of the period.
    """

    def __init__(self, bin_ns: int) -> None:
        self._bin_ns = max(bin_ns, 1)
        self._first: int | None = None
        self._sums = np.zeros(SEGMENT_BINS)
        self._filled_ns = 0
        self._correlation = np.zeros(SEGMENT_BINS)
        self._segments = 0

    def add(self, time_ns: IntArray, level: IntArray, until_ns: int) -> None:
        """Take levels, each from its time on, the last until `until_ns`.

        Spans must adjoin.
        """
        if self._first is None:
            self._first = int(time_ns[0]) // self._bin_ns
        area = np.concatenate(([0.0], np.cumsum(np.diff(time_ns, append=until_ns) * level)))
        ends = np.append(time_ns, until_ns)
        at = int(time_ns[0])
        while at < until_ns:
            start = self._first * self._bin_ns
            stop = min(until_ns, start + SEGMENT_BINS * self._bin_ns)
            edges = np.arange(at // self._bin_ns, -(-stop // self._bin_ns) + 1) * self._bin_ns
            inside = np.interp(np.clip(edges, at, stop), ends, area)
            bins = edges[:-1] // self._bin_ns - self._first
            self._sums[bins] += np.diff(inside)
            self._filled_ns = stop - start
            at = stop
            if self._filled_ns == SEGMENT_BINS * self._bin_ns:
                self._close(SEGMENT_BINS)
                self._first += SEGMENT_BINS

    def _close(self, bins: int) -> None:
        self._correlation += _autocorrelation(self._sums[:bins])
        self._segments += 1
        self._sums[:] = 0.0
        self._filled_ns = 0

    def period_ns(self) -> float | None:
        """Return the lag of the autocorrelation's first peak, or None.

        Only peaks after the correlation was negative count.
        """
        if not self._segments:
            bins = self._filled_ns // self._bin_ns
            if bins < _LEAST_BINS:
                return None
            self._close(bins)
        mean = self._correlation / self._segments
        below = np.flatnonzero(mean < 0)
        if not len(below):
            return None
        rest = mean[below[0] : SEGMENT_BINS // 2]
        at = int(rest.argmax()) if len(rest) else 0
        # The first peak that is nearly as high as the highest.
        peaks = np.flatnonzero(
            (rest[1:-1] >= rest[:-2]) & (rest[1:-1] >= rest[2:]) & (rest[1:-1] > 0.8 * rest[at])
        )
        if not len(peaks) or rest[peaks[0] + 1] < LEAST_CORRELATION:
            return None
        return float((below[0] + peaks[0] + 1) * self._bin_ns)


def _autocorrelation(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the autocorrelation by lag, (SEGMENT_BINS,); 0 if constant."""
    off = values - values.mean()
    spectrum = np.fft.rfft(off, 2 * SEGMENT_BINS)
    sums = np.fft.irfft(np.abs(spectrum) ** 2)[:SEGMENT_BINS]
    # Larger lags have fewer pairs of values.
    pairs = np.maximum(len(values) - np.arange(SEGMENT_BINS), 1)
    scaled = sums / pairs * (np.arange(SEGMENT_BINS) < len(values) / 2)
    return np.asarray(scaled / scaled[0] if scaled[0] > 0 else np.zeros(SEGMENT_BINS))


FloatArray = NDArray[np.float64]

NO_QUEUE = "no packet passed both taps in this direction"
# Levels are counted up to this one.
_HIGHEST = 1 << 20
# Bins of the oscillation per longest round trip: a level oscillates more slowly than that.
_BINS_PER_DELAY = 64


QUEUE_PEAK = Definition(
    "queue_peak", "packets", "most packets in the queue, the one in transmission included"
)
QUEUE_MEAN = Definition("queue_mean", "packets", "time average of the packets in the queue")
QUEUE_PEAK_BYTES = Definition("queue_peak_bytes", "bytes", "most bytes in the queue")
QUEUE_MEAN_BYTES = Definition("queue_mean_bytes", "bytes", "time average of the bytes in the queue")
QUEUE_UPPER_MEDIAN = Definition(
    "queue_upper_median",
    "packets",
    "median over time of the queue's length while above half of its busy 95 % level",
)
QUEUE_LOWER_MEDIAN = Definition(
    "queue_lower_median",
    "packets",
    "median over time of the queue's length while at most half of its busy 95 % level",
)
QUEUE_UPPER_SHARE = Definition(
    "queue_upper_share",
    "1",
    "share of time in which the queue's length is above half of its busy 95 % level",
    most=1,
)
QUEUE_EMPTY_SHARE = Definition(
    "queue_empty_share", "1", "share of time in which the queue is empty", most=1
)
OSCILLATION_PERIOD = Definition(
    "oscillation_period",
    "s",
    "lag of the first high peak of the autocorrelation of the queue's length",
)

_LEVELS = (QUEUE_UPPER_MEDIAN, QUEUE_LOWER_MEDIAN, QUEUE_UPPER_SHARE, QUEUE_EMPTY_SHARE)


class QueueOccupancy(FromPair):
    """Occupancy of each queue between the taps, its levels and its period."""

    title = "Queue between the taps"
    picture = "queue"
    per_path_direction = (
        QUEUE_PEAK,
        QUEUE_MEAN,
        QUEUE_PEAK_BYTES,
        QUEUE_MEAN_BYTES,
        *_LEVELS,
        OSCILLATION_PERIOD,
        UTILISATION,
    )

    @override
    def start(self) -> None:
        bin_ns = self.facts.longest_round_trip_ns // _BINS_PER_DELAY
        self._queues = _Queue(bin_ns), _Queue(bin_ns)

    @override
    def add(self, step: Step) -> None:
        for queue, levels, crossings in zip(self._queues, step.levels, step.crossings, strict=True):
            if levels is not None and levels.until_ns > levels.time_ns[0]:
                queue.add(levels)
            facts = self.facts.directions[crossings.path_direction]
            queue.transmit(crossings, facts.propagation_ns)

    @override
    def of_path_direction(self, direction: int) -> Values:
        queue = self._queues[direction]
        if not queue.duration_ns:
            return dict.fromkeys(self.per_path_direction, NO_QUEUE)
        period = queue.oscillation.period_ns()
        return {
            QUEUE_PEAK: queue.peak,
            QUEUE_MEAN: queue.packet_ns / queue.duration_ns,
            QUEUE_PEAK_BYTES: queue.peak_bytes,
            QUEUE_MEAN_BYTES: queue.byte_ns / queue.duration_ns,
            **queue.levels(),
            OSCILLATION_PERIOD: "the level does not oscillate" if period is None else period / 1e9,
            UTILISATION: queue.busy_ns / queue.duration_ns,
        }


class _Queue:
    def __init__(self, bin_ns: int) -> None:
        self.peak = self.peak_bytes = 0
        self.packet_ns = self.byte_ns = 0
        self.duration_ns = self.busy_ns = 0
        self.oscillation = Oscillation(bin_ns)
        self._active = ActiveTime()
        self._time_at: FloatArray = np.zeros(1)
        self._before_ns = ABSENT

    def add(self, levels: Levels) -> None:
        duration = self._active.durations(levels.duration_ns, levels.packets == 0)
        packets = np.append(0, np.clip(levels.packets, 0, _HIGHEST))
        self.peak = max(self.peak, int(levels.packets.max()))
        self.peak_bytes = max(self.peak_bytes, int(levels.bytes.max()))
        self.packet_ns += int(levels.packets @ duration[1:])
        self.byte_ns += int(levels.bytes @ duration[1:])
        self.duration_ns += int(duration.sum())
        time_at: FloatArray = np.bincount(packets, duration, len(self._time_at)).astype(np.float64)
        time_at[: len(self._time_at)] += self._time_at
        self._time_at = time_at
        self.oscillation.add(levels.time_ns, levels.packets, levels.until_ns)

    def transmit(self, crossings: Crossings, propagation_ns: int) -> None:
        """Add departures to the busy time.

        Packets that the first capture missed do not count.
        """
        rows = crossings.arrived
        if not len(rows):
            return
        left_ns = rows["second_ns"] - propagation_ns
        known = rows["first_ns"] != ABSENT
        arrived_ns = np.where(known, rows["first_ns"], left_ns)
        before = int(arrived_ns[0]) if self._before_ns == ABSENT else self._before_ns
        starts = transmission_starts(arrived_ns, left_ns, before)
        self.busy_ns += int(np.maximum(left_ns - starts, 0).sum())
        self._before_ns = int(left_ns[-1])

    def levels(self) -> Values:
        """Compute the median levels above and below the middle, and shares."""
        busy = np.append(0, self._time_at[1:])
        if not busy.any():
            return dict.fromkeys(_LEVELS, "nothing was ever in the queue")
        middle = _quantile(busy, 0.95) // 2 + 1
        high, low = self._time_at[middle:], self._time_at[:middle]
        return {
            QUEUE_UPPER_MEDIAN: middle + _quantile(high, 0.5),
            QUEUE_LOWER_MEDIAN: _quantile(low, 0.5) if low.any() else "always above the middle",
            QUEUE_UPPER_SHARE: float(high.sum()) / self.duration_ns,
            QUEUE_EMPTY_SHARE: float(low[0]) / self.duration_ns,
        }


def _quantile(time_at: FloatArray, q: float) -> int:
    """Find the lowest level that the queue does not exceed for a share q of the time."""
    total = np.cumsum(time_at)
    return int(np.searchsorted(total, q * total[-1]))
