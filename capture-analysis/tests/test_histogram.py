"""Distributions: bins, quantiles, merging, and how exact they are."""

import pickle
from collections.abc import Iterable
from random import Random

import numpy as np
import pytest
from capture_analysis.columns import IntArray
from capture_analysis.histogram import BIN_BITS, Histogram
from hypothesis import given
from hypothesis import strategies as st


def bin_of(value: int) -> int:
    """Return the number of a value's bin: 128 for each octave above 256."""
    shift = max(value.bit_length() - 8, 0)
    return (shift << 7) + (value >> shift)


def counted_rows(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int, int, int]]:
    """Count pairs of key and value.

    Returns: by key and bin, ascending, the key, the smallest value, the largest, the count.
    """
    bins: dict[tuple[int, int], list[int]] = {}
    for key, value in pairs:
        bins.setdefault((key, bin_of(value)), []).append(value)
    return [(key, min(v), max(v), len(v)) for (key, _), v in sorted(bins.items())]


VALUES = st.lists(
    st.one_of(
        st.integers(0, 600),
        st.integers(0, 2**63 - 1),
        st.sampled_from([2**k - 1 for k in range(64)]),
    ),
    max_size=60,
)


@given(VALUES)
def test_a_bin_holds_its_values_and_is_narrow(numbers: list[int]) -> None:
    """Values of one bin differ by at most 1/128; below 256 they are equal."""
    value = np.array(numbers, dtype=np.int64)
    histogram = Histogram()
    histogram.add(0, value)
    bins = histogram.bins()
    assert (bins.high - bins.low <= bins.low // 128).all()
    assert (bins.low == bins.high)[bins.low < 256].all()
    assert bins_of(value) == [bin_of(number) for number in numbers]


def bins_of(value: IntArray) -> list[int]:
    """Return the number of each value's bin, from a histogram with a lane per value."""
    histogram = Histogram()
    histogram.add(np.arange(len(value)), value)
    return [key % (1 << BIN_BITS) for key in histogram.__getstate__()["key"].tolist()]


def test_bins_ascend_with_values() -> None:
    """A larger value is in the same bin or a later one, up to the largest value possible."""
    edge = np.array([m << s for s in range(56) for m in range(128, 256)], dtype=np.int64)
    value = np.unique(np.concatenate((np.arange(128), edge - 1, edge, [2**63 - 1])))
    bins = bins_of(value)
    step = np.diff(bins)
    assert (bins[0], bins[-1]) == (0, 7295)
    assert ((step == 0) | (step == 1)).all()


def test_quantiles_of_small_values_are_exact() -> None:
    """Below 256 a quantile equals numpy's with inverted_cdf."""
    value = np.random.default_rng(1).integers(0, 256, 1000)
    histogram = Histogram()
    histogram.add(0, value)
    for q in (0, 0.01, 0.07, 0.5, 0.95, 0.999, 1):
        assert histogram.quantile(q) == np.quantile(value, q, method="inverted_cdf")


def test_quantiles_of_large_values_are_within_half_a_bin() -> None:
    """From 256 on, a quantile is within 1/256 of the exact one."""
    value = np.random.default_rng(2).lognormal(15, 3, 5000).astype(np.int64)
    histogram = Histogram()
    histogram.add(np.zeros(5000, dtype=np.int64), value)
    for q in (0.01, 0.5, 0.95, 0.999):
        exact = int(np.quantile(value, q, method="inverted_cdf"))
        assert abs((histogram.quantile(q) or 0) - exact) <= exact / 256


@given(VALUES.filter(bool))
def test_quantiles_do_not_leave_the_values(numbers: list[int]) -> None:
    """A quantile is from the smallest to the largest value; equal values give that value."""
    histogram = Histogram()
    histogram.add([0] * len(numbers) + [1] * 3, [*numbers, *[numbers[0]] * 3])
    for q in (0, 0.5, 1):
        assert min(numbers) <= (histogram.quantile(q, 0) or 0) <= max(numbers)
        assert histogram.quantile(q, 1) == numbers[0]


def test_lanes_are_apart() -> None:
    """Each lane has its own bins, and all lanes together have all values."""
    histogram = Histogram()
    histogram.add(np.array([5, 5, 2_000_000]), np.array([1, 1000, 7]))
    assert histogram.lanes().tolist() == [5, 2_000_000]
    assert (histogram.count(5), histogram.count(6), histogram.count()) == (2, 0, 3)
    assert histogram.quantile(1, 2_000_000) == 7
    assert histogram.quantile(0.5, 6) is None
    assert histogram.bins(5).low.tolist() == [1, 1000]
    lane, bins = histogram.rows()
    assert lane.tolist() == [5, 5, 2_000_000]
    assert bins.count.tolist() == [1, 1, 1]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**63 - 1)), max_size=50), st.randoms())
def test_order_and_parts_do_not_matter(pairs: list[tuple[int, int]], random: Random) -> None:
    """The rows do not depend on order, chunks, merging or pickling."""
    whole, first, second = Histogram(), Histogram(), Histogram()
    column = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    whole.add(column[:, 0], column[:, 1])
    shuffled = column.tolist()
    random.shuffle(shuffled)
    for at, (lane, value) in enumerate(shuffled):
        (first if at % 2 else second).add(lane, [value])
    first.merge(pickle.loads(pickle.dumps(second)))  # noqa: S301 - our own
    assert _table(first) == _table(whole)


def test_many_chunks_are_sorted_in() -> None:
    """Counts stay right after many merges of buffered values."""
    histogram = Histogram()
    for _ in range(20):
        histogram.add(np.arange(20_000), np.arange(20_000))
    assert (histogram.rows()[1].count == 20).all()
    assert histogram.count() == 400_000


@pytest.mark.parametrize(("lane", "value"), [(-1, 1), (2**48, 1), (0, -1)])
def test_what_is_out_of_range_is_refused(lane: int, value: int) -> None:
    """A negative value, or a lane that does not exist, is an error."""
    with pytest.raises(ValueError, match="must be in"):
        Histogram().add(np.array([0, lane]), np.array([0, value]))


@given(st.lists(st.tuples(st.integers(0, 2**48 - 1), st.integers(0, 2**63 - 1)), max_size=300))
def test_counts_are_the_references(pairs: list[tuple[int, int]]) -> None:
    """The histogram has the rows of the one in Python, for any lanes and values."""
    column = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    histogram = Histogram()
    for _ in range(2):
        histogram.add(column[:, 0], column[:, 1])
    rows = list(zip(*_table(histogram), strict=True))
    assert rows == counted_rows(pairs * 2)
    together = histogram.bins()
    expected = counted_rows((0, value) for _, value in pairs * 2)
    columns = (together.low, together.high, together.count)
    assert [(0, *row) for row in zip(*(c.tolist() for c in columns), strict=True)] == expected


def _table(histogram: Histogram) -> list[list[int]]:
    lane, bins = histogram.rows()
    return [lane.tolist(), *(each.tolist() for each in (bins.low, bins.high, bins.count))]
