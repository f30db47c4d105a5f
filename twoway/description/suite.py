"""Suites: situations in which congestion controls are tried, `suites/<name>.yml`.

A suite is one file: `base` has the fields of an experiment that all rows have, and each row the
fields in which its experiment differs. The axis `control` of a row sets the controls of the flows
under test. Adding a row is adding its entry.
"""

import glob
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from twoway.contract.suite import AXIS, ReadSuite, Suite
from twoway.description.congestion import CONTROLS, parameter_of
from twoway.description.own_modules import OwnModule, read_own_modules
from twoway.description.quic import check_quic, is_quic, why_not, with_quic
from twoway.description.reading import (
    ExperimentSource,
    document_of,
    load_experiment,
    merge_patch,
    text_of,
    validate_document,
)
from twoway.description.referred_files import named_texts
from twoway.errors import SpecError, UsageError
from twoway.messages import suggest
from twoway.paths import SUITES, experiment_files, shown_path

# Fields with statements, which are about the file's own points only.
STATEMENTS = ("predictions", "claims", "findings", "unclaimed", "theory")
# What a column may have besides its control, as in "cubic+linux": the fields' words, by name.
_VARIANTS: Mapping[str, Mapping[str, Any]] = {
    **{name: {"stack": {"preset": name}} for name in ("papers", "linux")},
    **{name: {"kernel": name} for name in ("guest", "wide", "newest", "6.1")},
}
# A card is of SEEDS runs a cell if that takes less than _PATIENCE_S on _PROCESSORS, with one more
# control than the suite's. Processor time of one run a cell, s, of the suite's own columns: by the
# control group's cpuacct; of quick twice three quarters of the 90 s that docs/guides/score.md has
# for four columns. A suite that is not here has one run a cell.
SEEDS, _PATIENCE_S, _PROCESSORS = 3, 120, 2
_COST_S = {"bbr": 33, "quic": 124, "quick": 135, "share": 86}
_ONE_FILE = (
    "a suite is one file now: write the fields of its experiment NAME/NAME-ROW.yml under "
    "rows.ROW.experiment, those of the link under its `profile`, and delete the folder"
)


@dataclass(frozen=True)
class LoadedSuite(ReadSuite):
    """A suite with the experiments of its rows.

    Attributes:
        experiments: the experiments of the rows that have one, in order.
    """

    experiments: tuple[ExperimentSource, ...]


def suite_names() -> list[str]:
    """List the suites' names."""
    return sorted(path.stem for path in SUITES.glob("*.yml"))


def load_suite(name: str) -> LoadedSuite:
    """Read a suite and check that its rows are sweeps over controls.

    Args:
        name: a suite's name, or its file.

    Raises: SpecError with every problem found; UsageError if there is no such suite.
    """
    path = _file(name)
    if not path.is_file():
        names = suite_names()
        raise UsageError(
            f"{name:.80}: no such suite{suggest(name, names)}", f"there are {', '.join(names)}"
        )
    said, rows = _read(path, text_of(path))
    if problems := _harm_problems(said):
        raise SpecError([f"{shown_path(path)}: rows.{problem}" for problem in problems])
    experiments = tuple(rows.values())
    if problems := [each for row in experiments for each in _problems(row, said.columns)]:
        raise SpecError(problems)
    return LoadedSuite(path.stem, said, _digest(path, experiments), experiments)


def usual_seeds(suite: LoadedSuite) -> int | None:
    """Return the number of seeds of a suite's card by default; None if its rows say it, or one."""
    columns = len(suite.said.columns)
    cost_s = _COST_S.get(suite.name, _PATIENCE_S * _PROCESSORS) * (columns + 1) / columns
    quick = SEEDS * cost_s / _PROCESSORS < _PATIENCE_S
    return SEEDS if quick and "seeds" not in suite.said.base else None


def row_names(name: str) -> list[str]:
    """List the experiments of a suite, as the command line names them; none if it is no suite.

    Args:
        name: a suite's name, or a file.

    Raises: SpecError with every problem of the suite.
    """
    path = _file(name)
    if not path.is_file() or not {"rows", "columns"} <= {*document_of(path, text_of(path))}:
        return []
    return [f"{name}/{row}" for row in _read(path, text_of(path))[1]]


