"""The rate of a bottleneck, from the gaps that it leaves between packets."""

from dataclasses import dataclass

import numpy as np

from capture_analysis.columns import IntArray
from capture_analysis.facts import AGREES, ENOUGH, FloatArray

# Gaps longer than this are pauses, not transmissions.
LONGEST_GAP_NS = 1_000_000_000
# A rate below the mean is no bottleneck's; a little, for the mean is rounded up by its ends.
_BELOW_MEAN = 0.95
# ln(rate) of a bit/s rate lies in 0.._SPAN, so that a group's keys are apart from the next's.
_SPAN = 64.0


@dataclass(frozen=True)
class Modes:
    """Columns by group: the rate that most gaps agree with.

    Attributes:
        rate_bit: bit/s, NaN where there are fewer than ENOUGH gaps.
        share: of the gaps, that lie within AGREES of it.
        gaps: how many gaps there are.
    """

    rate_bit: FloatArray
    share: FloatArray
    gaps: IntArray


def modes(group: IntArray, bits: FloatArray, gap_ns: IntArray, groups: int, peak: float) -> Modes:
    """The mode of bits / gap for each group.

    Rates below a group's mean are no bottleneck's and left aside; so are gaps of 0 and pauses.

    Args:
        group: shape (n,), 0..groups-1.
        bits: shape (n,), what took the gap before it to transmit.
        gap_ns: shape (n,).
        groups: how many there are.
        peak: take the lowest rate which at least this share as many gaps agree with as with the
            commonest: 1 for data, whose gaps are never shorter than their transmission, less for
            ACKs, whose gaps are where they are compressed.
    """
    usable = (gap_ns > 0) & (gap_ns <= LONGEST_GAP_NS) & (bits > 0)
    group, bits, gap_ns = group[usable], bits[usable], gap_ns[usable]
    time_ns = np.bincount(group, weights=gap_ns, minlength=groups)
    mean = np.bincount(group, weights=bits, minlength=groups) * 1e9 / np.maximum(time_ns, 1)
    gaps = np.bincount(group, minlength=groups)
    rate = bits * 1e9 / gap_ns
    fast = (rate >= _BELOW_MEAN * mean[group]) & (gaps[group] >= ENOUGH)
    result = Modes(np.full(groups, np.nan), np.zeros(groups), gaps)
    if not fast.any():
        return result
    key = np.log(np.maximum(rate[fast], 1)) + _SPAN * group[fast]
    order = np.argsort(key)
    key, rate, group = key[order], rate[fast][order], group[fast][order]
    # How many gaps have a rate from each one's to a little above.
    agreeing = np.searchsorted(key, key + np.log1p(2 * AGREES), side="right") - np.arange(len(key))
    at = _first_peak(group, key, agreeing, peak)
    middle = at + agreeing[at] // 2
    chosen = rate[middle]
    near = np.searchsorted(key, key[middle] + np.log1p(AGREES), side="right")
    near -= np.searchsorted(key, key[middle] + np.log1p(-AGREES), side="left")
    result.rate_bit[group[at]] = chosen
    result.share[group[at]] = near / gaps[group[at]]
    return result


def _first_peak(group: IntArray, key: FloatArray, agreeing: IntArray, peak: float) -> IntArray:
    """Row of each group's lowest peak, see `modes`; rows are by group and rate."""
    starts = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
    counts = np.diff(starts, append=len(group))
    rows = np.arange(len(group))

    def first(which: FloatArray) -> IntArray:
        found: IntArray = np.minimum.reduceat(np.where(which, rows, len(rows)), starts)
        return found

    highest = np.repeat(np.maximum.reduceat(agreeing, starts), counts)
    high = agreeing >= peak * highest
    # The peak's top lies within what agrees with its lower end.
    nearby = key <= np.repeat(key[first(high)], counts) + np.log1p(2 * AGREES)
    candidates = np.where(high & nearby, agreeing, 0)
    return first(candidates == np.repeat(np.maximum.reduceat(candidates, starts), counts))
