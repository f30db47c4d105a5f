"""Sentences say what the numbers do, and what they cannot."""

from typing import Any

import pytest
from capture_analysis.pages.headline import headline, percent, verdict
from capture_analysis.pages.pair_headline import pair_headline, pair_verdict

SENDER = {
    "vantage": {"value": "near the data sender", "confidence": 1.0},
    "bottleneck": {"value": 10.0, "source": "data", "confidence": 0.9, "samples": 1000},
}
RECEIVER = SENDER | {"vantage": {"value": "near the data receiver", "confidence": 1.0}}
UNKNOWN: dict[str, Any] = {"vantage": {"value": "unknown"}, "bottleneck": {"value": None}}


def metrics(**values: Any) -> dict[str, dict[str, Any]]:
    """A direction's metrics; text is the reason why there is none."""
    return {
        name: {"value": None, "why": value} if isinstance(value, str) else {"value": value}
        for name, value in values.items()
    }


COMPRESSED = metrics(
    acks_compressed=0.5, compression_factor=20.0, compression_factor_bound=22.9, goodput=5.0
)


@pytest.mark.parametrize(
    ("values", "facts", "said"),
    [
        (COMPRESSED, SENDER, "ACKs are compressed: 50 % of them"),
        (metrics(acks_compressed=0.001), SENDER, "ACKs are not compressed"),
        (metrics(acks_compressed=0), RECEIVER, "No ACK compression to be seen from near"),
        (metrics(acks_compressed="no rate"), UNKNOWN, "Whether ACKs are compressed cannot be told"),
        ({}, {}, "Whether ACKs are compressed cannot be told"),
    ],
)
def test_verdict(values: dict[str, Any], facts: dict[str, Any], said: str) -> None:
    """The verdict depends on the share and on where the capture was made."""
    assert verdict(values, facts).startswith(said)


def test_answers_of_a_compressed_direction() -> None:
    """Share, factor, bound, goodput and what the rate rests on are in the answers."""
    text = " ".join(answer for _, answer in headline(COMPRESSED, SENDER))
    for part in (
        "50 %",
        "20 times",
        "22.9 times",
        "5 Mbit/s",
        "90 % of 1,000 gaps",
        "near the data",
    ):
        assert part in text


def test_reason_is_given() -> None:
    """Where there is no answer, there is the reason."""
    answers = dict(headline(metrics(acks_compressed="no rate"), UNKNOWN))
    assert answers["Are ACKs compressed?"] == "It cannot be told: no rate."
    assert "unknown" in answers["How sure is this?"]


def test_receiver_and_path_told_apart() -> None:
    """With time stamps the page says what the receiver held and what the path compressed."""
    told = headline(COMPRESSED | metrics(bunches_held=3, bunches_compressed=7), SENDER)
    assert "the receiver held 3 bunches and the path compressed 7" in told[3][1]
    assert "second capture" in headline(COMPRESSED, SENDER)[3][1]


def test_percent() -> None:
    """Shares are percent of three digits, and a dash if there is none."""
    assert [percent(share) for share in (0.12345, 1.0, None)] == ["12.3 %", "100 %", "\N{EN DASH}"]


DOCUMENT: dict[str, Any] = {
    "ways": {"a_to_b": metrics(queue_peak=13, utilisation=0.6)},
    "metrics": metrics(neither_busy=0.3),
    "matched": {"packets": 1000, "by": "addresses"},
    "clock": {"how": "one clock", "uncertainty_ns": None},
}


def test_pair() -> None:
    """Of two captures the share is of gaps, and path and receiver are told apart."""
    found = metrics(acks_compressed=0.25, held_acks=0, data_lost=2, data_offered=9)
    found["data_go"] = "a_to_b"  # type: ignore[assignment]
    assert pair_verdict(found).endswith("25 % of their gaps")
    text = " ".join(answer for _, answer in pair_headline(found, DOCUMENT))
    for part in ("25 %", "The path: the receiver", "up to 13 packets", "60 %", "2 of 9 data"):
        assert part in text


def test_pair_without_acks() -> None:
    """Without gaps there is no share."""
    assert pair_verdict(metrics(acks_compressed=None)).startswith("Too few ACKs")