def rows_of_suite(name: str) -> list[str]:
    """List the experiments of a suite, unless an experiment has its name."""
    return [] if _is_experiment(name) else row_names(name)


def _is_experiment(name: str) -> bool:
    return "/" not in name and name in experiment_files(glob.escape(name))


def find_row(name: str) -> ExperimentSource | None:
    """Find the experiment of a suite's row; return None if a name is that of no suite's row.

    Args:
        name: the suite's name or file, and the row's name, as "quick/alone"; or the id of its
            experiment, as "quick-alone".

    Raises: SpecError if the suite has problems, or no such row.
    """
    for suite in () if _is_experiment(name) else suite_names():
        row = name.removeprefix(f"{suite}-")
        if row != name and f"{suite}/{row}" in row_names(suite):
            name = f"{suite}/{row}"
    suite, slash, row = name.rpartition("/")
    path = _file(suite)
    if not slash or _is_file_name(name) or not path.is_file():
        return None
    said, rows = _read(path, text_of(path))
    if row not in rows:
        where = f"{shown_path(path)}: rows.{row:.80}"
        if row in said.rows:
            raise SpecError([f"{where}: has no experiment: {said.rows[row].cannot}"])
        raise SpecError(
            [f"{where}: no such row{suggest(row, rows)}"], f"there are {', '.join(rows)}"
        )
    return rows[row]


def _file(name: str) -> Path:
    """Return the path of a suite's file, by name or as given; the file may not exist."""
    return Path(name) if _is_file_name(name) else SUITES / f"{name}.yml"


def _is_file_name(name: str) -> bool:
    return name.endswith((".yml", ".yaml"))


@cache
def _read(path: Path, text: str) -> tuple[Suite, dict[str, ExperimentSource]]:
    """Read a suite's file, with the experiments of its rows.

    Raises: SpecError with every problem of the suite's own fields.
    """
    where, document = shown_path(path), document_of(path, text)
    if document.get("schema") == 1:
        raise SpecError([f"{where}: schema: must be 2, got 1"], _ONE_FILE)
    said = validate_document(where, document, Suite)
    if problems := [
        f"{where}: rows.{row}: needs `shows` or `cannot`, one of both"
        for row, each in said.rows.items()
        if bool(each.shows) == bool(each.cannot)
    ]:
        raise SpecError(problems)
    return said, {
        row: ExperimentSource(
            f"{path.stem}-{row}",
            f"{where}: rows.{row}.experiment",
            path,
            _fields(said, each.experiment),
        )
        for row, each in said.rows.items()
        if each.shows
    }


