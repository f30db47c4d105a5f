"""Comparing a metric with a statement, and the words for the outcome."""

import math
from enum import Enum

from rich.markup import escape

from twoway.contract.statements import Bounds


class Verdict(Enum):
    """The outcome of a comparison, by the words for it.

    PASS and FAIL are for predictions and fidelity checks. WARNING and NOT_PROVEN, for
    checks, fail no run.
    CONTRADICTED is for predictions. AGREES to NO_RUN are for claims, AS_STATED and CHANGED for
    findings.
    """

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "FAIL"
    CONTRADICTED = "contradicted, on record"
    AGREES = "agrees"
    EXPLAINED = "differs, explained"
    PAPER_DIFFERS = "the paper contradicts itself"
    UNEXPLAINED = "differs, unexplained"
    NOT_COMPARABLE = "not comparable"
    NO_RUN = "other run missing"
    AS_STATED = "as stated"
    CHANGED = "not as stated"
    CANNOT_TELL = "cannot be told"
    WARNING = "warning"
    NOT_PROVEN = "not proven"


_COLOURS = {
    Verdict.PASS: "green",
    Verdict.AGREES: "green",
    Verdict.AS_STATED: "green",
    Verdict.FAIL: "red",
    Verdict.CONTRADICTED: "red",
    Verdict.UNEXPLAINED: "red",
}


def judge(said: Bounds, measured: float | None, error: float | None = 0.0) -> Verdict:
    """Compare a metric, known to within an error, with a statement.

    The true value lies between measurement - error and measurement + error.

    PASS: for a value, the measurement is within the tolerance, and the error is not larger than the
    tolerance. For bounds, the whole interval is within them.
    FAIL: the whole interval is outside. For a value, the miss is larger than tolerance plus error.
    CANNOT_TELL: everything else; never without an error.

    Args:
        said: the statement: value and tolerance, or at_least, at_most, or both.
        measured: the metric; None if undefined, which no statement expects.
        error: the largest error of the metric, in its unit; None if the run's clock does not
            resolve it.
    """
    if measured is None:
        return Verdict.FAIL
    if error is None:
        return Verdict.CANNOT_TELL
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


def mark_verdict(verdict: Verdict, text: str) -> str:
    """Put a coloured verdict in front of a line, as rich's markup."""
    return f"[{_COLOURS.get(verdict, 'yellow')}]{verdict.value:<4}[/] {escape(text)}"


def _range(said: Bounds) -> tuple[float, float]:
    if said.value is not None:
        tolerance = said.tolerance or 0
        return said.value - tolerance, said.value + tolerance
    low, high = said.at_least, said.at_most
    return -math.inf if low is None else low, math.inf if high is None else high
