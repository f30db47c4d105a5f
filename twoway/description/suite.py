"""Suites: situations in which congestion controls are tried, `suites/<name>.yml`.

A row of a suite is an experiment in the folder `suites/<name>`, whose axis `control` sets the
controls of the flows under test. Adding a row is adding its file, and adding a suite is adding a
folder and its list.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from twoway.contract.files_below import files_below
from twoway.contract.suite import AXIS, ReadSuite, Suite
from twoway.description.congestion import CONTROLS, parameter_of
from twoway.description.own_modules import OwnModule, read_own_modules
from twoway.description.quic import check_quic, is_quic, why_not, with_quic
from twoway.description.reading import load_experiment, read_document, validated
from twoway.errors import SpecError, UsageError
from twoway.messages import meant
from twoway.paths import SUITES, shown_path

# Limit for all files of a suite's folder together.
_MOST_BYTES = 16 << 20
# Fields with statements, which are about the suite's own columns only.
_SAID = ("predictions", "claims", "findings", "unclaimed", "theory")


def suite_names() -> list[str]:
    """List the suites' names."""
    return sorted(path.stem for path in SUITES.glob("*.yml"))


def load_suite(name: str) -> ReadSuite:
    """Read a suite and check that its rows are sweeps over controls.

    Args:
        name: a suite's name, or its file.

    Raises: SpecError with every problem found; UsageError if there is no such suite.
    """
    path = Path(name) if name.endswith((".yml", ".yaml")) else SUITES / f"{name}.yml"
    if not path.is_file():
        names = suite_names()
        raise UsageError(
            f"{name:.80}: no such suite{meant(name, names)}", f"there are {', '.join(names)}"
        )
    said = validated(str(shown_path(path)), read_document(path), Suite)
    folder = path.with_suffix("")
    suite = ReadSuite(path.stem, said, folder, _digest(path, folder))
    problems = [
        f"{row}: needs `shows` or `cannot`, one of both"
        for row, each in said.rows.items()
        if bool(each.shows) == bool(each.cannot)
    ] + _harm_problems(said)
    problems = problems or [each for file in suite.files for each in _problems(file, said.columns)]
    if problems:
        raise SpecError([f"{shown_path(path)}: rows.{problem}" for problem in problems])
    return suite


def _digest(path: Path, folder: Path) -> str:
    """Hash a suite's list and the files of its folder.

    Raises: SpecError if the folder has other files than a suite needs, or a link out of it.
    """
    found = hashlib.sha256(path.read_bytes())
    for name, file in _files(folder):
        found.update(f"{name}\0".encode() + file.read_bytes())
    return found.hexdigest()


def _files(folder: Path) -> list[tuple[str, Path]]:
    """List the files of a suite's folder, by their paths from it.

    Raises: SpecError if they are too large, no plain files, or links out of the folder.
    """
    try:
        files = [
            (str(file.relative_to(folder.resolve())), file)
            for _, file in files_below(folder.parent, folder.name, "**/*")
        ]
        size = sum(file.stat().st_size for _, file in files)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SpecError([f"{shown_path(folder)}: {reason}"]) from error
    if size > _MOST_BYTES:
        raise SpecError([f"{shown_path(folder)}: more than {_MOST_BYTES >> 20} MiB"])
    return files


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


def _problems(path: Path, columns: Sequence[str]) -> list[str]:
    if not path.is_file():
        return [f"{path.stem}: no such file as {shown_path(path)}"]
    axis = load_experiment(path).matrix.get(AXIS)
    if axis is None or list(axis.to) != list(columns):
        return [
            f"{path.stem}: the experiment's axis `{AXIS}` must have the values {', '.join(columns)}"
        ]
    return []


def control_of(name: str) -> tuple[str, OwnModule | None]:
    """Return a control's name, and its module if it is a C file or a folder.

    A control of a family has its parameter in its name: "fast30" has alpha_packets 30. A control of
    QUIC, such as "quic-cubic", is a program's.

    Raises: SpecError if the file is no module or does not register exactly one control; UsageError
        if there is no such control.
    """
    path = Path(name)
    if not name.endswith(".c") and "/" not in name:
        if is_quic(name):
            check_quic(name)
            return name, None
        if name in CONTROLS and (field := CONTROLS[name].field):
            raise UsageError(f"{name}: needs {field}", f"as {name}30, with {field} 30")
        if name not in CONTROLS and not parameter_of(name):
            raise UsageError(
                f"{name:.80}: no such congestion control{meant(name, CONTROLS)}",
                f"there are {', '.join(CONTROLS)}; a C file of your own ends in .c",
            )
        return name, None
    (module,) = read_own_modules([path.name], path.parent)
    if len(module.controls) != 1:
        found = ", ".join(module.controls) or "none"
        raise SpecError([f"{name}: must register one congestion control, registers {found}"])
    return module.controls[0], module


def write_rows(suite: ReadSuite, control: str, module: OwnModule | None, to: Path) -> list[Path]:
    """Write the experiments of a suite for a control that the suite does not list.

    Args:
        suite: the suite.
        control: the control's name.
        module: the module that registers the control; None if the kernel has it.
        to: a folder to make.

    Returns: the experiments, in the suite's order; for a program's control only the rows that a
        program can run.
    Raises: SpecError if the suite has a file of the module's name.
    """
    _write(to, {name: file.read_bytes() for name, file in _files(suite.folder)})
    if module:
        if (to / module.name).exists():
            raise SpecError([f"{shown_path(suite.folder)}: has a file {module.name}"])
        _write(to / module.name, {n: text.encode() for n, text in module.sources.items()})
    without = {} if module else rows_without(suite, control)
    files = [to / path.name for path in suite.files if path.stem not in without]
    for file in files:
        fields = {key: value for key, value in read_document(file).items() if key not in _SAID}
        if is_quic(control) and not module:
            fields = with_quic(fields, AXIS, control)
        else:
            axis = _axis(fields["matrix"][AXIS], control)
            fields["matrix"] = {**fields["matrix"], AXIS: axis}
        if module:
            fields["own_modules"] = [module.name]
        file.write_text(yaml.safe_dump(fields, sort_keys=False))
    return files


def rows_without(suite: ReadSuite, control: str) -> dict[str, str]:
    """List the rows that a control cannot run, each with the reason."""
    if not is_quic(control):
        return {}
    reasons = {file.stem: why_not(read_document(file), AXIS) for file in suite.files}
    return {row: why for row, why in reasons.items() if why}


def _axis(axis: Mapping[str, Any], control: str) -> dict[str, Any]:
    """Give an axis one value: a control, and its parameter if the control has one."""
    family = parameter_of(control)
    if family is None:
        return {**axis, "to": [control]}
    name, field, value = family
    parameters = [path.removesuffix("congestion") + field for path in axis["set"]]
    values = [name] * len(parameters) + [value] * len(parameters)
    return {"set": [*axis["set"], *parameters], "to": {control: values}}


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Make a folder with files."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