def _fields(said: Suite, different: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a row's experiment; the columns are the values of its axis `control`."""
    fields: dict[str, Any] = merge_patch({"schema": 1, **said.base}, different)
    matrix = fields.get("matrix")
    if isinstance(matrix, dict) and isinstance(axis := matrix.get(AXIS), dict):
        fields["matrix"] = {**matrix, AXIS: {"to": said.columns, **axis}}
    return fields


def _digest(path: Path, experiments: Sequence[ExperimentSource]) -> str:
    """Hash a suite's fields, and the files beside it that its rows name.

    Comments and the layout of its file are no part of it.
    """
    texts = dict(named for each in experiments for named in named_texts(each))
    fields = document_of(path, text_of(path))
    return hashlib.sha256(json.dumps([fields, sorted(texts.items())]).encode()).hexdigest()


def _harm_problems(said: Suite) -> list[str]:
    """List rows of `harm` that the suite does not have, or that lack a metric."""
    if said.harm is None:
        return []
    needed = {
        said.harm.alone: {"goodput.flow"},
        said.harm.itself: {"goodput.other"},
        said.harm.beside: {"goodput.flow", "goodput.other"},
    }
    shown = {row: {shows.metric for shows in each.shows} for row, each in said.rows.items()}
    return [
        f"{row}: `harm` needs a row that shows {', '.join(sorted(metrics))}"
        for row, metrics in needed.items()
        if not metrics <= shown.get(row, set())
    ]


def _problems(source: ExperimentSource, columns: Sequence[str]) -> list[str]:
    axis = load_experiment(source).matrix.get(AXIS)
    if axis is None or list(axis.to) != list(columns):
        needed = f"the axis `{AXIS}` must have the values {', '.join(columns)}"
        return [f"{source.where}.matrix: {needed}"]
    return []


def control_of(name: str) -> tuple[str, OwnModule | None]:
    """Return a control's name, and its module if it is a C file or a folder.

    A control of a family has its parameter in its name: "fast30" has alpha_packets 30. A control of
    QUIC, such as "quic-cubic", is a program's. "cubic+linux" is one on another stack or kernel.

    Raises: SpecError if the file is no module or does not register exactly one control; UsageError
        if there is no such control, stack or kernel.
    """
    name, plus, variant = name.partition("+")
    if plus:
        if variant not in _VARIANTS:
            raise UsageError(
                f"{name:.80}+{variant:.80}: no such stack or kernel{suggest(variant, _VARIANTS)}",
                f"there are {', '.join(_VARIANTS)}",
            )
        control, module = control_of(name)
        return f"{control}+{variant}", module
    path = Path(name)
    if not name.endswith(".c") and "/" not in name:
        if is_quic(name):
            check_quic(name)
            return name, None
        if name in CONTROLS and (field := CONTROLS[name].field):
            raise UsageError(f"{name}: needs {field}", f"as {name}30, with {field} 30")
        if name not in CONTROLS and not parameter_of(name):
            raise UsageError(
                f"{name:.80}: no such congestion control{suggest(name, CONTROLS)}",
                f"there are {', '.join(CONTROLS)}; a C file of your own ends in .c",
            )
        return name, None
    (module,) = read_own_modules([path.name], path.parent)
    if len(module.controls) != 1:
        found = ", ".join(module.controls) or "none"
        raise SpecError([f"{name}: must register one congestion control, registers {found}"])
    return module.controls[0], module


def rows_for(
    suite: LoadedSuite, control: str, module: OwnModule | None
) -> Iterator[ExperimentSource]:
    """Yield the experiments of a suite for a control that the suite does not list.

    Args:
        suite: the suite.
        control: the control's name.
        module: the module that registers the control; None if the kernel has it.

    Yields: the experiments, in the suite's order; for a program's control only the rows that a
        program can run.
    """
    without = {} if module else rows_without(suite, control)
    for row in suite.experiments:
        if row.id in without:
            continue
        fields = with_control(row.document, control, own=module is not None)
        yield replace(row, document=fields, modules=(module,) if module else ())


def rows_without(suite: LoadedSuite, control: str) -> dict[str, str]:
    """List the experiments that a control cannot run, by id, each with the reason."""
    if not is_quic(control):
        return {}
    reasons = {row.id: why_not(row.document, AXIS) for row in suite.experiments}
    return {row: why for row, why in reasons.items() if why}


def with_control(document: Mapping[str, Any], column: str, *, own: bool) -> dict[str, Any]:
    """Give an experiment's axis `control` one value; statements on others are left out.

    Args:
        document: the fields of an experiment with that axis.
        column: a control, such as "bbr", "fast30" or "quic-cubic", or as "bbr+linux" on another
            stack or kernel.
        own: True if a module of one's own registers the control.
    """
    control, _, variant = column.partition("+")
    fields = {key: value for key, value in document.items() if key not in STATEMENTS}
    fields = merge_patch(fields, _VARIANTS.get(variant, {}))
    if is_quic(control) and not own:
        return with_quic(fields, AXIS, column)
    axis = fields["matrix"][AXIS]
    paths, family = axis["set"], parameter_of(control)
    if family is None:
        each = [control] * len(paths) if len(paths) > 1 else control
        axis = {**axis, "to": [column] if column == control else {column: each}}
    else:
        name, field, value = family
        parameters = [path.removesuffix("congestion") + field for path in paths]
        values = [name] * len(parameters) + [value] * len(parameters)
        axis = {"set": [*paths, *parameters], "to": {column: values}}
    return {**fields, "matrix": {**fields["matrix"], AXIS: axis}}
