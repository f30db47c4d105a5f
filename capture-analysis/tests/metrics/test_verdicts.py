"""Verdicts against the truth of simulated captures."""

import numpy as np
import pytest
from capture_analysis.commands import flows
from capture_analysis.facts.delivery_rate import MOST_UTILISATION
from capture_analysis.facts.facts import Evidence, Facts
from capture_analysis.metrics.compression_verdict import BUNCHED, BUNCHED_IN_TICKS, FEW, Shares
from capture_analysis.metrics.compression_verdict import verdict as judged
from capture_analysis.one_capture.connections import Connections
from capture_analysis.one_capture.document import document
from capture_analysis.one_capture.evidence import GUESSED_RATE, LEAST_ACKS, NO_RATE
from capture_analysis.one_capture.single import measure
from capture_analysis.pages.headline import headline
from confusion import WRONG, Told, confusion, told
from kept_simulations import kept
from truth_corpus import KINDS, corpus

pytestmark = pytest.mark.slow

CAPTURES = 6


@pytest.fixture(scope="module")
def verdicts() -> list[Told]:
    """Return the verdicts on some captures of each kind."""
    return [
        each
        for simulated in kept(f"verdicts {CAPTURES}", lambda: corpus(CAPTURES))
        for each in told(simulated)
    ]


def test_verdicts_are_true(verdicts: list[Told]) -> None:
    """Under 1 % of verdicts "compressed" are wrong, and under 5 % of compressed captures missed."""
    table = confusion(verdicts)
    assert table["not", "compressed"] < 0.01 * sum(
        n for (_, said), n in table.items() if said == "compressed"
    )
    assert table["compressed", "not"] < 0.05 * sum(
        n for (true, _), n in table.items() if true == "compressed"
    )
    assert table["compressed", "compressed"] > 0
    assert table["not", "not"] > 0


@pytest.mark.parametrize(
    ("evidence", "shares", "said"),
    [
        (Evidence.NONE, Shares(0, 0, 0), NO_RATE),
        (Evidence.GUESSED, Shares(0, 0, 0), GUESSED_RATE),
        (Evidence.GUESSED, Shares(0.5, 0, None), GUESSED_RATE),
        (Evidence.GUESSED, Shares(0, 0, 0.05), 1),
        (Evidence.MEASURED, Shares(0, 0, 0.02), FEW),
        (Evidence.MEASURED, Shares(0.01, 0, None), 0),
        (Evidence.MEASURED, Shares(0.5, 0, None), BUNCHED),
        (Evidence.GIVEN, Shares(0.5, 0, None), BUNCHED),
        (Evidence.MEASURED, Shares(0.5, 0.3, 0.01), BUNCHED_IN_TICKS),
        (Evidence.MEASURED, Shares(0.5, 0.46, 0.01), 0),
    ],
)
def test_evidence_decides(evidence: Evidence, shares: Shares, said: int | str) -> None:
    """A verdict follows from the rate's evidence and the two shares, as its definition says."""
    facts = Facts.without_knowledge(2)
    facts.rate_evidence[0] = evidence
    assert judged(shares, 0, facts) == said


def test_measured_rates_are_true(verdicts: list[Told]) -> None:
    """Under 2 % of measured rates are off by more than a tenth; guesses often are."""
    errors = {
        evidence: np.array([each.error for each in verdicts if each.evidence == evidence])
        for evidence in (Evidence.MEASURED, Evidence.GUESSED)
    }
    wrong = {evidence: (found > WRONG).mean() for evidence, found in errors.items()}
    assert len(errors[Evidence.MEASURED]) > 100
    assert wrong[Evidence.MEASURED] < 0.02
    assert wrong[Evidence.GUESSED] > 0.1


def test_pace_of_the_acks_own_link() -> None:
    """On paths whose links differ tenfold, under a tenth of measured rates are wrong."""
    found = [each for simulated in corpus(20, kinds=["asymmetric"]) for each in told(simulated)]
    errors = np.array([each.error for each in found if each.evidence == Evidence.MEASURED])
    assert len(errors) > 30
    assert (errors > WRONG).mean() < 0.1


def test_what_a_receiver_does_is_no_compression(verdicts: list[Told]) -> None:
    """If a receiver holds or merges ACKs, the path is never called compressing."""
    held = [each for each in verdicts if each.kind in ("held", "merged") and each.true == "not"]
    assert held
    assert not [each for each in held if each.said == "compressed"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_capture_agrees_with_itself(kind: str) -> None:
    """No use of a link exceeds 1.05; page, table and JSON agree; each verdict has evidence."""
    for simulated in corpus(2, seed=7, kinds=[kind]):
        measured = measure(simulated.capture)
        for flow in document(measured)["flows"]:
            listed = flows.row(measured, Connections(measured), flow["id"])[-1]
            ways = [direction for direction in ("forward", "backward") if flow[direction]]
            main = max(
                ways, key=lambda direction: flow[direction]["payload"]["value"], default=None
            )
            for direction in ways:
                metrics, facts = flow[direction], flow["facts"][direction]
                for name in ("link_share", "efficiency"):
                    assert (metrics[name]["value"] or 0) <= MOST_UTILISATION
                found = metrics["compression_verdict"]["value"]
                word = {1: "compressed", 0: "spaced"}.get(found)
                if direction == main:
                    assert listed == word if word else listed in ("bunched", "cannot tell")
                answer = dict(headline(metrics, facts))["Are ACKs compressed?"]
                if word is None:
                    assert answer.startswith("It cannot be told:")
                    continue
                assert answer.startswith("Yes" if found else "No")
                assert facts["vantage"]["value"] in ("near the data sender", "in the middle")
                assert metrics["acks"]["value"] >= LEAST_ACKS
                assert found or facts["bottleneck"]["evidence"] == "measured"
