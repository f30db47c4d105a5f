"""What an experiment expects of a metric: a value within a tolerance, or a bound."""

import math
from collections.abc import Mapping
from typing import Any

FIELDS = ("value", "tolerance", "at_least", "at_most")


def holds(said: Mapping[str, Any], measured: float | None) -> bool:
    """Whether a metric is as expected.

    Args:
        said: the expectation: value and tolerance, or at_least, at_most, or both; else null.
        measured: the metric; None if undefined, which nothing expects.
    """
    if measured is None:
        return False
    low, high = _range(said)
    # Decimal fractions have no exact binary form: 1.98 is within 0.02 of 2.
    rounding = 4 * math.ulp(max(abs(edge) for edge in (low, high) if math.isfinite(edge)))
    return low - rounding <= measured <= high + rounding


def margin(said: Mapping[str, Any], measured: float | None) -> float:
    """How far off a measurement may be, and still tell whether it is as expected.

    Of a value it is the tolerance; of a bound, the way from the measurement to it.
    """
    if said["value"] is not None:
        return float(said["tolerance"])
    if measured is None:
        return math.inf
    return min(abs(measured - edge) for edge in _range(said) if math.isfinite(edge))


def in_words(said: Mapping[str, Any], digits: int = 5) -> str:
    """The expectation as people say it, such as "0.65 +- 0.002" or "at most 4.95"."""
    if said["value"] is not None:
        return f"{said['value']:.{digits}g} +- {said['tolerance']:.2g}"
    bounds = {"at least": said["at_least"], "at most": said["at_most"]}
    return ", ".join(
        f"{word} {edge:.{digits}g}" for word, edge in bounds.items() if edge is not None
    )


def _range(said: Mapping[str, Any]) -> tuple[float, float]:
    if said["value"] is not None:
        return said["value"] - said["tolerance"], said["value"] + said["tolerance"]
    low, high = said["at_least"], said["at_most"]
    return -math.inf if low is None else low, math.inf if high is None else high
