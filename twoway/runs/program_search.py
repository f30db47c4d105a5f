"""Searching for an experiment's programs as its guest will search."""

import os
import shutil
from collections.abc import Iterator, Mapping

from twoway.backends.sandbox import GUEST_PATH
from twoway.contract.plan import PlannedFile
from twoway.description.experiment import Experiment
from twoway.description.point import Point
from twoway.errors import SpecError

INSTALL = "a guest has the programs of this machine's /usr: install it, or list it in `files`"


def refuse_missing_programs(point: Point) -> None:
    """Raise SpecError if this machine lacks a program of an experiment."""
    if missing := [*missing_programs(point.id, point.experiment, point.files)]:
        raise SpecError(missing, INSTALL)


def missing_programs(
    name: str, experiment: Experiment, files: Mapping[str, Mapping[str, PlannedFile]]
) -> Iterator[str]:
    """List the programs that this machine does not have, each after its field.

    A program without an entry in `files`, by its name, is not searched in its files.
    """
    for line in experiment.setup_lines:
        if line.program and not shutil.which(line.program, path=GUEST_PATH):
            yield f"{name}: {line.place}: {line.program}: no such program in {GUEST_PATH}"
    for index, program in enumerate(experiment.programs):
        word = program.command[0]
        path = program.environment.get("PATH", GUEST_PATH)
        where = f"{name}: programs.{index}.command.0: {word}"
        if "/" not in word and not shutil.which(word, path=path):
            yield f"{where}: no such program in {path}"
        elif word.startswith("/") and not os.access(word, os.X_OK):
            yield f"{where}: no such program"
        elif "/" in word and not word.startswith("/") and program.name in files:
            file = files[program.name].get(os.path.normpath(word))
            if not (file and file.executable):
                yield f"{where}: not a program of its `files`"
