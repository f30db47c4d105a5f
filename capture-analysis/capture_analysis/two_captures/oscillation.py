"""Find the period of an oscillating level in constant memory."""

import numpy as np
from numpy.typing import NDArray

from capture_analysis.columns import IntArray

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
