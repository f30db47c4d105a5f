"""Rows of fidelity checks."""

from twoway.contract.judge import Verdict
from twoway.contract.metrics import FidelityRow


def row(what: str, value: float | None, bound: str, holds: bool) -> FidelityRow:
    """Make the row of a check that holds or fails."""
    verdict = Verdict.PASS if holds else Verdict.FAIL
    return FidelityRow(check=what, value=value, bound=bound, verdict=verdict)


def withhold_pass(checked: FidelityRow, error: float, most: float, why: str) -> FidelityRow:
    """Withhold a pass from a check whose own error is larger than the experiment allows.

    Args:
        checked: the check.
        error: the error that its bound allows for.
        most: the largest such error that the experiment allows.
        why: the source of that limit.
    """
    checked = checked.model_copy(update={"needed": True})
    if error <= most:
        return checked
    bound = f"{checked.bound}; {error:.0f} is more than {most:.0f}, {why}"
    failed = checked.verdict is Verdict.FAIL
    verdict = Verdict.FAIL if failed else Verdict.CANNOT_TELL
    return checked.model_copy(update={"bound": bound, "verdict": verdict})
