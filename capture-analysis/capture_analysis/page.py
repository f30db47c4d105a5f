"""report.html: one self-contained page with zoomable figures."""

import importlib.util
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from capture_analysis.analysis import Analysis
from capture_analysis.errors import AnalysisError
from capture_analysis.figure import Figure, Line
from capture_analysis.map import topology_svg
from capture_analysis.palette import COLOURS

_PLOTLY_STYLE: dict[str, dict[str, Any]] = {
    "steps": {"mode": "lines", "line": {"shape": "hv", "width": 1.2}},
    "line": {"mode": "lines", "line": {"width": 1.2}},
    "dashed": {"mode": "lines", "line": {"dash": "dash", "width": 1.2}},
    "points": {"mode": "markers", "marker": {"size": 4}},
    "crosses": {"mode": "markers", "marker": {"symbol": "x-thin-open", "size": 7}},
}


def write_page(
    analysis: Analysis, document: dict[str, Any], figures: list[Figure], folder: Path
) -> None:
    """Write report.html, whole or not at all."""
    environment = Environment(
        loader=PackageLoader("capture_analysis", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["figure"] = _number
    manifest = analysis.run.manifest
    text = environment.get_template("report.html.j2").render(
        document=document,
        manifest=manifest,
        experiment=manifest["experiment"],
        figures=figures,
        plots=json.dumps({f.id: _plotly(f) for f in figures}).replace("</", "<\\/"),
        plotly=_plotly_source(),
        topology=topology_svg(manifest),
        written=datetime.now(tz=UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )
    partial = folder / ".report.html"
    partial.write_text(text, encoding="utf-8")
    partial.replace(folder / "report.html")


def _number(value: float | None) -> str:
    """Four significant digits; whole numbers whole; a dash for none."""
    if value is None:
        return "\N{EN DASH}"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def _plotly(figure: Figure) -> dict[str, Any]:
    return {
        "data": [_trace(line) for line in figure.lines],
        "layout": {
            "margin": {"l": 52, "r": 8, "t": 30, "b": 40},
            "xaxis": {"title": {"text": figure.x_label}, "zeroline": False},
            "yaxis": {
                "title": {"text": figure.y_label},
                "type": "log" if figure.log_y else "linear",
                "zeroline": False,
            },
            "legend": {"orientation": "h", "y": -0.28, "yanchor": "top"},
            "hovermode": "closest",
            "barmode": "group",
        },
    }


def _trace(line: Line) -> dict[str, Any]:
    colour = COLOURS[line.colour % len(COLOURS)]
    # Nine digits: nanoseconds of a run of seconds, and far more than a screen shows.
    columns = {
        "x": [round(v, 9) for v in line.x.tolist()],
        "y": [round(v, 9) for v in line.y.tolist()],
    }
    if line.style == "bars":
        return {"type": "bar", "name": line.name, "marker": {"color": colour}, **columns}
    style = json.loads(json.dumps(_PLOTLY_STYLE[line.style]))
    style.get("line", style.get("marker"))["color"] = colour
    if line.style in ("steps", "line") and line.colour == 0:
        style["line"]["width"] = 2.6  # still seen where the next trace lies on top of it
    return {"type": "scatter", "name": line.name, **style, **columns}


def _plotly_source() -> str:
    """The library's script, found without importing it: that takes longer than the analysis."""
    spec = importlib.util.find_spec("plotly")
    if spec is None or spec.origin is None:
        raise AnalysisError("plotly is not installed")
    script = Path(spec.origin).parent / "package_data/plotly.min.js"
    return script.read_text(encoding="utf-8")
