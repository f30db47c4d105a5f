"""Statistics of repeated runs: their spread, intervals of mean and median, and two groups."""

import math
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

import numpy as np

# The probability with which an interval holds the true value.
CONFIDENCE = 0.95
# Draws fall in two groups if the best split leaves less than this part of their variance within the
# groups: the larger of the first number and of the second minus 1 over the number of draws, as a
# split of many draws takes less by chance. Of 20,000 samples each of 8 to 30 draws this was so in
# at most 0.5 % from a normal distribution, 1.8 % from a uniform and 2.3 % from an exponential one;
# of 30 draws from two normal distributions eight deviations apart in 98 %. The second number was
# chosen after looking at a user's ten draws, which the first alone did not split.
_WITHIN = (0.05, 0.16)
_LEAST_DRAWS, _LEAST_GROUP = 8, 2


class Spread(NamedTuple):
    """The distribution of a metric over repetitions.

    Attributes:
        defined: number of repetitions in which the metric is defined; the others are left out.
        least: the lowest value; lower, median, upper and most are the other quartiles.
        mean: the arithmetic mean.
        deviation: the standard deviation of a draw (n - 1); NaN for one draw.
        margin: half the 95 % interval of the mean by Student's t, which supposes draws near a
            normal distribution; NaN for one draw.
        median_low: the lower end of the median's distribution-free interval of at least 95 %, an
            order statistic; NaN for fewer than six draws.
        median_high: its upper end.
        groups: the means of two groups in which the draws fall; empty if they do not.
    """

    defined: int
    least: float
    lower: float
    median: float
    upper: float
    most: float
    mean: float
    deviation: float
    margin: float
    median_low: float
    median_high: float
    groups: tuple[float, ...]


def spread(values: Iterable[float | None]) -> Spread | None:
    """Describe values without the undefined ones; None if all are undefined."""
    found = sorted(value for value in values if value is not None)
    if not found:
        return None
    number = len(found)
    deviation = float(np.std(found, ddof=1)) if number > 1 else math.nan
    margin = _student(number - 1) * deviation / math.sqrt(number) if number > 1 else math.nan
    place = _median_place(number)
    low, high = (found[place], found[-1 - place]) if place is not None else (math.nan, math.nan)
    lower, median, upper = (float(q) for q in np.quantile(found, (0.25, 0.5, 0.75)))
    return Spread(
        defined=number,
        least=found[0],
        lower=lower,
        median=median,
        upper=upper,
        most=found[-1],
        mean=float(np.mean(found)),
        deviation=deviation,
        margin=margin,
        median_low=low,
        median_high=high,
        groups=_groups(found),
    )


def difference(first: Iterable[float | None], second: Iterable[float | None]) -> Spread | None:
    """Describe the differences of pairs, such as runs with equal seeds.

    What both of a pair have from their seed does not widen the interval. Undefined pairs are left
    out.
    """
    pairs = zip(first, second, strict=True)
    return spread(a - b for a, b in pairs if a is not None and b is not None)


@cache
def _median_place(number: int) -> int | None:
    """Return how many draws lie outside the median's interval at each end; None if too few.

    The number of draws below the true median is binomial with probability 1/2.
    """
    below, place = 0.0, None
    for outside in range(number // 2):
        below += math.comb(number, outside) / 2**number
        if 2 * below > 1 - CONFIDENCE:
            break
        place = outside
    return place


@cache
def _student(freedom: int) -> float:
    """Return Student's t that a share CONFIDENCE of draws does not exceed in size.

    The distribution's integral over the angle atan(t / sqrt(freedom)) is that of a power of cosine.
    """
    angles = np.linspace(0, math.pi / 2, 200_001)
    density = np.cos(angles) ** (freedom - 1)
    below = np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2)])
    angle = float(np.interp(CONFIDENCE * below[-1], below, angles))
    return math.sqrt(freedom) * math.tan(angle)


def _groups(found: list[float]) -> tuple[float, ...]:
    """Return the means of two groups if nearly all of the variance lies between them."""
    number = len(found)
    sizes = np.arange(_LEAST_GROUP, number - _LEAST_GROUP + 1)
    away = np.asarray(found) - np.mean(found)
    whole = float(away @ away)
    if number < _LEAST_DRAWS or whole == 0:
        return ()
    below = np.cumsum(away)[sizes - 1]
    between = below**2 / sizes + below**2 / (number - sizes)
    at = int(np.argmax(between))
    if whole - between[at] >= max(_WITHIN[0], _WITHIN[1] - 1 / number) * whole:
        return ()
    low, high = found[: sizes[at]], found[sizes[at] :]
    return float(np.mean(low)), float(np.mean(high))
