"""Estimate a bottleneck's rate from the gaps that it leaves."""

from dataclasses import dataclass

import numpy as np

from capture_analysis.columns import BoolArray, IntArray
from capture_analysis.facts.facts import AGREES, MIN_SAMPLES, FloatArray
from capture_analysis.facts.running_totals import occurrences

# Gaps longer than this are pauses, not transmissions.
LONGEST_GAP_NS = 1_000_000_000
# A bottleneck's rate is at least the mean rate, less 5 % because the ends round the mean up.
_BELOW_MEAN = 0.95
# A true mode has at least this share of n gaps, and 2 / sqrt(n) more. Among random gaps, a tenth
# sometimes lies within AGREES of some rate, and chance adds up to 2 / sqrt(n)
# (metrics/bottleneck_rate.py; tests/facts/test_link_times.py).
_LEAST_SHARE, _CHANCE = 0.1, 2.0
# A mode stands out if this share of the gaps within _NEIGHBOURHOOD of the rate lies within AGREES.
_NEIGHBOURHOOD, _MODE_SHARE = 0.2, 0.5
# A pace with fewer pauses may be the application's; a pause lasts at least this multiple of the
# pace.
_PAUSES, _PAUSE = 3, 2.0
# A packet is small up to this share of the usual size; this number of them shows a rule.
_SMALL, _FEW = 0.5, 5
# Gaps of packets that were sent together, for a rate that no packets of another size show.
TRAIN_GAPS = 10
# Number of gaps in a row that are alike by more than chance.
EVEN = 16
# Bins of ln(rate): 512 to a factor of e, each 0.2 % wide; rates reach up to e^64 bit/s.
_BINS = 512
_SPAN = 64 * _BINS


@dataclass(frozen=True)
class Modes:
    """Columns by group: the rate with which most gaps agree.

    Attributes:
        rate_bit: bit/s, NaN with fewer than MIN_SAMPLES gaps.
        share: share of the gaps that lie within AGREES of that rate.
        gaps: number of gaps.
        true: True for a true mode, which random gaps hardly show.
        flat: True if small packets come at the gaps of large ones: no link makes such gaps, whose
            time for a packet grows with its size.
        trains: True if small packets come at that rate, too, or if packets that agree with it were
            sent together.
        paused: True if there were pauses, so that the mode is not just the mean.
        other_pace: share of the time in which packets came evenly at a slower pace, EVEN in a row.
    """

    rate_bit: FloatArray
    share: FloatArray
    gaps: IntArray
    true: BoolArray
    flat: BoolArray
    trains: BoolArray
    paused: BoolArray
    other_pace: FloatArray


