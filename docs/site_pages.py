"""Pages that the build of the site makes: of experiments, cards of suites, link elements."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml
from capture_analysis.pages.page_template import number

from twoway.links.direction import pages
from twoway.report.card import Card, Line, card_cells, printed_cells
from twoway.report.paper_text import markdown_table
from twoway.report.papers_tables import read_numbers

ROOT = Path(__file__).resolve().parents[1]
# Titles of the pages on links, by the profile's field.
ELEMENTS = pages()
# Folders of experiments that belong to no paper.
_FOLDERS = {
    "beyond": "Beyond the papers",
    "classes": "Labs for a class",
    "lab": "For the hosts of a lab",
}
# Metrics for a card's picture; the first that the experiment has is drawn.
_KEY_METRICS = ("efficiency", "acks_compressed", "throughput", "goodput", "utilisation")
_MOST_BARS = 12
# A card's picture, in units of its viewBox.
_WIDTH, _HEIGHT, _GAP = 240, 70, 2


def cards(experiments: Iterable[Mapping[str, Any]]) -> str:
    """Return a card for each experiment, by folder: title, key picture, numbers, command."""
    lines, folder = [], ""
    for each in experiments:
        if each["folder"] != folder:
            lines += ["</div>", ""] if folder else []
            folder = str(each["folder"])
            lines += [f"## {_heading(folder)}", "", '<div class="cards">']
        lines += ['<div class="card">', f"<h3>{escape(each['title'])}</h3>", *_picture(each["id"])]
        lines += [f"<code>twoway run {escape(each['id'])}</code>", "</div>"]
    return "\n".join([*lines, "</div>", ""])


def _heading(folder: str) -> str:
    """Return the heading of a folder of experiments: its paper's title, or the one in the table."""
    paper = ROOT / f"papers/{folder}.yml"
    if paper.is_file():
        return str(yaml.safe_load(paper.read_text("utf-8"))["title"])
    return _FOLDERS[folder]


def _picture(experiment: str) -> Iterator[str]:
    """Draw the values of an experiment's key metric over its points, if there are two."""
    rows = _measured().get(experiment, [])
    families = Counter(metric.partition(".")[0] for _, metric, _ in rows)
    known = [name for name in _KEY_METRICS if families[name] > 1]
    family = (known or [name for name, count in families.most_common(1) if count > 1] or [""])[0]
    bars = [row for row in rows if row[1].partition(".")[0] == family][:_MOST_BARS]
    highest = max((abs(value) for *_, value in bars), default=0)
    if not highest:
        return
    wide = _WIDTH / len(bars)
    yield f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(family)}">'
    for place, (point, metric, value) in enumerate(bars):
        high = abs(value) / highest * _HEIGHT
        yield (
            f'<rect x="{place * wide:.1f}" y="{_HEIGHT - high:.1f}" width="{wide - _GAP:.1f}" '
            f'height="{high:.1f}"><title>{escape(f"{point} {metric}: {value:.4g}")}</title></rect>'
        )
    yield "</svg>"
    yield f"<p><code>{escape(family)}</code>, highest {highest:.4g}</p>"


@cache
def _measured() -> dict[str, list[tuple[str, str, float]]]:
    """Return the kept numbers: point, metric and value, by experiment."""
    found: dict[str, list[tuple[str, str, float]]] = {}
    for point, numbers in read_numbers(ROOT / "docs/results/numbers").items():
        rows = found.setdefault(point.partition("@")[0], [])
        rows += [(point, *row) for row in numbers.items() if row[1] is not None]
    return found


def card_tables(suite: str) -> str:
    """Show a suite's kept card, and what is in print beside its numbers."""
    card = Card.read(ROOT / f"docs/results/score/{suite}.json")
    tables = (card_cells(card), 2), (printed_cells(card), 6)
    return "\n".join(markdown_table(rows, left) for rows, left in tables if rows)


def format_numbers(card: Card, at: str, was: str = "cubic") -> str:
    """Format the numbers of a card at one point as Markdown, a line for each situation.

    What is a tenth better than with the column `was` is bold, what is a tenth worse is struck out.
    """
    titles = " | ".join(card.columns)
    table = [f"| situation and command | {titles} |", f"|{'---|' * (len(card.columns) + 1)}"]
    chosen = (line for line in card.lines if line.at == at)
    for row, lines in groupby(chosen, lambda line: line.situation(card.suite)):
        every = list(lines)
        cells = (", ".join(_beside(line, each, was) for line in every) for each in card.columns)
        table.append(f"| `twoway run {card.suite}/{row}` | {' | '.join(cells)} |")
    return "\n".join(table)


def _beside(line: Line, column: str, was: str) -> str:
    """Write a number, marked if it is a tenth better or worse than another column's."""
    new, old = (line.cells[each].value for each in (column, was))
    assert new is not None
    assert old is not None
    worse = line.distance(new) - line.distance(old)
    mark = "" if abs(worse) < abs(old) / 10 else "**" if worse < 0 else "~~"
    return f"{mark}{number(new)}{mark} {line.unit if line.unit != '1' else 'lost'}"


def element_page(name: str, schema: Mapping[str, Any], tables: Any) -> str:
    """Describe the field of a link element, with tables of it and of all fields below it."""
    parts = schema["$defs"]
    field = schema["properties"].get(name) or parts["Direction"]["properties"][name]
    place = "profile" if name in schema["properties"] else "direction"
    lines = [
        f"# {ELEMENTS[name]}: `{name}`",
        "",
        f"A field of a {place}: {field['description']}.",
        "",
    ]
    lines += tables({"properties": {name: field}})
    for part in _parts(field, parts):
        lines += [f"## {part}", "", *tables(parts[part])]
    lines += _profiles(name)
    return "\n".join(lines)


def _parts(schema: Mapping[str, Any], parts: Mapping[str, Any]) -> list[str]:
    """List the parts that a schema refers to, directly or through other parts."""
    found: dict[str, None] = {}
    waiting = [schema]
    while waiting:
        for part in sorted(parts, key=len):
            if f'"#/$defs/{part}"' in json.dumps(waiting[0]) and part not in found:
                found[part] = None
                waiting.append(parts[part])
        waiting.pop(0)
    return list(found)


def _profiles(name: str) -> list[str]:
    """List the profiles that have an element."""
    having = [
        path.stem
        for path in sorted((ROOT / "tc-profiles").glob("*.yml"))
        if f"{name}:" in path.read_text("utf-8")
    ]
    return [
        "## Profiles that have it",
        "",
        ", ".join(f"`{each}`" for each in having) or "None.",
        "",
    ]
