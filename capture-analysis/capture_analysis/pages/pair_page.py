"""Write report.html of two captures of one path."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capture_analysis.ack_compression import COMPRESSED_BELOW
from capture_analysis.pages import page_template
from capture_analysis.pages.headline import Metrics, beside_bound, percent, value
from capture_analysis.pages.page_template import described_file, metrics_table, number
from capture_analysis.pictures.figure import Figure
from capture_analysis.two_captures.registry import all_from_pair

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
    yield f"{percent(share)} of the gaps between ACKs shrank below {COMPRESSED_BELOW:g} of"
    yield "what they were when sent."
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


# Directions that the page describes in words.
_DIRECTIONS = 2
_WAYS = ("forward", "backward")


@dataclass(frozen=True)
class _Described:
    """A direction, described in words."""

    flow: int
    name: str
    metrics: Metrics
    verdict: str
    answers: list[tuple[str, str]]


def write_pair_page(
    path: Path, document: Mapping[str, Any], figures: Sequence[Figure], note: str, command: str
) -> None:
    """Write the page of two captures; a failure leaves no file.

    Args:
        path: the page.
        document: the document of the pair (pair_document.py).
        figures: the pictures (pair_pictures.py).
        note: a sentence on packets that the pictures omit.
        command: the command line, for quoting.
    """
    described = _describe_directions(document)
    first, *others = _verdicts(described)
    page_template.write(
        path,
        "pair.html.j2",
        figures,
        document=document,
        verdict=first,
        others=others,
        directions=described,
        note=note,
        connections=_connections(document),
        tables=_tables(document, described),
        files=[described_file(Path(each["path"])) for each in document["captures"]],
        command=command,
    )


def _verdicts(described: Sequence[_Described]) -> list[str]:
    """Return the verdict on the first direction, then a sentence for each."""
    if not described:
        return ["No connection's data passed both captures"]
    each = [f"Connection {one.flow}, {one.name}: {one.verdict}." for one in described]
    return [described[0].verdict, *each]


def _carrying(document: Mapping[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """List the connections with "forward" or "backward" where data passed, most packets first."""
    offered = [
        (value(flow[direction], "data_offered") or 0.0, flow, direction)
        for flow in document["flows"]
        for direction in _WAYS
        if flow[direction]
    ]
    return [each[1:] for each in sorted(offered, key=lambda each: -each[0]) if each[0]]


def _ends(flow: Mapping[str, Any], direction: str) -> tuple[str, str]:
    ends = flow["source"], flow["destination"]
    return ends if direction == "forward" else ends[::-1]


def _describe_directions(document: Mapping[str, Any]) -> list[_Described]:
    return [
        _Described(
            flow["id"],
            " > ".join(_ends(flow, direction)),
            flow[direction],
            pair_verdict(flow[direction]),
            pair_headline(flow[direction], document),
        )
        for flow, direction in _carrying(document)[:_DIRECTIONS]
    ]


def _connections(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "flow": flow["id"],
            "ends": _ends(flow, direction),
            "vlans": flow.get("vlans", []),
            "way": flow[direction]["data_go"].replace("_", " ").replace("a", "A").replace("b", "B"),
            "offered": value(flow[direction], "data_offered"),
            "lost": value(flow[direction], "data_lost"),
            "compressed": percent(value(flow[direction], "acks_compressed")),
            "factor": value(flow[direction], "compression_factor"),
            "held": value(flow[direction], "held_acks"),
            "filter": flow["wireshark_filter"],
        }
        for flow, direction in _carrying(document)
    ]


def _tables(document: Mapping[str, Any], described: Sequence[_Described]) -> list[dict[str, Any]]:
    estimators = all_from_pair()
    directions = metrics_table(
        [f"connection {each.flow}, {each.name}" for each in described],
        [(each.title, each.vantage, each.per_direction) for each in estimators],
        [each.metrics for each in described],
    )
    path = metrics_table(
        ["A to B", "B to A"],
        [(each.title, each.vantage, each.per_path_direction) for each in estimators],
        [document["ways"]["a_to_b"], document["ways"]["b_to_a"]],
    )
    both = metrics_table(
        ["both ways"],
        [(each.title, each.vantage, each.per_pair) for each in estimators],
        [document["metrics"]],
    )
    return [directions, path, both] if described else [path, both]
