"""Times of pcapng blocks, whose unit each interface declares, as integers of ns."""

import numpy as np
from capture_analysis.columns import BoolArray, IntArray
from numpy.typing import NDArray

UintArray = NDArray[np.uint64]

_NS_DIGITS = 9
_MOST_DIGITS = 19  # digits of a power of ten within 64 bits
_BILLION = np.uint64(1_000_000_000)
# The first and the last second within 64 signed bits of ns, and the limit of ns in each.
_FIRST_S, _LAST_S = -9_223_372_037, 9_223_372_036
_FIRST_FRACTION_NS, _LAST_FRACTION_NS = 145_224_192, 854_775_807


def time_ns(
    ticks: UintArray, resolution: NDArray[np.uint8], offset_s: IntArray
) -> tuple[IntArray, BoolArray]:
    """Return times since the epoch, cut to ns.

    Args:
        ticks: shape (n,), the blocks' values.
        resolution: shape (n,), if_tsresol of the interface: ticks of 10^-r s, or of 2^-(r-128) s.
        offset_s: shape (n,), if_tsoffset of the interface.

    Returns: the times, shape (n,), and a mask of those within 64 bits; others are 0.
    """
    seconds = np.zeros(len(ticks), dtype=np.uint64)
    fraction_ns = np.zeros(len(ticks), dtype=np.uint64)
    for each in np.unique(resolution):
        which = resolution == each
        split = _binary if each & 0x80 else _decimal
        seconds[which], fraction_ns[which] = split(ticks[which], int(each & 0x7F))
    total_s, within = _shift(seconds, offset_s)
    fraction = fraction_ns.view(np.int64)
    within &= (total_s != _FIRST_S) | (fraction >= _FIRST_FRACTION_NS)
    within &= (total_s != _LAST_S) | (fraction <= _LAST_FRACTION_NS)
    # The begin of the first second is out of reach: sum from its end.
    times = (total_s + 1) * 1_000_000_000 - (1_000_000_000 - fraction)
    return np.where(within, times, 0), within


def _decimal(ticks: UintArray, digits: int) -> tuple[UintArray, UintArray]:
    """Return ticks of 10^-digits s as seconds and ns."""
    seconds = _quotient(ticks, digits)
    rest = ticks - seconds * np.uint64(10**digits) if digits <= _MOST_DIGITS else ticks
    if digits > _NS_DIGITS:
        return seconds, _quotient(rest, digits - _NS_DIGITS)
    return seconds, rest * np.uint64(10 ** (_NS_DIGITS - digits))


def _quotient(values: UintArray, digits: int) -> UintArray:
    """Return values over 10^digits, rounded down."""
    if digits > _MOST_DIGITS:
        return np.zeros_like(values)
    return values // np.uint64(10**digits)


def _binary(ticks: UintArray, bits: int) -> tuple[UintArray, UintArray]:
    """Return ticks of 2^-bits s as seconds and ns."""
    seconds = _right(ticks, bits)
    rest = ticks if bits >= 64 else ticks - (seconds << np.uint64(bits))
    if bits < 32:
        return seconds, _right(rest * _BILLION, bits)
    # The product has 94 bits: the upper 62, then the carry of the lower 32.
    upper = (rest >> np.uint64(32)) * _BILLION
    upper += ((rest & np.uint64(0xFFFFFFFF)) * _BILLION) >> np.uint64(32)
    return seconds, _right(upper, bits - 32)


def _right(values: UintArray, bits: int) -> UintArray:
    return values >> np.uint64(bits) if bits < 64 else np.zeros_like(values)


def _shift(seconds: UintArray, offset_s: IntArray) -> tuple[IntArray, BoolArray]:
    """Return the sums, and a mask of those from _FIRST_S to _LAST_S; without overflow."""
    offset = offset_s.view(np.uint64)
    most = np.int64(_LAST_S).view(np.uint64) - offset
    least = np.where(offset_s < _FIRST_S, np.int64(_FIRST_S).view(np.uint64) - offset, 0)
    within = (offset_s <= _LAST_S) & (seconds >= least) & (seconds <= most)
    total = (seconds + offset).view(np.int64)
    return np.where(within, total, 0), within
