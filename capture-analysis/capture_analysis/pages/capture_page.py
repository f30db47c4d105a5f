"""Write report.html of a capture.

The page has sentences, connections, pictures, metrics and provenance.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from capture_analysis.one_capture.registry import all_from_one
from capture_analysis.pages import page_template
from capture_analysis.pages.headline import (
    by_payload,
    headline,
    limit,
    percent,
    value,
    verdict,
    word,
)
from capture_analysis.pages.metrics_table import Table, table
from capture_analysis.pages.provenance import described_file
from capture_analysis.pictures.capture_figures import figures, note
from capture_analysis.pictures.figure import Figure
from capture_analysis.pictures.selection import Selected

_WAYS = ("forward", "backward")


@dataclass(frozen=True)
class Section:
    """A direction on the page.

    Attributes:
        name: both ends, the sender of the data first.
        flow: number of the connection.
        direction: "forward" or "backward".
        verdict: the shortest answer.
        answers: questions and answers.
        note: a sentence on packets that the pictures omit.
        events: its events by kind; times are s after the capture's first packet.
        figures: its pictures.
        metrics: its metrics, from the document.
    """

    name: str
    flow: int
    direction: str
    verdict: str
    answers: list[tuple[str, str]]
    note: str
    events: list[tuple[str, list[tuple[float, str, str]]]]
    figures: list[Figure]
    metrics: Mapping[str, Any]


def sections(document: Mapping[str, Any], selected: Sequence[Selected]) -> list[Section]:
    """Prepare the page's sections for the selected directions, in their order."""
    flows = {flow["id"]: flow for flow in document["flows"]}
    made = []
    for position, each in enumerate(selected):
        flow, direction = flows[each.number // 2], _WAYS[each.number % 2]
        suffix = f"-{position + 1}" if position else ""
        drawn = [replace(f, id=f"{f.id}{suffix}") for f in figures(each)]
        metrics, facts = flow[direction], flow["facts"][direction]
        made.append(
            Section(
                each.direction.name,
                flow["id"],
                direction,
                verdict(metrics),
                headline(metrics, facts),
                note(each),
                _events(each),
                drawn,
                metrics,
            )
        )
    return made


def _events(each: Selected) -> list[tuple[str, list[tuple[float, str, str]]]]:
    origin_ns = each.direction.origin_ns
    return [
        (
            group.title,
            [((e.time_ns - origin_ns) / 1e9, e.words, e.wireshark_filter) for e in group.events],
        )
        for group in each.events
    ]


def write_page(
    path: Path, document: Mapping[str, Any], shown: Sequence[Section], command: str
) -> None:
    """Write the page of one capture; a failure leaves no file.

    Args:
        path: the page.
        document: the document of the capture (document.py).
        shown: the directions to show.
        command: the command line, for quoting.
    """
    page_template.write(
        path,
        "capture.html.j2",
        [figure for section in shown for figure in section.figures],
        document=document,
        sections=shown,
        headline=_headline(document, shown),
        connections=_connections(document),
        tables=_tables(document, shown),
        files=[described_file(Path(document["capture"]["path"]))],
        command=command,
    )


def _headline(document: Mapping[str, Any], shown: Sequence[Section]) -> list[str]:
    """Return the verdict on the direction with most payload, its name, and all by payload."""
    if not shown:
        return ["No connection carries data"]
    first = shown[0]
    listed = [
        flow[direction] for flow in document["flows"] for direction in _WAYS if flow[direction]
    ]
    facts = {flow["id"]: flow["facts"] for flow in document["flows"]}[first.flow]
    of = f"Connection {first.flow}, {first.name}"
    captured = facts[first.direction]["vantage"]["value"]
    where = "captured at an unknown place" if captured == "unknown" else f"captured {captured}"
    return [
        " ".join(limit(first.metrics, captured)),
        f"{of}, {where}. {first.verdict}.",
        by_payload(listed) if len(listed) > 1 else "",
    ]


def _connections(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Make a table's rows: one for each direction that has data, most payload first."""
    rows: list[dict[str, Any]] = [
        {
            "flow": flow["id"],
            "ends": (flow["source"], flow["destination"])[:: 1 if direction == "forward" else -1],
            "vlans": flow.get("vlans", []),
            "payload": value(flow[direction], "payload"),
            "goodput": value(flow[direction], "goodput"),
            "rtt": value(flow[direction], "rtt_median"),
            "retransmitted": percent(value(flow[direction], "retransmitted")),
            "verdict": word(flow[direction]),
            "filter": flow["wireshark_filter"],
            "vantage": flow["facts"][direction].get("vantage", {}).get("value"),
        }
        for flow in document["flows"]
        for direction in _WAYS
        if flow[direction]
    ]
    return sorted(rows, key=lambda row: -(row["payload"] or 0.0))


def _tables(document: Mapping[str, Any], shown: Sequence[Section]) -> list[Table]:
    directions = table(
        [f"connection {each.flow}, {each.name}" for each in shown],
        [(each.title, each.vantage, each.per_direction) for each in all_from_one()],
        [each.metrics for each in shown],
    )
    whole = table(
        ["the capture"],
        [(each.title, each.vantage, each.per_capture) for each in all_from_one()],
        [document["metrics"]],
    )
    return [directions, whole] if shown else [whole]
