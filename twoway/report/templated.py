"""Writing pages from this package's templates."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from capture_analysis.pages import page_template
from capture_analysis.pictures.figure import Figure

from twoway.contract.statements import in_words


def write(path: Path, template: str, figures: Sequence[Figure], **context: Any) -> None:
    """Write a page from a template of this package (see pages.page_template)."""
    filters: dict[str, Callable[..., str]] = {"in_words": in_words}
    page_template.write(
        path, template, figures, package="twoway.report", filters=filters, **context
    )
