"""Write report.html of a capture.

The page has sentences, connections, pictures, metrics and provenance.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from capture_analysis.one_capture.connections import CAUSES, Connections
from capture_analysis.one_capture.datagram_rows import HEADINGS, datagram_rows, largest
from capture_analysis.one_capture.registry import all_from_one
from capture_analysis.pages import page_template
from capture_analysis.pages.connections_table import ROWS, pack_rows, slowest, summary, sums
from capture_analysis.pages.headline import headline, limit, percent, value, word
from capture_analysis.pages.page_template import described_file, metrics_table
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
        answers: questions and answers.
        note: a sentence on packets that the pictures omit.
        events: its events by kind; times are s after the capture's first packet.
        figures: its pictures.
        metrics: its metrics, from the document.
    """

    name: str
    flow: int
    direction: str
    answers: list[tuple[str, str]]
    note: str
    events: list[tuple[str, list[tuple[float, str, str]]]]
    figures: list[Figure]
    metrics: Mapping[str, Any]


def sections(
    document: Mapping[str, Any], selected: Sequence[Selected], *, trouble: bool
) -> list[Section]:
    """Prepare the page's sections for the selected directions, in their order.

    Args:
        document: the document of the capture.
        selected: the directions.
        trouble: True if the page's headline is about all connections, and not about the first.
    """
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
                headline(metrics, facts, without_limit=not position and not trouble),
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
    path: Path,
    document: Mapping[str, Any],
    shown: Sequence[Section],
    connections: Connections,
    command: str,
) -> None:
    """Write the page of one capture; a failure leaves no file.

    Args:
        path: the page.
        document: the document of the capture (document.py).
        shown: the directions to show.
        connections: all connections of the capture.
        command: the command line, for quoting.
    """
    page_template.write(
        path,
        "capture.html.j2",
        [figure for section in shown for figure in section.figures],
        document=document,
        sections=shown,
        headline=_headline(document, shown, connections),
        finder=_finder(connections) if len(connections) > 1 else None,
        directions=_directions(document),
        datagrams=(HEADINGS, datagram_rows(document["datagrams"])),
        tables=_tables(document, shown),
        files=[described_file(Path(document["capture"]["path"]))],
        command=command,
    )


def _headline(
    document: Mapping[str, Any], shown: Sequence[Section], connections: Connections
) -> list[str]:
    """Say what is slow: of all connections if one is not fine, else of the one with most data."""
    if in_trouble(connections):
        return [summary(connections), slowest(connections)]
    if not shown:
        udp = "" if len(connections) else largest(document["datagrams"])
        return [slowest(connections) or udp or "No connection carries data"]
    first = shown[0]
    facts = {flow["id"]: flow["facts"] for flow in document["flows"]}[first.flow]
    captured = facts[first.direction]["vantage"]["value"]
    where = "captured at an unknown place" if captured == "unknown" else f"captured {captured}"
    several = len(connections) > 1
    most = ", has most data" if several else ""
    return [
        " ".join(limit(first.metrics, captured)),
        f"Connection {first.flow}, {first.name}, {where}{most}.",
        summary(connections) if several else slowest(connections),
    ]


def in_trouble(connections: Connections) -> bool:
    """Tell whether the headline is about all connections: one of several is not fine."""
    return len(connections) > 1 and not connections.fine.all()


def _finder(connections: Connections) -> dict[str, Any]:
    """Prepare the table of all connections for its template."""
    number = connections.words("cause").number
    counts = [(cause, int((number == at).sum())) for at, cause in enumerate(CAUSES)]
    return {
        "rows": min(len(connections), ROWS),
        "causes": [(cause, count) for cause, count in counts if count],
        "packed": pack_rows(connections),
        "sums": sums(connections),
    }


def _directions(document: Mapping[str, Any]) -> list[dict[str, Any]]:
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


def _tables(document: Mapping[str, Any], shown: Sequence[Section]) -> list[dict[str, Any]]:
    directions = metrics_table(
        [f"connection {each.flow}, {each.name}" for each in shown],
        [(each.title, each.vantage, each.per_direction) for each in all_from_one()],
        [each.metrics for each in shown],
    )
    whole = metrics_table(
        ["the capture"],
        [(each.title, each.vantage, each.per_capture) for each in all_from_one()],
        [document["metrics"]],
    )
    return [directions, whole] if shown else [whole]
