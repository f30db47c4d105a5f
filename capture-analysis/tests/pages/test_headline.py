"""The page's sentences agree with the numbers, and name what these cannot show."""

from typing import Any

import pytest
from capture_analysis.metrics.congestion_control import ALIKE
from capture_analysis.pages.headline import headline, percent
from capture_analysis.pages.pair_page import pair_headline, pair_verdict

SENDER = {
    "vantage": {"value": "near the data sender", "confidence": 1.0},
    "bottleneck": {
        "value": 10.0,
        "source": "acks",
        "evidence": "measured",
        "confidence": 0.9,
        "samples": 1000,
    },
}
UNKNOWN: dict[str, Any] = {"vantage": {"value": "unknown"}, "bottleneck": {"value": None}}


def metrics(**values: Any) -> dict[str, dict[str, Any]]:
    """Make a direction's metrics; a text is the reason why a value is undefined."""
    return {
        name: {"value": None, "why": value} if isinstance(value, str) else {"value": value}
        for name, value in values.items()
    }


COMPRESSED = metrics(
    compression_verdict=1,
    acks_shrunk=0.5,
    acks_faster=0.6,
    compression_factor=20.0,
    compression_factor_bound=22.9,
    goodput=5.0,
    efficiency=0.5,
    bottleneck_rate=10.0,
    delivered_peak=6.0,
)


def test_answers_of_a_compressed_direction() -> None:
    """The answers have share, factor, bound, goodput and the evidence of the rate."""
    text = " ".join(answer for _, answer in headline(COMPRESSED, SENDER))
    for part in (
        "50 %",
        "20 times",
        "22.9 times",
        "5 Mbit/s",
        "The path's bottleneck carries 10 Mbit/s",
        "90 % of 1,000 gaps",
        "delivered up to 6 Mbit/s",
        "near the data",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("factor", "end"),
    [
        (22.9, "closer than their data; a queue can compress them at most 22.9 times."),
        (22.92, "closer than their data: as close as a queue can send them."),
        (23.5, "closer than their data, more than a queue can compress them: 22.9 times."),
    ],
)
def test_a_factor_is_compared_with_its_bound(factor: float, end: str) -> None:
    """A factor slightly above its bound counts as the bound; one far above it is an error."""
    found = COMPRESSED | metrics(compression_factor=factor)
    assert dict(headline(found, SENDER))["Are ACKs compressed?"].endswith(end)


@pytest.mark.parametrize(
    ("evidence", "source", "said"),
    [
        ("given", "given", "10 Mbit/s, is given"),
        ("measured", "link data", "The narrowest link before the tap carries 10 Mbit/s"),
        ("guessed", "acks", "is a guess, 10 Mbit/s, from the pace"),
        ("guessed", "opposite", "is a guess, 10 Mbit/s, as for the opposite direction"),
    ],
)
def test_words_follow_evidence(evidence: str, source: str, said: str) -> None:
    """A rate is called given, measured or guessed, by its evidence."""
    found = SENDER["bottleneck"] | {"evidence": evidence, "source": source}
    answers = dict(headline(COMPRESSED, SENDER | {"bottleneck": found}))
    assert said in answers["How sure is this?"]


def test_a_guess_is_no_reference() -> None:
    """If the rate is a guess, the sentence calls the cost unknown."""
    guess = metrics(bottleneck_rate="the rate is a guess", ack_bunch_bytes_max=9, acks_bunched=0.9)
    facts = {"bottleneck": {"value": 10.0, "evidence": "guessed"}}
    answers = dict(headline(COMPRESSED | guess, facts))
    assert answers["What does it cost?"].endswith("the bottleneck's rate is unknown.")


def test_limits_are_told() -> None:
    """The cause comes first, then each share of the time, with losses and SYNs."""
    found = metrics(
        data_time=10.0,
        pauses=0,
        limited_application=0.2,
        limited_recovery=0.001,
        limited_receive_window=0.5,
        limited_congestion_window=0.199,
        limited_ack_compression=0.1,
        handshake_rtt=16.8,
        retransmissions=12,
        retransmissions_fast=9,
        retransmissions_timeout=3,
        retransmissions_spurious=0,
        syns_again=1,
    )
    assert dict(headline(found, SENDER))["What limits the transfer?"] == (
        "For 50 % of the time in which it sends, the receiver's window is full. "
        "All its time, pauses included: 50 % the receiver's window, 20 % its application, "
        "19.9 % its congestion window, 10 % ACKs held on their path. "
        "The handshake took a round trip of 16.8 ms. "
        "Segments sent again: 12 (9 because ACKs reported a gap, 3 after a time-out). "
        "Packets of the handshake sent again: 1."
    )
    told = headline(metrics(limited_application="not from here"), SENDER)
    assert dict(told)["What limits the transfer?"] == "It cannot be told: not from here."


