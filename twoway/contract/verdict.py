"""Expectations of a metric, and verdicts on them.

An expectation is a value with a tolerance, or a bound.
"""

import math
from collections.abc import Sequence
from enum import Enum
from typing import Any, Literal

from pydantic import Field
from rich.markup import escape

from twoway.contract.model import Record

# The verdict on a run on whose clock no expectation can be told.
NOTHING_TOLD = "no expectation can be told on this run's clock"


class Verdict(Enum):
    """A measurement's verdict on an expectation, by the word for it."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "FAIL"
    CANNOT_TELL = "?"


class Bounds(Record):
    """A value with a tolerance, or bounds."""

    value: float | None = Field(default=None, description="the expected value")
    tolerance: float | None = Field(default=None, description="the largest difference from it")
    at_least: float | None = Field(default=None, description="instead of a value, a bound")
    at_most: float | None = Field(default=None, description="likewise")


class Expectation(Bounds):
    """What somebody expects of one metric."""

    metric: str = Field(description="the metric's name")
    source: Literal["theory", "paper", "simulation"] = Field(description="who says so")
    why: str = Field(description="where value and tolerance come from")


class Expected(Expectation):
    """An expectation of one metric at one point."""

    at: dict[str, Any] = Field(
        default={}, description="the points that it is about, values by axis"
    )


class Judged(Record):
    """A row of metrics.json with a verdict."""

    pass_: bool = Field(description="the verdict")
    supported: bool | None = Field(
        default=None, description="false if it cannot be told on the run's clock"
    )


def judge(said: Bounds, measured: float | None, error: float = 0.0) -> Verdict:
    """Compare a metric, known to within an error, with what is expected of it.

    The true value lies between measurement - error and measurement + error.

    PASS: for a value, the measurement is within the tolerance, and the error is not larger than the
    tolerance. For bounds, the whole interval is within them.
    FAIL: the whole interval is outside. For a value, the miss is larger than tolerance plus error.
    CANNOT_TELL: everything else; never without an error.

    Args:
        said: the expectation: value and tolerance, or at_least, at_most, or both.
        measured: the metric; None if undefined, which nothing expects.
        error: how far the metric may be off, in its unit; infinite if it says nothing.
    """
    if measured is None:
        return Verdict.FAIL
    low, high = _range(said)
    # Decimal fractions have no exact binary form: 1.98 is within 0.02 of 2.
    rounding = 4 * math.ulp(max(abs(edge) for edge in (low, high) if math.isfinite(edge)))
    low, high = low - rounding, high + rounding
    if measured + error < low or measured - error > high:
        return Verdict.FAIL
    if said.value is None:
        passes = low <= measured - error and measured + error <= high
    else:
        passes = low <= measured <= high and error <= (said.tolerance or 0)
    return Verdict.PASS if passes else Verdict.CANNOT_TELL


def verdict_of(row: Judged) -> Verdict:
    """Read the verdict on an expectation or a check of metrics.json."""
    if row.supported is False:
        return Verdict.CANNOT_TELL
    return Verdict.PASS if row.pass_ else Verdict.FAIL


def marked(verdict: Verdict, text: str) -> str:
    """Put a verdict, in its colour, before a line, as rich's markup."""
    colour = {Verdict.PASS: "green", Verdict.FAIL: "red"}.get(verdict, "yellow")
    return f"[{colour}]{verdict.value:<4}[/] {escape(text)}"


def nothing_told(rows: Sequence[Judged]) -> bool:
    """Tell whether there are expectations and none of them can be told."""
    return bool(rows) and all(row.supported is False for row in rows)


def in_words(said: Bounds, digits: int = 5) -> str:
    """Write an expectation for people, as "0.65 +- 0.002" or "at most 4.95"."""
    if said.value is not None:
        return f"{said.value:.{digits}g} +- {said.tolerance or 0:.2g}"
    bounds = {"at least": said.at_least, "at most": said.at_most}
    return ", ".join(
        f"{word} {edge:.{digits}g}" for word, edge in bounds.items() if edge is not None
    )


def _range(said: Bounds) -> tuple[float, float]:
    if said.value is not None:
        tolerance = said.tolerance or 0
        return said.value - tolerance, said.value + tolerance
    low, high = said.at_least, said.at_most
    return -math.inf if low is None else low, math.inf if high is None else high
