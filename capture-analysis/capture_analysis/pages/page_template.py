"""Render a page from a template, with what pages share; a failure leaves no file."""

import platform
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, Template

from capture_analysis.definition import Definition
from capture_analysis.pictures.figure import Figure
from capture_analysis.pictures.interactive import embed_figures

# The package with base.html.j2, which all templates extend.
_BASE = "capture_analysis.pages"


def write(
    path: Path,
    template: str,
    figures: Sequence[Figure],
    *,
    package: str = _BASE,
    filters: Mapping[str, Callable[..., str]] = MappingProxyType({}),
    **context: Any,
) -> None:
    """Write a page.

    Args:
        path: the file.
        template: its name in the package's folder `templates`; it extends base.html.j2.
        figures: the figures, drawn at their places in the template.
        package: the package with the template.
        filters: functions that the template calls, by name.
        context: other values for the template, besides `versions`, `written` and `figures_kept`.

    Raises: OSError with the page's name; no part of the page is left.
    """
    text = compile_template(template, package, filters).render(
        figures=figures,
        versions=versions(),
        written=time_of_writing(),
        figures_kept=(path.parent / "figures").is_dir(),
        **(embed_figures(figures) if figures else {}),
        **context,
    )
    partial = path.with_name(f".{uuid.uuid4().hex}.partial")  # of this writer alone
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def compile_template(
    template: str, package: str, filters: Mapping[str, Callable[..., str]] = MappingProxyType({})
) -> Template:
    """Compile a template, once per process.

    Args:
        template: as for write().
        package: as for write().
        filters: as for write().
    """
    environment = _environment(package)
    environment.filters |= filters
    return environment.get_template(template)


@cache
def _environment(package: str) -> Environment:
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(each, "templates") for each in (package, _BASE)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["figure"] = number
    return environment


def number(value: float | None) -> str:
    """Format a number for readers; a dash for None.

    Four significant digits; whole and large numbers are rounded to units.
    """
    if value is None:
        return "\N{EN DASH}"
    if (float(value).is_integer() or abs(value) >= 1000) and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.4g}"


_PACKAGES = ("capture-analysis", "numpy")


def described_file(path: Path) -> dict[str, str]:
    """Describe a file: name, path, size, time of change.

    Raises: OSError if the file is missing.
    """
    status = path.stat()
    changed = datetime.fromtimestamp(status.st_mtime, tz=UTC)
    return {
        "name": path.name,
        "path": str(path),
        "size": f"{status.st_size:,} bytes",
        "changed": changed.strftime("%Y-%m-%d %H:%M:%S UTC"),
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages used."""
    return {name: metadata.version(name) for name in _PACKAGES} | {
        "Python": platform.python_version()
    }


def time_of_writing() -> str:
    """Return the time of writing, in UTC."""
    return datetime.now(tz=UTC).strftime("%Y-%m-%d %H:%M UTC")


def metrics_table(
    heads: list[str],
    estimated: Iterable[tuple[str, str, Sequence[Definition]]],
    measured: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Make a table of metrics for metrics.html.j2: a group of rows for each estimator.

    Args:
        heads: heads of the columns.
        estimated: title, vantage and definitions of each estimator.
        measured: for each column its metrics by name, as in documents; a metric that is missing has
            no value.
    """
    groups = [
        {
            "title": title,
            "vantage": vantage,
            "rows": [_metrics_row(each, measured) for each in definitions],
        }
        for title, vantage, definitions in estimated
        if definitions
    ]
    return {"heads": heads, "groups": groups}


def _metrics_row(definition: Definition, measured: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found = [metrics.get(definition.name, {}) for metrics in measured]
    reasons = dict.fromkeys(each["why"] for each in found if each.get("why"))
    numbers = [each.get("value") for each in found]
    return {"definition": definition, "numbers": numbers, "reasons": [*reasons]}
