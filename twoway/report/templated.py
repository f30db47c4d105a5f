"""Writing pages from this package's templates."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from capture_analysis.pages import page_template
from capture_analysis.pictures.figure import Figure

from twoway.contract.statements import in_words

_PACKAGE = "twoway.report"
_FILTERS: dict[str, Callable[..., str]] = {"in_words": in_words}


def prepare(template: str) -> None:
    """Do what a page with figures takes, whatever it shows, ahead of time."""
    page_template.prepared(template, _PACKAGE, _FILTERS)


def write(path: Path, template: str, figures: Sequence[Figure], **context: Any) -> None:
    """Write a page from a template of this package (see pages.page_template)."""
    page_template.write(path, template, figures, package=_PACKAGE, filters=_FILTERS, **context)
