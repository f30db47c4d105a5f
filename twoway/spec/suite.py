"""Suites: what congestion controls are tried in, `suites/<name>.yml`.

A row of a suite is an experiment in the folder `suites/<name>`, whose axis `control` sets the
controls of the flows under test. Adding a row is adding its file, and adding a suite is adding a
folder and its list.
"""

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path

import yaml

from twoway.contract.suite import AXIS, ReadSuite, Suite
from twoway.errors import SpecError, UsageError
from twoway.paths import SUITES, shown_path
from twoway.spec.own_modules import read_own_modules
from twoway.spec.reading import load_experiment, read_document, validated

# Fields with statements about the suite's own columns; another control has none.
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
        raise UsageError(f"{name:.80}: no such suite", f"there are {', '.join(suite_names())}")
    said = validated(str(shown_path(path)), read_document(path), Suite)
    folder = path.with_suffix("")
    problems = [problem for row in said.rows for problem in _problems(row, folder, said.columns)]
    if problems:
        raise SpecError([f"{shown_path(path)}: rows.{problem}" for problem in problems])
    return ReadSuite(path.stem, said, folder, _digest(path, folder))


def _digest(path: Path, folder: Path) -> str:
    """Hash a suite's list and the files beside its experiments."""
    found = hashlib.sha256()
    for each in (path, *sorted(folder.iterdir())):
        if each.is_file():
            found.update(f"{each.name}\0".encode() + each.read_bytes())
    return found.hexdigest()


def _problems(row: str, folder: Path, columns: Sequence[str]) -> list[str]:
    path = folder / f"{row}.yml"
    if not path.is_file():
        return [f"{row}: no such file as {shown_path(path)}"]
    axis = load_experiment(path).matrix.get(AXIS)
    if axis is None or list(axis.to) != list(columns):
        return [f"{row}: the experiment's axis `{AXIS}` must have the values {', '.join(columns)}"]
    return []


def control_of(name: str) -> tuple[str, Path | None]:
    """Return a control's name, and its source if it is a file or folder.

    Raises: SpecError if a module is none, or registers no control, or several.
    """
    path = Path(name)
    if not name.endswith(".c") and "/" not in name:
        return name, None
    (module,) = read_own_modules([path.name], path.parent)
    if len(module.controls) != 1:
        found = ", ".join(module.controls) or "none"
        raise SpecError([f"{name}: must register one congestion control, registers {found}"])
    return module.controls[0], path


def write_rows(suite: ReadSuite, control: str, source: Path | None, to: Path) -> list[Path]:
    """Write the experiments of a suite for a control that is none of its columns.

    Args:
        suite: the suite.
        control: the control's name.
        source: the C file or folder of its module; None if the kernel has it.
        to: a folder to make.

    Returns: the experiments, in the suite's order.
    """
    shutil.copytree(suite.folder, to)
    if source:
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, to / source.name)
    files = [to / path.name for path in suite.files]
    for file in files:
        fields = {key: value for key, value in read_document(file).items() if key not in _SAID}
        axis = {**fields["matrix"][AXIS], "to": [control]}
        fields["matrix"] = {**fields["matrix"], AXIS: axis}
        if source:
            fields["own_modules"] = [source.name]
        file.write_text(yaml.safe_dump(fields, sort_keys=False))
    return files
