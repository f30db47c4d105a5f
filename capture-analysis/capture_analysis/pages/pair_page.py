"""Write report.html of two captures of one path."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capture_analysis.pages import page_template
from capture_analysis.pages.headline import Metrics, percent, value
from capture_analysis.pages.metrics_table import Table, table
from capture_analysis.pages.page_template import described_file
from capture_analysis.pages.pair_headline import pair_headline, pair_verdict
from capture_analysis.pictures.figure import Figure
from capture_analysis.two_captures.registry import all_from_pair

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


def _tables(document: Mapping[str, Any], described: Sequence[_Described]) -> list[Table]:
    estimators = all_from_pair()
    directions = table(
        [f"connection {each.flow}, {each.name}" for each in described],
        [(each.title, each.vantage, each.per_direction) for each in estimators],
        [each.metrics for each in described],
    )
    path = table(
        ["A to B", "B to A"],
        [(each.title, each.vantage, each.per_path_direction) for each in estimators],
        [document["ways"]["a_to_b"], document["ways"]["b_to_a"]],
    )
    both = table(
        ["both ways"],
        [(each.title, each.vantage, each.per_pair) for each in estimators],
        [document["metrics"]],
    )
    return [directions, path, both] if described else [path, both]
