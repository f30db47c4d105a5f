"""The predicted values of experiments, in one file for each folder of experiments.

A line has the values of one theory for one point. The file is committed before the first run, and
keeps the values of that time.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from twoway.contract.model import Record
from twoway.contract.statements import Bounds, Prediction
from twoway.contract.writing import written_aside
from twoway.description.point import Point, find_source, point_names
from twoway.errors import SpecError
from twoway.paths import shown_path
from twoway.runs.points import load_point

FILE = "predictions.jsonl"
_HINT = "`twoway predict` keeps predicted values in this file: give another file another name"


class Numbers(Bounds):
    """A predicted value or its bounds, in seven digits, with the result of the paper's formula."""

    printed: float | None = None


class Row(NamedTuple):
    """A theory's prediction for a metric at a point."""

    point: str
    theory: str
    metric: str
    numbers: Numbers


class _Line(Record):
    """A line of the file."""

    point: str
    theory: str
    predicted: dict[str, Numbers]


def predictions_file(name: str) -> Path:
    """Return the file with an experiment's predicted values, which may not exist.

    Raises: SpecError if there is no such experiment.
    """
    return find_source(name.partition("@")[0]).file.with_name(FILE)


def read_predictions(path: Path) -> list[Row]:
    """Read a file of predicted values; no rows if it does not exist.

    Raises: SpecError if it is another file.
    """
    rows: list[Row] = []
    lines = path.read_bytes().splitlines() or [b""] if path.is_file() else []
    for number, line in enumerate(lines, start=1):
        try:
            said = _Line.model_validate_json(line)
        except ValueError as error:
            form = "must be a JSON object with point, theory and predicted"
            raise SpecError([f"{shown_path(path)}: line {number}: {form}"], _HINT) from error
        rows += [Row(said.point, said.theory, *item) for item in said.predicted.items()]
    return rows


def load_points(name: str) -> Iterator[Point]:
    """Read an experiment's points.

    Raises: SpecError with every problem of the experiment.
    """
    return map(load_point, point_names(name))


def write(name: str) -> Path | None:
    """Write an experiment's predicted values into its folder's file; return None if it has none.

    The rows of other experiments stay, unless their experiment no longer exists.

    Raises: SpecError with every problem of the experiment, or if it is another file.
    """
    path, rows = predictions_file(name), _rows(load_points(name))
    if text := _updated(path, _experiment(name), rows):
        with written_aside(path) as file:
            file.write(text.encode())
    else:
        path.unlink(missing_ok=True)
    return path if rows else None


def is_up_to_date(name: str) -> bool:
    """Tell whether the file of predicted values is up to date.

    Raises: SpecError with every problem of the experiment, or if it is another file.
    """
    path = predictions_file(name)
    text = _updated(path, _experiment(name), _rows(load_points(name)))
    return text == (path.read_text("utf-8") if path.is_file() else "")


def find_shrunk(name: str, points: Iterable[Point]) -> Iterator[str]:
    """List predictions of the file that are gone, or have a wider tolerance now.

    Raises: SpecError if it is another file.
    """
    path = predictions_file(name)
    where, now = shown_path(path), {row[:3]: row.numbers for row in _rows(points)}
    for row in read_predictions(path):
        if _experiment_of(row) != _experiment(name):
            continue
        today, then = now.get(row[:3]), row.numbers.tolerance or 0
        what = f"{where}: {row.point} {row.metric}"
        if today is None:
            yield f"{what}: was predicted by {row.theory}, and no longer is"
        elif (today.tolerance or 0) > then:
            yield f"{what}: tolerance {today.tolerance:.7g}, was {then:.7g}"


def _experiment(name: str) -> str:
    return find_source(name.partition("@")[0]).id


def _experiment_of(row: Row) -> str:
    return row.point.partition("@")[0]


def _updated(path: Path, experiment: str, rows: list[Row]) -> str:
    """Format a file with today's rows of an experiment; an empty text without rows.

    Raises: SpecError if it is another file.
    """
    existing = {each.stem for each in path.parent.glob("*.y*ml")} - {experiment}
    others = [row for row in read_predictions(path) if _experiment_of(row) in existing]
    lines: dict[tuple[str, str], dict[str, Numbers]] = {}
    for row in sorted((*others, *rows), key=_experiment_of):
        lines.setdefault(row[:2], {})[row.metric] = row.numbers
    found = (_Line(point=p, theory=t, predicted=said) for (p, t), said in lines.items())
    return "".join(f"{line.model_dump_json(exclude_none=True)}\n" for line in found)


def _rows(points: Iterable[Point]) -> list[Row]:
    """Make a row for each point and metric.

    Repetitions with other seeds are left out: predictions do not depend on them.
    """
    first = (point for point in points if point.experiment.repetition == 1)
    return [_row(point.id, said) for point in first for said in point.predictions]


def _row(point: str, said: Prediction) -> Row:
    known = {name: getattr(said, name) for name in Numbers.model_fields}
    digits = {name: float(f"{n:.7g}") for name, n in known.items() if n is not None}
    return Row(point, said.theory, said.metric, Numbers(**digits))