def test_the_congestion_control_is_named() -> None:
    """The rules of a window have the name of their control, or those of all that are alike."""
    alike = f"{ALIKE} reno and lp, which move it alike here"
    for control, named in ((2, "cubic."), (alike, "reno and lp, which move it alike here.")):
        told = headline(metrics(limited_application=0.5, congestion_control=control), SENDER)
        assert f"Its window follows the rules of {named}" in dict(told)["What limits the transfer?"]


@pytest.mark.parametrize("place", ["near the data receiver", "in the middle"])
def test_the_next_step_is_named(place: str) -> None:
    """If a capture cannot tell a full congestion window from an idle sender, one that can is named.

    The sentences that the headline has are left out below it.
    """
    found = metrics(data_time=1.0, afar_sender=0.9, afar_application=0.1, standing_queue=0.0)
    facts = {"vantage": {"value": place}}
    question = "What limits the transfer?"
    assert (
        "A capture at the data's sender would tell which." in dict(headline(found, facts))[question]
    )
    assert dict(headline(found, facts, without_limit=True))[question] == ""


def test_reason_is_given() -> None:
    """The reason takes the place of a missing answer."""
    answers = dict(headline(metrics(compression_verdict="no rate"), UNKNOWN))
    assert answers["Are ACKs compressed?"] == "It cannot be told: no rate."
    assert "unknown" in answers["How sure is this?"]


def test_receiver_and_path_told_apart() -> None:
    """With time stamps the page distinguishes ACKs held by the receiver from compressed ones."""
    told = headline(COMPRESSED | metrics(bunches_held=3, bunches_compressed=7), SENDER)
    assert "the receiver held 3 bunches and the path compressed 7" in told[-1][1]
    assert "second capture" in headline(COMPRESSED, SENDER)[-1][1]


def test_percent_has_three_digits() -> None:
    """Shares are per cent with three digits; a missing value is a dash."""
    assert [percent(share) for share in (0.12345, 1.0, None)] == ["12.3 %", "100 %", "\N{EN DASH}"]


DOCUMENT: dict[str, Any] = {
    "ways": {"a_to_b": metrics(queue_peak=13, utilisation=0.6)},
    "metrics": metrics(neither_busy=0.3),
    "matched": {"packets": 1000, "by": "addresses"},
    "clock": {"how": "one clock", "uncertainty_ns": None},
}


@pytest.mark.parametrize("clear", [0, 20])
def test_gaps_that_hosts_shrank_are_no_compression(clear: int) -> None:
    """Two captures of a LAN show compressed ACKs only by events above the hosts' own times."""
    found = metrics(
        acks_compressed=0.87, compression_clear=clear, ack_gaps=4000, compression_events=6
    )
    assert pair_verdict(found) == "ACKs are not compressed between the two captures"


def test_pair_tells_path_from_receiver() -> None:
    """For two captures the share is of ACKs in events; path and receiver are told apart."""
    found = metrics(
        acks_compressed=0.6,
        ack_gaps=160,
        compression_clear=40,
        held_acks=0,
        data_lost=2,
        data_offered=9,
    )
    found["data_go"] = "a_to_b"  # type: ignore[assignment]
    assert pair_verdict(found).endswith("25 % of them")
    text = " ".join(answer for _, answer in pair_headline(found, DOCUMENT))
    for part in (
        "60 % of the gaps",
        "The path: the receiver",
        "up to 13 packets",
        "60 %",
        "2 of 9 data",
    ):
        assert part in text


def test_pair_without_acks() -> None:
    """Without gaps the share is undefined."""
    assert pair_verdict(metrics(acks_compressed=None)).startswith("Too few ACKs")


def test_what_the_capture_lacks() -> None:
    """The share of acknowledged payload that the capture lacks is named, with its effect."""
    said = dict(headline(COMPRESSED | metrics(unseen=0.02), SENDER))["How sure is this?"]
    assert "2 % of its payload is acknowledged but not in the capture: goodput" in said
    assert "not in the capture" not in dict(headline(COMPRESSED, SENDER))["How sure is this?"]
