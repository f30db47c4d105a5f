"""Counts of a histogram in Python, value by value; clib/histogram.c must equal them."""

from collections.abc import Iterable


def bin_of(value: int) -> int:
    """Return the number of a value's bin: 128 for each octave above 256."""
    shift = max(value.bit_length() - 8, 0)
    return (shift << 7) + (value >> shift)


def rows(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int, int, int]]:
    """Count pairs of lane and value.

    Returns: by lane and bin, ascending, the lane, the smallest value, the largest, the count.
    """
    bins: dict[tuple[int, int], list[int]] = {}
    for lane, value in pairs:
        bins.setdefault((lane, bin_of(value)), []).append(value)
    return [(lane, min(v), max(v), len(v)) for (lane, _), v in sorted(bins.items())]
