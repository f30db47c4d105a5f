"""report.html of a capture: sentences, connections, pictures, metrics, health, provenance."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from capture_analysis import page_template
from capture_analysis.capture_figures import figures, note
from capture_analysis.errors import AnalysisError
from capture_analysis.figure import Figure
from capture_analysis.headline import headline, percent, value, verdict
from capture_analysis.measure import Quantity, all_measures
from capture_analysis.selection import Selected

_WAYS = ("forward", "backward")
_PACKAGES = ("capture-analysis", "numpy", "plotly")


@dataclass(frozen=True)
class Section:
    """A direction on the page.

    Attributes:
        name: both ends.
        flow: number of the connection.
        verdict: the shortest answer.
        answers: questions and answers.
        note: what the pictures leave out.
        figures: its pictures.
        metrics: of the document.
    """

    name: str
    flow: int
    verdict: str
    answers: list[tuple[str, str]]
    note: str
    figures: list[Figure]
    metrics: Mapping[str, Any]


@dataclass(frozen=True)
class _Row:
    """A metric of the directions on the page, and why some have none."""

    quantity: Quantity
    values: list[float | None]
    reasons: list[str]


def sections(document: Mapping[str, Any], selected: Sequence[Selected]) -> list[Section]:
    """What the page shows of the directions that were selected, in their order."""
    flows = {flow["id"]: flow for flow in document["flows"]}
    made = []
    for position, each in enumerate(selected):
        flow, way = flows[each.number // 2], _WAYS[each.number % 2]
        suffix = f"-{position + 1}" if position else ""
        drawn = [replace(f, id=f"{f.id}{suffix}") for f in figures(each)]
        metrics, facts = flow[way], flow["facts"][way]
        made.append(
            Section(
                each.direction.name,
                flow["id"],
                verdict(metrics, facts),
                headline(metrics, facts),
                note(each),
                drawn,
                metrics,
            )
        )
    return made


def write_page(
    path: Path, document: Mapping[str, Any], shown: Sequence[Section], command: str
) -> None:
    """Write the page of one capture, whole or not at all.

    Args:
        path: the page.
        document: see document.py.
        shown: its directions.
        command: what was typed.
    """
    page_template.write(
        path,
        "capture.html.j2",
        [figure for section in shown for figure in section.figures],
        document=document,
        sections=shown,
        verdict=_verdict(shown),
        connections=_connections(document),
        measures=_measures(document, shown),
        command=command,
        file=_file(Path(document["capture"]["path"])),
        versions={name: metadata.version(name) for name in _PACKAGES}
        | {"Python": platform.python_version()},
        written=datetime.now(tz=UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def _verdict(shown: Sequence[Section]) -> str:
    """The verdict on the direction with the largest share of compressed ACKs."""
    if not shown:
        return "No connection carries data"
    return max(shown, key=lambda each: value(each.metrics, "acks_compressed") or 0).verdict


def _connections(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row for each direction with data of each connection that the document lists."""
    return [
        {
            "flow": flow["id"],
            "ends": (flow["source"], flow["destination"])[:: 1 if way == "forward" else -1],
            "payload": value(flow[way], "payload"),
            "goodput": value(flow[way], "goodput"),
            "rtt": value(flow[way], "rtt_median"),
            "retransmitted": percent(value(flow[way], "retransmitted")),
            "compressed": percent(value(flow[way], "acks_compressed")),
            "factor": value(flow[way], "compression_factor"),
            "vantage": flow["facts"][way].get("vantage", {}).get("value"),
        }
        for flow in document["flows"]
        for way in _WAYS
        if flow[way]
    ]


def _measures(
    document: Mapping[str, Any], shown: Sequence[Section]
) -> list[tuple[str, str, list[_Row]]]:
    """Of each measure its title, its vantage point and its rows; then the capture as a whole."""
    of_directions = [section.metrics for section in shown]
    groups = [
        (each.title, each.vantage, [_row(q, of_directions) for q in each.per_direction])
        for each in all_measures()
        if each.per_direction and shown
    ]
    whole = [_row(q, [document["metrics"]]) for each in all_measures() for q in each.per_capture]
    return [*groups, ("The capture as a whole", "any", whole)]


def _row(quantity: Quantity, measured: Sequence[Mapping[str, Any]]) -> _Row:
    found = [metrics.get(quantity.name, {}) for metrics in measured]
    reasons = dict.fromkeys(each["why"] for each in found if each.get("why"))
    return _Row(quantity, [each.get("value") for each in found], list(reasons))


def _file(path: Path) -> dict[str, str]:
    try:
        status = path.stat()
    except OSError as error:
        raise AnalysisError(f"{path}: {error.strerror}") from error
    changed = datetime.fromtimestamp(status.st_mtime, tz=UTC)
    return {
        "path": str(path),
        "size": f"{status.st_size:,} bytes",
        "changed": changed.strftime("%Y-%m-%d %H:%M:%S UTC"),
    }
