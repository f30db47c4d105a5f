"""`make manual`: the manual as pages: the texts here, and a page for each metric.

    python build.py FOLDER CAPTURE CAPTURE2

A metric's page is its module's docstring, its quantities, their values in the two captures, and
a picture of the metric. So a new metric brings its page along.
"""

import inspect
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capture_analysis.one_capture.document import analyse
from capture_analysis.one_capture.measure import Measure, Quantity, all_measures
from capture_analysis.pages.capture_report import report, report_pair
from capture_analysis.two_captures.pair_document import analyse_pair
from capture_analysis.two_captures.pair_measure import PairMeasure, all_pair_measures
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt

HERE = Path(__file__).parent
TEXTS = ("tutorial", "limits")


@dataclass(frozen=True)
class Page:
    """A page of the manual.

    Attributes:
        name: name of its file, without .html.
        text: Markdown.
        rows: rows of a metric's table: name, meaning, value, unit.
        picture: path of the metric's picture in the site.
    """

    name: str
    title: str
    text: str
    vantage: str = ""
    rows: tuple[tuple[str, str, str, str], ...] = ()
    picture: str = ""


def main(folder: Path, first: Path, second: Path) -> None:
    """Write the site, and the reports that have its pictures."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    report(first, folder / "one")
    report_pair((first, second), folder / "two")
    texts = [_text(name) for name in TEXTS]
    one = [_metric(each, "one", _values(analyse(first))) for each in all_measures()]
    two = [
        _metric(each, "two", _values(analyse_pair(first, second))) for each in all_pair_measures()
    ]
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    template = environment.get_template("page.html.j2")
    render = MarkdownIt("commonmark").enable("table").render
    for page in [*texts, *one, *two]:
        body = render(page.text).replace('.md"', '.html"')
        html = template.render(page=page, body=body, texts=texts, one=one, two=two)
        (folder / f"{page.name}.html").write_text(html, encoding="utf-8")
    shutil.copy(folder / f"{TEXTS[0]}.html", folder / "index.html")


def _text(name: str) -> Page:
    text = (HERE / f"{name}.md").read_text(encoding="utf-8")
    return Page(name, text.partition("\n")[0].removeprefix("# "), text)


def _metric(measure: type[Measure | PairMeasure], captures: str, values: Mapping[str, Any]) -> Page:
    """Make the page of a metric of `one` capture or of `two`."""
    module = inspect.getmodule(measure)
    assert module is not None
    name = module.__name__.rpartition(".")[2]
    return Page(
        f"{captures}-{name}",
        measure.title,
        f"# {measure.title}\n\n{inspect.getdoc(module)}",
        getattr(measure, "vantage", "two points of the path"),
        tuple(_rows(_quantities(measure), values)),
        f"{captures}/figures/{measure.picture}.svg",
    )


def _quantities(measure: type[Measure | PairMeasure]) -> Iterable[Quantity]:
    for scope in ("per_direction", "per_way", "per_pair", "per_capture"):
        yield from getattr(measure, scope, ())


def _rows(
    quantities: Iterable[Quantity], values: Mapping[str, Any]
) -> Iterable[tuple[str, str, str, str]]:
    for quantity in quantities:
        unit = "" if quantity.unit == "1" else quantity.unit
        yield quantity.name, quantity.meaning, _shown(values[quantity.name]["value"]), unit


def _shown(value: float | None) -> str:
    if value is None:
        return "\N{EN DASH}"
    return f"{value:.6g}" if isinstance(value, float) else f"{value:,}"


def _values(document: Mapping[str, Any]) -> dict[str, Any]:
    """Collect quantities of the first connection and way, and the whole."""
    flow = document["flows"][0]
    ways = document.get("ways", {})
    return {
        **(flow["forward"] or flow["backward"]),
        **next(iter(ways.values()), {}),
        **document["metrics"],
    }


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*map(Path, sys.argv[1:]))
