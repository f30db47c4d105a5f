"""`make manual`: the manual as pages: the texts here, and a page for each metric.

    python build.py FOLDER CAPTURE CAPTURE2

A metric's page is its module's docstring and its estimators', its definitions, their values in one
capture and in both, and pictures. So a new metric brings its page along.
"""

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capture_analysis.concepts import Concept, concepts
from capture_analysis.one_capture.document import analyse
from capture_analysis.pages.capture_report import report, report_pair
from capture_analysis.two_captures.pair_document import analyse_pair
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt

HERE = Path(__file__).parent
TEXTS = ("tutorial", "connections", "wireshark", "limits", "how-true")


@dataclass(frozen=True)
class Page:
    """A page of the manual.

    Attributes:
        name: name of its file, without .html.
        text: Markdown.
        rows: rows of a metric's table: name, meaning, value from one capture, from two, unit.
        pictures: paths of the metric's pictures in the site.
    """

    name: str
    title: str
    text: str
    rows: tuple[tuple[str, str, str, str, str], ...] = ()
    pictures: tuple[str, ...] = ()


def main(folder: Path, first: Path, second: Path) -> None:
    """Write the site, and the reports that have its pictures."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    report(first, folder / "one", drawn=True)
    report_pair((first, second), folder / "two", drawn=True)
    texts = [_text(name) for name in TEXTS]
    values = _values(analyse(first)), _values(analyse_pair(first, second))
    metrics = [_metric(folder, each, *values) for each in concepts()]
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    template = environment.get_template("page.html.j2")
    render = MarkdownIt("commonmark").enable("table").render
    for page in [*texts, *metrics]:
        body = render(page.text).replace('.md"', '.html"')
        html = template.render(page=page, body=body, texts=texts, metrics=metrics)
        (folder / f"{page.name}.html").write_text(html, encoding="utf-8")
    shutil.copy(folder / f"{TEXTS[0]}.html", folder / "index.html")


def _text(name: str) -> Page:
    text = (HERE / f"{name}.md").read_text(encoding="utf-8")
    return Page(name, text.partition("\n")[0].removeprefix("# "), text)


def _metric(folder: Path, concept: Concept, one: Mapping[str, Any], two: Mapping[str, Any]) -> Page:
    """Make a metric's page with its values and pictures in one capture and in two.

    A capture without what a picture shows, such as marks, has no such picture.
    """
    rows = [
        (
            each.name,
            each.meaning,
            *(_shown(values.get(each.name, {}).get("value")) for values in (one, two)),
            "" if each.unit == "1" else each.unit,
        )
        for each in concept.definitions
    ]
    pictures = [f"one/figures/{each.picture}.svg" for each in concept.from_one]
    pictures += [f"two/figures/{each.picture}.svg" for each in concept.from_pair]
    return Page(
        f"metric-{concept.name}",
        concept.title,
        f"# {concept.title}\n\n{concept.text}",
        tuple(rows),
        tuple(each for each in dict.fromkeys(pictures) if (folder / each).is_file()),
    )


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
