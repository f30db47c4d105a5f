"""Pages: a template, figures and numbers, written whole or not at all."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from capture_analysis.pages import provenance
from capture_analysis.pictures.figure import Figure
from capture_analysis.pictures.interactive import embedded
from capture_analysis.testbed.expectation import in_words


def write(path: Path, template: str, figures: Sequence[Figure], **context: Any) -> None:
    """Write a page.

    Args:
        path: the file.
        template: name in `templates`; it extends base.html.j2.
        figures: drawn where the template places them.
        context: what else the template names, beside `versions` and `written`.
    """
    environment = Environment(
        loader=PackageLoader("capture_analysis.pages", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"figure": number, "in_words": in_words}
    text = environment.get_template(template).render(
        figures=figures,
        versions=provenance.versions(),
        written=provenance.now(),
        **embedded(figures),
        **context,
    )
    partial = path.with_name(f".{path.name}")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def number(value: float | None) -> str:
    """Four significant digits; whole and large numbers to the unit; a dash for none."""
    if value is None:
        return "\N{EN DASH}"
    if (float(value).is_integer() or abs(value) >= 1000) and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.4g}"
