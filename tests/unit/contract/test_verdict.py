"""A verdict is one word everywhere: on the console, in a sweep's misses and on pages."""

import pytest

from twoway.contract.metrics import ExpectationRow, FidelityRow, row_in_words
from twoway.contract.verdict import Judged, Verdict, verdict_of

MISSED = ExpectationRow(
    metric="efficiency.left",
    measured=0.61,
    unit="1",
    value=0.65,
    tolerance=0.002,
    source="theory",
    why="by hand",
    pass_=False,
)
CHECK = FidelityRow(check="largest frame, bytes", value=590, bound="590", pass_=True)


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (CHECK, Verdict.PASS),
        (MISSED, Verdict.FAIL),
        (MISSED.model_copy(update={"supported": True}), Verdict.FAIL),
        (MISSED.model_copy(update={"supported": False}), Verdict.CANNOT_TELL),
    ],
)
def test_verdict_of_a_row(row: Judged, verdict: Verdict) -> None:
    """A row that is not supported can be told neither way; others pass or fail."""
    assert verdict_of(row) is verdict


def test_row_in_words() -> None:
    """A row names what was measured, what is expected, by whom, and what limits it."""
    text = row_in_words(MISSED.model_copy(update={"limit": "real time"}))
    wanted = "efficiency.left 0.61 measured, 0.65 +- 0.002 theory; real time"
    assert " ".join(text.split()) == wanted
    assert row_in_words(MISSED.model_copy(update={"measured": None})).split()[1] == "none"
    assert row_in_words(CHECK) == "largest frame, bytes: 590, bound 590"
