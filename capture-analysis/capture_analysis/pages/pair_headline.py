"""Sentences on the path between two captures."""

from collections.abc import Iterator, Mapping
from typing import Any

from capture_analysis.ack_compression import COMPRESSED_BELOW
from capture_analysis.pages.headline import Metrics, beside_bound, percent, value
from capture_analysis.pages.page_template import number

# Fewer ACKs in clear compression events are no finding, nor is a smaller share of the gaps.
_NOTABLE, _LEAST_ACKS = 0.01, 10


def pair_verdict(metrics: Metrics) -> str:
    """Give the shortest answer about one direction."""
    if value(metrics, "acks_compressed") is None:
        return "Too few ACKs passed both captures to tell whether they are compressed"
    if not (share := _clear_share(metrics)):
        return "ACKs are not compressed between the two captures"
    return f"ACKs are compressed between the two captures: {percent(share)} of them"


def _clear_share(metrics: Metrics) -> float:
    """Return the share of ACKs in events above the hosts' own times; 0 if that is no finding.

    Gaps that shrank alone tell nothing: on a LAN jitter shrinks as many as it stretches.
    """
    acks = value(metrics, "compression_clear") or 0.0
    share = acks / max(value(metrics, "ack_gaps") or 0.0, acks, 1)
    return share if acks >= _LEAST_ACKS and share >= _NOTABLE else 0.0


def pair_headline(metrics: Metrics, document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Answer the page's questions about one direction.

    Args:
        metrics: the direction's metrics: "forward" or "backward" of a document's flow.
        document: the document of the pair (pair_document.py).
    """
    return [
        ("Are ACKs compressed?", " ".join(_compression(metrics))),
        ("Was it the path or the receiver?", " ".join(_receiver(metrics))),
        ("What does it cost?", " ".join(_cost(metrics, document))),
        ("How sure is this?", " ".join(_sureness(metrics, document))),
    ]


def _compression(metrics: Metrics) -> Iterator[str]:
    share, factor = value(metrics, "acks_compressed"), value(metrics, "compression_factor")
    if share is None:
        yield "Too few ACKs passed both captures to tell."
        return
    yield f"{percent(share)} of the gaps between ACKs shrank below {COMPRESSED_BELOW:g} of what"
    yield "they were when sent."
    if share >= _NOTABLE and not _clear_share(metrics):
        yield "No compression event of ten ACKs in all exceeds the hosts' own times of 0.2 ms."
    events, acks = value(metrics, "compression_events"), value(metrics, "compression_acks")
    if events:
        yield f"By Paxson's definition that makes {number(events)} compression events with"
        yield f"{number(acks)} ACKs."
    bound = value(metrics, "compression_factor_bound")
    if factor is not None:
        yield f"ACKs that were sent back to back typically arrive {number(factor)} times closer" + (
            beside_bound(factor, bound) if bound else "."
        )


def _receiver(metrics: Metrics) -> Iterator[str]:
    held = value(metrics, "held_acks")
    if held is None:
        yield "It cannot be told."
    elif held:
        yield f"{number(held)} ACKs were sent in bunches that the receiver had held"
        yield f"({number(value(metrics, 'held_events'))} times)."
    else:
        cause = "The path" if _clear_share(metrics) else "Neither"
        yield f"{cause}: the receiver sent no ACKs in a bunch."


def _cost(metrics: Metrics, document: Mapping[str, Any]) -> Iterator[str]:
    direction = document["ways"].get(str(metrics.get("data_go", "")), {})
    peak, busy = value(direction, "queue_peak"), value(direction, "utilisation")
    lost, offered = value(metrics, "data_lost"), value(metrics, "data_offered")
    if peak is not None:
        yield f"The queue on the path of its data holds up to {number(peak)} packets"
        yield f"(mean {number(value(direction, 'queue_mean'))})."
    if busy is not None:
        yield f"The link in that direction is busy {percent(busy)} of the time."
    neither = value(document["metrics"], "neither_busy")
    if neither is not None:
        yield f"For {percent(neither)} of the time neither direction is."
    if lost is not None:
        yield f"{number(lost)} of {number(offered)} data packets were lost between the captures."


def _sureness(metrics: Metrics, document: Mapping[str, Any]) -> Iterator[str]:
    matched, clock = document["matched"], document["clock"]
    yield f"{number(matched['packets'])} packets were recognised in both captures, by"
    yield f"{matched['by']}. Clocks: {clock['how']}."
    above = value(metrics, "factors_above_bound")
    if above:
        yield f"{number(above)} factors lie above the bound: time stamps of a capture are off."
    if clock["uncertainty_ns"] is not None:
        yield (
            "One-way delays are as accurate as the clocks' offset, "
            f"{number(clock['uncertainty_ns'] / 1e6)} ms; spacing, compression and queueing delay "
            "do not depend on it."
        )
