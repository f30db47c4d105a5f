"""A row of verdicts.json in words: the measurement, the statement, and its source."""

from typing import Any

import pytest
from support.synthetic_run import claim, finding, prediction

from twoway.contract.judge import Verdict, marked
from twoway.contract.metrics import FidelityRow
from twoway.contract.verdicts import ClaimRow, FindingRow, PredictionRow, Row, row_in_words

SEEN: dict[str, Any] = {"measured": 0.61, "unit": "1", "verdict": Verdict.FAIL}
PREDICTED = PredictionRow(**prediction("efficiency.left", 0.65, tolerance=0.002), **SEEN)
CLAIMED = ClaimRow(**claim("efficiency.left", at_most=0.6), **SEEN)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (PREDICTED, "efficiency.left 0.61 measured, 0.65 +- 0.002 predicted by by_hand"),
        (CLAIMED, "efficiency.left 0.61 measured, at most 0.6 in table 1"),
        (
            CLAIMED.model_copy(update={"by": "simulation", "note": "why"}),
            "efficiency.left 0.61 measured, at most 0.6 by their simulator, table 1; why",
        ),
        (
            CLAIMED.model_copy(update={"against": "zhang-fig2", "compared": 0.0123}),
            "efficiency.left 0.61 measured, +0.0123 against zhang-fig2, at most 0.6 in table 1",
        ),
        (
            FindingRow(**finding("efficiency.left", 0.6), **{**SEEN, "measured": None}),
            "efficiency.left none measured, 0.6 +- 0 seen before",
        ),
        (
            FidelityRow(check="largest frame", value=590, bound="590", verdict=Verdict.PASS),
            "largest frame: 590, bound 590",
        ),
    ],
)
def test_a_row_in_words(row: Row | FidelityRow, words: str) -> None:
    """Each kind of row names the measurement, the statement, its source and the limit's source."""
    assert " ".join(row_in_words(row).split()) == words


@pytest.mark.parametrize("verdict", Verdict)
def test_a_verdict_has_its_colour(verdict: Verdict) -> None:
    """Red marks failures and unexplained differences, green success; the line has no markup."""
    red = {Verdict.FAIL, Verdict.CONTRADICTED, Verdict.UNEXPLAINED}
    green = {Verdict.PASS, Verdict.AGREES, Verdict.AS_STATED}
    colour = "red" if verdict in red else "green" if verdict in green else "yellow"
    assert marked(verdict, "[b]") == f"[{colour}]{verdict.value:<4}[/] \\[b]"
