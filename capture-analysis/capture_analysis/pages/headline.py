"""Answer in sentences whether ACKs are compressed, and at what cost."""

from collections.abc import Iterator, Mapping
from typing import Any

from capture_analysis.pages.page_template import number

# Jitter alone compresses a smaller share of the ACKs on any path.
_NOTABLE = 0.01
_SENDER, _RECEIVER = "near the data sender", "near the data receiver"
_SOURCES = {
    "given": "as given",
    "data": "from the spacing of its data",
    "acks": "from the pace of its acknowledgements",
    "link data": "from the spacing of all data on the link",
    "link acks": "from the pace of all acknowledgements on the link",
    "opposite": "assumed to be that of the opposite way",
}

Metrics = Mapping[str, Mapping[str, Any]]


def headline(metrics: Metrics, facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Answer the page's questions about one direction.

    Args:
        metrics: the direction's metrics: "forward" or "backward" of a document's flow.
        facts: the direction's facts, from the same document.
    """
    vantage = str(facts.get("vantage", {}).get("value", "unknown"))
    return [
        ("Are ACKs compressed?", " ".join(_compression(metrics, vantage))),
        ("What does it cost?", " ".join(_cost(metrics, facts))),
        ("How sure is this?", " ".join(_sureness(facts, vantage))),
        ("What cannot be known from here?", " ".join(_limits(metrics, vantage))),
    ]


def verdict(metrics: Metrics, facts: Mapping[str, Any]) -> str:
    """Give the shortest answer."""
    share = value(metrics, "acks_compressed")
    if share is None:
        return "Whether ACKs are compressed cannot be told"
    if share >= _NOTABLE:
        return f"ACKs are compressed: {percent(share)} of them"
    if facts.get("vantage", {}).get("value") == _RECEIVER:
        return "No ACK compression to be seen from near the receiver"
    return "ACKs are not compressed"


def value(metrics: Metrics, name: str) -> float | None:
    """Return a metric's number; None if it is undefined or missing."""
    found = metrics.get(name, {}).get("value")
    return None if found is None else float(found)


def percent(share: float | None) -> str:
    """Format a share in percent, with three significant digits."""
    return "\N{EN DASH}" if share is None else f"{100 * share:.3g} %"


def _compression(metrics: Metrics, vantage: str) -> Iterator[str]:
    share, factor = value(metrics, "acks_compressed"), value(metrics, "compression_factor")
    if share is None:
        why = metrics.get("acks_compressed", {}).get("why", "it was not measured")
        yield f"It cannot be told: {why}."
        return
    if vantage == _RECEIVER:
        yield (
            "Not to be seen from here, near the receiver: the ACKs have not passed the queue yet."
        )
    if share < _NOTABLE:
        yield f"{'They leave it' if vantage == _RECEIVER else 'No: they come'} at their data's pace"
        yield f"(all but {percent(share)})." if share else "(all of them)."
        return
    yield "They are already bunched:" if vantage == _RECEIVER else "Yes:"
    yield f"{percent(share)} of them come closer together than their data can have arrived,"
    bound = value(metrics, "compression_factor_bound")
    yield f"typically {number(factor)} times closer" + (
        f"; a queue can do at most {number(bound)} times." if bound else "."
    )


def _cost(metrics: Metrics, facts: Mapping[str, Any]) -> Iterator[str]:
    goodput, efficiency = value(metrics, "goodput"), value(metrics, "efficiency")
    rate = facts.get("bottleneck", {}).get("value")
    if goodput is None:
        yield "There is too little data to tell."
        return
    yield f"Goodput is {number(goodput)} Mbit/s"
    if efficiency is None or rate is None:
        yield "; the bottleneck's rate is unknown."
    else:
        yield f"while it sends, {percent(efficiency)} of what a bottleneck of {number(rate)} Mbit/s"
        yield "can carry alone; other traffic, losses and windows take their part of the rest, too."
    burst, bunched = value(metrics, "ack_bunch_bytes_max"), value(metrics, "acks_bunched")
    if burst and bunched:
        yield f"{percent(bunched)} of the ACKs travel in bunches, the largest of which releases"
        yield f"{number(burst)} bytes at once."


def _sureness(facts: Mapping[str, Any], vantage: str) -> Iterator[str]:
    bottleneck, at = facts.get("bottleneck", {}), facts.get("vantage", {})
    if bottleneck.get("value") is None:
        yield "The bottleneck's rate could not be found."
    else:
        source = str(bottleneck.get("source"))
        yield f"The bottleneck's rate, {number(bottleneck['value'])} Mbit/s, is known"
        yield f"{_SOURCES.get(source, source)}"
        yield (
            "and taken as it is."
            if source == "given"
            else f"({percent(bottleneck.get('confidence'))} of "
            f"{number(bottleneck.get('samples'))} gaps agree)."
        )
    if vantage == "unknown":
        yield "Where on the path the capture was made is unknown."
    else:
        yield f"The capture was made {vantage} (agreement {percent(at.get('confidence'))})."


def _limits(metrics: Metrics, vantage: str) -> Iterator[str]:
    held, queued = value(metrics, "bunches_held"), value(metrics, "bunches_compressed")
    if vantage == _RECEIVER:
        yield "What a queue does to the ACKs on their way, and the round-trip time."
    elif held is None or queued is None:
        yield (
            "Whether a queue compressed the ACKs or the receiver held them: their time stamps "
            "would tell, or a second capture near the receiver."
        )
    else:
        yield (
            f"By the ACKs' time stamps the receiver held {number(held)} bunches and the path "
            f"compressed {number(queued)}."
        )
    yield "One capture shows neither one-way delays, nor queue lengths, nor where packets are lost."
