"""The predicted values of an experiment, in a file beside its own.

The file is committed before the first run, and keeps the values of that time.
"""

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

from twoway.contract.statements import Prediction
from twoway.contract.writing import written_aside
from twoway.errors import SpecError
from twoway.paths import shown_path
from twoway.runs.points import load_point
from twoway.spec.point import Point, find_experiment, point_names

_COLUMNS = ("point", "metric", "theory", "value", "tolerance", "at_least", "at_most")
_KEY = slice(3)


def predictions_file(name: str) -> Path:
    """Return the file of an experiment's predicted values, which may not exist.

    Raises: SpecError if there is no such experiment.
    """
    return find_experiment(name.partition("@")[0]).with_suffix(".predictions.csv")


def points_of(name: str) -> Iterator[Point]:
    """Read an experiment's points.

    Raises: SpecError with every problem of the experiment.
    """
    return map(load_point, point_names(name))


def table(points: Iterable[Point]) -> str:
    """Write the predicted values of points as CSV, one line for each point and metric.

    Repetitions with other seeds are left out: predictions do not depend on them.

    Returns: an empty text without predictions.
    """
    first = [point for point in points if point.experiment.repetition == 1]
    rows = [_row(point.id, said) for point in first for said in point.predictions]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([_COLUMNS, *rows] if rows else [])
    return text.getvalue()


def write(name: str) -> Path | None:
    """Write an experiment's predicted values beside its file; return None if it has none.

    Raises: SpecError with every problem of the experiment.
    """
    path, text = predictions_file(name), table(points_of(name))
    if not text:
        path.unlink(missing_ok=True)
        return None
    with written_aside(path) as file:
        file.write(text.encode())
    return path


def as_written(name: str) -> bool:
    """Tell whether the file of predicted values is up to date.

    Raises: SpecError with every problem of the experiment.
    """
    path = predictions_file(name)
    return table(points_of(name)) == (path.read_text("utf-8") if path.is_file() else "")


def shrunk(name: str, points: Iterable[Point]) -> Iterator[str]:
    """List predictions of the file that are gone, or have a wider tolerance now.

    Args:
        name: the experiment.
        points: its points.

    Raises: SpecError if the file is no such table.
    """
    path = predictions_file(name)
    if not path.is_file():
        return
    where, now = shown_path(path), _by_key(table(points))
    try:
        before = _by_key(path.read_text("utf-8"))
    except ValueError as error:
        raise SpecError([f"{where}: {error}"]) from error
    for (point, metric, theory), row in before.items():
        today = now.get((point, metric, theory))
        if today is None:
            yield f"{where}: {point} {metric}: was predicted by {theory}, and no longer is"
        elif float(today["tolerance"] or 0) > float(row["tolerance"] or 0):
            wider = f"tolerance {today['tolerance']}, was {row['tolerance']}"
            yield f"{where}: {point} {metric}: {wider}"


def _by_key(text: str) -> dict[tuple[str, ...], dict[str, str]]:
    """Read a table's rows by point, metric and theory.

    Raises: ValueError with a phrase if it has other columns.
    """
    rows = csv.DictReader(io.StringIO(text))
    if tuple(rows.fieldnames or _COLUMNS) != _COLUMNS:
        raise ValueError(f"columns must be {', '.join(_COLUMNS)}")
    return {tuple(row[name] for name in _COLUMNS[_KEY]): row for row in rows}


def _row(point: str, said: Prediction) -> list[str]:
    numbers = (said.value, said.tolerance, said.at_least, said.at_most)
    return [point, said.metric, said.theory, *("" if n is None else f"{n:.7g}" for n in numbers)]
