"""Statistics of repeated runs against tables and by hand."""

import math

import numpy as np
import pytest

from twoway.report.statistics import spread


def test_spread_of_values() -> None:
    """Mean, deviation, quartiles and extremes are those of the defined values."""
    found = spread([5, None, 1, 2, 4, 3])
    assert found
    assert found[:6] == (5, 1, 2, 3, 4, 5)
    assert found.mean == 3
    assert found.deviation == pytest.approx(math.sqrt(2.5))
    assert spread([None]) is None


@pytest.mark.parametrize(("draws", "t"), [(2, 12.706), (5, 2.776), (10, 2.262), (31, 2.042)])
def test_the_interval_of_the_mean_is_students(draws: int, t: float) -> None:
    """Half the mean's interval is t times the standard error, with t as tables print it."""
    values = [float(each) for each in range(draws)]
    found = spread(values)
    assert found
    expected = t * float(np.std(values, ddof=1)) / math.sqrt(draws)
    assert found.margin == pytest.approx(expected, rel=5e-4)


@pytest.mark.parametrize(("draws", "outside"), [(6, 0), (8, 0), (9, 1), (20, 5), (30, 9)])
def test_the_interval_of_the_median_is_an_order_statistic(draws: int, outside: int) -> None:
    """The median's interval leaves out as many draws at each end as binomial tables say."""
    found = spread(range(draws))
    assert found
    assert (found.median_low, found.median_high) == (outside, draws - 1 - outside)


def test_few_draws_have_no_interval() -> None:
    """One draw has no deviation, and five have no interval of the median."""
    one, five = spread([1.0]), spread(range(5))
    assert one
    assert five
    assert math.isnan(one.deviation)
    assert math.isnan(one.margin)
    assert math.isnan(five.median_low)


def test_draws_in_two_groups_are_noticed() -> None:
    """Draws near two values are two groups; draws from one distribution are not."""
    found = spread([1.0, 1.1, 0.9, 1.0, 9.0, 9.1, 8.9, 9.0])
    assert found
    assert list(found.groups) == pytest.approx([1, 9])
    even = spread([float(each) for each in range(10)])
    assert even
    assert even.groups == ()
