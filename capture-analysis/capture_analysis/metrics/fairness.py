"""Jain's fairness index of the goodputs of all directions that carry data.

    index = (sum x)^2 / (n * sum x^2)

Unit 1; from 1/n (one direction has all) to 1 (all equal). Jain, Chiu, Hawe 1984. Directions with
one segment have no goodput and are left out; in a run a connection without goodput counts.

Vantage: any. One capture does not show which connections share a bottleneck, and the index does not
weigh connections by their duration.
"""

from capture_analysis.definition import Definition
from capture_analysis.facts.facts import Facts, FloatArray
from capture_analysis.metrics.goodput import goodputs_bit
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override

JAIN_INDEX = Definition(
    "jain_index",
    "1",
    "Jain's index of the goodputs of all directions with data",
    "Jain, Chiu, Hawe 1984",
    most=1,
)
GOODPUT_TOTAL = Definition("goodput_total", "Mbit/s", "sum of the goodputs of all directions")


class Fairness(FromOne):
    """Jain's fairness index over all directions with data."""

    title = "Fairness"
    picture = "rates"
    per_capture = (JAIN_INDEX, GOODPUT_TOTAL)

    @override
    def of_capture(self, tally: Tally, facts: Facts) -> Values:
        goodput = goodputs_bit(tally)
        goodput = goodput[goodput > 0]
        return {
            JAIN_INDEX: jain_index(goodput)
            if len(goodput) > 1
            else "fewer than two directions with data",
            GOODPUT_TOTAL: float(goodput.sum() / 1e6),
        }


def jain_index(shares: FloatArray) -> float:
    """Compute Jain's index of shares, shape (n,), at least one above 0."""
    return float(shares.sum() ** 2 / (len(shares) * (shares**2).sum()))
