"""The predicted values of experiments, in one file for each folder of experiments.

The file is committed before the first run, and keeps the values of that time.
"""

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

from twoway.contract.statements import Prediction
from twoway.contract.writing import written_aside
from twoway.description.point import Point, find_source, point_names
from twoway.errors import SpecError
from twoway.paths import shown_path
from twoway.runs.points import load_point

FILE = "predictions.csv"
_COLUMNS = ("point", "metric", "theory", "value", "tolerance", "at_least", "at_most", "printed")
_KEY = slice(3)
_HINT = "`twoway predict` keeps predicted values in this file: give another table another name"
Row = dict[str, str]


def predictions_file(name: str) -> Path:
    """Return the file with an experiment's predicted values, which may not exist.

    Raises: SpecError if there is no such experiment.
    """
    return find_source(name.partition("@")[0]).file.with_name(FILE)


def read_predictions(path: Path) -> list[Row]:
    """Read a file of predicted values; no rows if it does not exist.

    Raises: SpecError if it is no such table.
    """
    if not path.is_file():
        return []
    try:
        return _read(path.read_text("utf-8"))
    except (ValueError, csv.Error) as error:
        raise SpecError([f"{shown_path(path)}: {error}"], _HINT) from error


def _read(text: str) -> list[Row]:
    """Read a table; raise ValueError with a phrase if it has other columns."""
    table = csv.DictReader(io.StringIO(text))
    rows = list(table)
    whole = all(len(row) == len(_COLUMNS) and None not in row.values() for row in rows)
    if tuple(table.fieldnames or ()) != _COLUMNS or not whole:
        raise ValueError(f"columns must be {', '.join(_COLUMNS)}")
    return rows


def points_of(name: str) -> Iterator[Point]:
    """Read an experiment's points.

    Raises: SpecError with every problem of the experiment.
    """
    return map(load_point, point_names(name))


def write(name: str) -> Path | None:
    """Write an experiment's predicted values into its folder's file; return None if it has none.

    The rows of other experiments stay, unless their experiment no longer exists.

    Raises: SpecError with every problem of the experiment, or if the file is no such table.
    """
    path, rows = predictions_file(name), _rows(points_of(name))
    if text := _updated(path, _experiment(name), rows):
        with written_aside(path) as file:
            file.write(text.encode())
    else:
        path.unlink(missing_ok=True)
    return path if rows else None


def as_written(name: str) -> bool:
    """Tell whether the file of predicted values is up to date.

    Raises: SpecError with every problem of the experiment, or if the file is no such table.
    """
    path = predictions_file(name)
    text = _updated(path, _experiment(name), _rows(points_of(name)))
    return text == (path.read_text("utf-8") if path.is_file() else "")


def shrunk(name: str, points: Iterable[Point]) -> Iterator[str]:
    """List predictions of the file that are gone, or have a wider tolerance now.

    Args:
        name: the experiment.
        points: its points.

    Raises: SpecError if the file is no such table.
    """
    path = predictions_file(name)
    where, now = shown_path(path), {_key(row): row for row in _rows(points)}
    for row in _rows_of(_experiment(name), read_predictions(path)):
        point, metric, theory = key = _key(row)
        today = now.get(key)
        if today is None:
            yield f"{where}: {point} {metric}: was predicted by {theory}, and no longer is"
        elif float(today["tolerance"] or 0) > float(row["tolerance"] or 0):
            wider = f"tolerance {today['tolerance']}, was {row['tolerance']}"
            yield f"{where}: {point} {metric}: {wider}"


def _experiment(name: str) -> str:
    return find_source(name.partition("@")[0]).id


def _experiment_of(row: Row) -> str:
    return row["point"].partition("@")[0]


def _rows_of(experiment: str, rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if _experiment_of(row) == experiment]


def _key(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in _COLUMNS[_KEY])


def _updated(path: Path, experiment: str, rows: list[Row]) -> str:
    """Format a file's table with today's rows of an experiment; an empty text without rows.

    Raises: SpecError if the file is no such table.
    """
    existing = {each.stem for each in path.parent.glob("*.y*ml")} - {experiment}
    others = [row for row in read_predictions(path) if _experiment_of(row) in existing]
    found = sorted((*others, *rows), key=_experiment_of)
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerows([_COLUMNS, *(row.values() for row in found)] if found else [])
    return text.getvalue()


def _rows(points: Iterable[Point]) -> list[Row]:
    """Make a row for each point and metric.

    Repetitions with other seeds are left out: predictions do not depend on them.
    """
    first = (point for point in points if point.experiment.repetition == 1)
    return [_row(point.id, said) for point in first for said in point.predictions]


def _row(point: str, said: Prediction) -> Row:
    numbers = (said.value, said.tolerance, said.at_least, said.at_most, said.printed)
    cells = ["" if n is None else f"{n:.7g}" for n in numbers]
    return dict(zip(_COLUMNS, (point, said.metric, said.theory, *cells), strict=True))