def modes(  # noqa: PLR0917 - columns of one table
    group: IntArray,
    bits: FloatArray,
    gap_ns: IntArray,
    groups: int,
    peak: FloatArray | float,
    train: BoolArray | None = None,
) -> Modes:
    """Find the mode of bits / gap for each group.

    Rates below a group's mean, which are no bottleneck's, gaps of 0 and pauses are left out.

    Args:
        group: shape (n,), 0..groups-1.
        bits: shape (n,), bits whose transmission took the gap before the packet.
        gap_ns: shape (n,).
        groups: number of groups.
        peak: accept the lowest rate with at least this share of the gaps of the highest peak. 1
            after the bottleneck, where no gap is shorter than a transmission; less for ACKs, and
            for data before the bottleneck. One for all groups or one for each.
        train: shape (n,), False for a packet that its application may have sent by itself; None:
            there is none.
    """
    usable = (gap_ns > 0) & (gap_ns <= LONGEST_GAP_NS) & (bits > 0)
    train = np.ones(len(usable), dtype=np.bool_) if train is None else train
    group, bits, gap_ns, train = (each.compress(usable) for each in (group, bits, gap_ns, train))
    time_ns = np.bincount(group, weights=gap_ns, minlength=groups)
    mean = np.bincount(group, weights=bits, minlength=groups) * 1e9 / np.maximum(time_ns, 1)
    gaps = np.bincount(group, minlength=groups)
    rate = bits * 1e9 / gap_ns
    key = (np.log(np.maximum(rate, 1)) * _BINS).astype(np.int64) + group * _SPAN
    fast = np.flatnonzero(
        (rate >= _BELOW_MEAN * mean.take(group)) & (gaps.take(group) >= MIN_SAMPLES)
    )
    none = np.zeros((4, groups), dtype=np.bool_)
    unknown, share, pace = np.full(groups, np.nan), np.zeros(groups), np.zeros(groups)
    result = Modes(unknown, share, gaps, none[0], none[1], none[2], none[3], pace)
    if not len(fast):
        return result
    bins, counts = occurrences(key.take(fast))
    top = _top(bins, counts, np.broadcast_to(peak, groups))
    # The rate is the total bits over the total gap of the most frequent bin and its two neighbours.
    chosen = np.full(groups, -_SPAN)
    chosen[bins[top] // _SPAN] = bins[top]
    away = np.abs(key - chosen.take(group))
    near = away <= 1
    found = np.bincount(group, weights=bits * near, minlength=groups)
    took_ns = np.bincount(group, weights=gap_ns * near, minlength=groups)
    np.divide(found * 1e9, took_ns, out=result.rate_bit, where=took_ns > 0)
    agreeing, around = (
        np.bincount(group, weights=away <= within * _BINS, minlength=groups)
        for within in (AGREES, _NEIGHBOURHOOD)
    )
    paused = _PAUSE * rate < result.rate_bit.take(group)
    pauses = np.bincount(group, weights=paused, minlength=groups)
    result.share[:] = agreeing / np.maximum(gaps, 1)
    result.true[:] = result.share >= _LEAST_SHARE + _CHANCE / np.sqrt(np.maximum(gaps, 1))
    result.true[:] &= agreeing >= _MODE_SHARE * around
    result.paused[:] = pauses >= _PAUSES
    _test_sizes(result, group, bits, gap_ns, away <= AGREES * _BINS, train)
    slower = away > _NEIGHBOURHOOD * _BINS
    even_ns = np.bincount(group, weights=gap_ns * _evenly(key, group, slower), minlength=groups)
    result.other_pace[:] = even_ns / np.maximum(time_ns, 1)
    return result


def _test_sizes(  # noqa: PLR0917 - columns of one table
    result: Modes,
    group: IntArray,
    bits: FloatArray,
    gap_ns: IntArray,
    agrees: BoolArray,
    train: BoolArray,
) -> None:
    """Compare the gaps of small packets with those of the packets that agree with the mode."""
    groups = len(result.gaps)

    def count(which: BoolArray) -> FloatArray:
        return np.bincount(group, which, groups).astype(np.float64)

    usual = np.bincount(group, bits * agrees, groups) / np.maximum(count(agrees), 1)
    small = bits <= _SMALL * usual.take(group)
    alike = gap_ns * result.rate_bit.take(group) / (1e9 * np.maximum(usual.take(group), 1))
    same_gap = count(small & (np.abs(alike - 1) <= 2 * AGREES))
    result.flat[:] = (same_gap >= _FEW) & (2 * same_gap >= count(small))
    at_rate = count(small & agrees)
    result.trains[:] = (at_rate >= _FEW) | (count(agrees & train) >= TRAIN_GAPS)


def _evenly(key: IntArray, group: IntArray, slower: BoolArray) -> BoolArray:
    """Mark gaps in runs of EVEN or more of a group that hardly differ, all slower than its mode."""
    order = np.argsort(group, kind="stable")
    row = key.take(order)
    alike = np.abs(np.diff(row, prepend=-_SPAN)) <= AGREES * _BINS
    alike &= slower.take(order)
    run = np.cumsum(~alike)
    even = np.zeros(len(key), dtype=np.bool_)
    even[order] = alike & (np.bincount(run) > EVEN).take(run)
    return even


def _top(bins: IntArray, counts: IntArray, peak: FloatArray) -> IntArray:
    """Find the most frequent bin of each group's lowest accepted peak.

    Returns: rows of `bins`; see `modes`.

    Args:
        bins: shape (k,), group * _SPAN + ln(rate) * _BINS, ascending.
        counts: shape (k,), gaps in each bin.
        peak: shape (groups,), see `modes`.
    """
    group = bins // _SPAN
    starts = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
    sizes = np.diff(starts, append=len(group))
    rows = np.arange(len(group))
    reach = bins + int(2 * AGREES * _BINS)
    running = np.append(0, np.cumsum(counts))
    agreeing = running[np.searchsorted(bins, reach, side="right")] - running[rows]

    def first(which: BoolArray) -> IntArray:
        found: IntArray = np.minimum.reduceat(np.where(which, rows, len(rows)), starts)
        return found

    highest = np.repeat(np.maximum.reduceat(agreeing, starts), sizes)
    lowest = first(agreeing >= peak[group] * highest)
    inside = (rows >= np.repeat(lowest, sizes)) & (bins <= np.repeat(reach[lowest], sizes))
    inside_counts = counts * inside
    return first(inside_counts == np.repeat(np.maximum.reduceat(inside_counts, starts), sizes))
