"""Writing pages from this package's templates."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from capture_analysis.pages import page_template
from capture_analysis.pictures.figure import Figure

from twoway.contract.verdict import Judged, in_words, verdict_of


def write(path: Path, template: str, figures: Sequence[Figure], **context: Any) -> None:
    """Write a page from a template of this package (see pages.page_template)."""
    filters: dict[str, Callable[..., str]] = {"in_words": in_words, "verdict": _word}
    page_template.write(
        path, template, figures, package="twoway.report", filters=filters, **context
    )


def _word(row: Judged) -> str:
    return verdict_of(row).value
