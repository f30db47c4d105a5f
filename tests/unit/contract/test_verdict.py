"""A verdict is one word everywhere: on the console, in a sweep's misses and on pages."""

from typing import Any

import pytest

from twoway.contract.verdict import Verdict, row_in_words, verdict_of

MISSED: dict[str, Any] = {
    "metric": "efficiency.left",
    "measured": 0.61,
    "value": 0.65,
    "tolerance": 0.002,
    "at_least": None,
    "at_most": None,
    "source": "theory",
    "pass": False,
}
CHECK: dict[str, Any] = {"check": "largest frame, bytes", "value": 590, "bound": 590, "pass": True}


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (CHECK, Verdict.PASS),
        (MISSED, Verdict.FAIL),
        (MISSED | {"supported": True}, Verdict.FAIL),
        (MISSED | {"supported": False}, Verdict.CANNOT_TELL),
    ],
)
def test_verdict_of_a_row(row: dict[str, Any], verdict: Verdict) -> None:
    """A row that is not supported can be told neither way; others pass or fail."""
    assert verdict_of(row) is verdict


def test_row_in_words() -> None:
    """A row names what was measured, what is expected, by whom, and what limits it."""
    text = row_in_words(MISSED | {"limit": "real time"})
    wanted = "efficiency.left 0.61 measured, 0.65 +- 0.002 theory; real time"
    assert " ".join(text.split()) == wanted
    assert row_in_words(MISSED | {"measured": None}).split()[1] == "none"
    assert row_in_words(CHECK) == "largest frame, bytes: 590, bound 590"
