"""Find the files that an experiment refers to: its link profile and its topology."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from twoway.contract.files_below import find_below
from twoway.description.matrix import changes, points
from twoway.description.reading import (
    ExperimentSource,
    ProfileSource,
    checked_profile,
    load_experiment,
    profile_file,
)
from twoway.errors import SpecError
from twoway.links.rate import Rate
from twoway.messages import suggest
from twoway.paths import EXPERIMENTS, PROFILES, SUITES, TOPOLOGIES, shown_path


def find_profile(name: str, beside: Path | None = None) -> Path:
    """Find a link profile's file by name.

    Args:
        name: the profile's name.
        beside: the experiment's file, whose folder is searched first; None for none.

    Raises: SpecError if there is no such profile.
    """
    path = file_beside(beside, f"{name}.yml") or PROFILES / f"{name}.yml"
    if not path.is_file():
        known = sorted(each.stem for each in PROFILES.glob("*.yml"))
        raise SpecError(
            [f"{shown_path(path)}: no such profile{suggest(name, known)}"],
            f"existing profiles: {', '.join(known)}",
        )
    return path


def profile_source(given: str | Mapping[str, Any], beside: Path) -> ProfileSource:
    """Find a link profile: its file by name, or the fields that an experiment has.

    Args:
        given: the experiment's field `profile`.
        beside: the experiment's file.

    Raises: SpecError if there is no such profile.
    """
    if isinstance(given, str):
        return profile_file(find_profile(given, beside))
    fields = {"schema": 1, "title": "", **given}
    return ProfileSource("profile", fields, beside.parent)


def in_experiment(where: object, error: SpecError, given: object) -> list[str]:
    """Place the problems of a profile in its experiment: after the field, or within its fields."""
    if isinstance(given, str):
        return [f"{where}: profile: {problem}" for problem in error.problems]
    return [f"{where}: {problem.replace('profile: ', 'profile.', 1)}" for problem in error.problems]


def find_topology(name: str, beside: Path) -> Path:
    """Return the path of a topology's file, by name; the file may not exist."""
    return file_beside(beside, f"{name}.py") or TOPOLOGIES / f"{name}.py"


def file_beside(experiment: Path | None, name: str) -> Path | None:
    """Return a file beside an experiment's file, unless that is one of the checkout's own."""
    own = (EXPERIMENTS, SUITES)
    if experiment is None or any(experiment.resolve().is_relative_to(each) for each in own):
        return None
    path = experiment.parent / name
    return path if path.is_file() and path.name != experiment.name else None


def named_texts(source: ExperimentSource) -> Iterator[tuple[str, str]]:
    """List the files beside an experiment's file that it names, each with its content.

    A file may be named by a value of an axis: each axis is tried at each of its values, with the
    first values of the others.

    Raises: SpecError with every problem of the experiment or of a file.
    """
    matrix = source.as_written.matrix
    first = next(points(matrix))
    others = [{**first, axis: at} for axis, each in matrix.items() for at in each.to]
    for point in (first, *others):
        experiment = load_experiment(source, point)
        named = [file_beside(source.file, f"{experiment.topology.name}.py")]
        if isinstance(experiment.profile, str):
            named.append(file_beside(source.file, f"{experiment.profile}.yml"))
        try:
            profile = profile_source(experiment.profile, source.file)
            directions = checked_profile(profile, changes(matrix, point)).directions
        except SpecError as error:
            problems = in_experiment(source.where, error, experiment.profile)
            raise SpecError(problems, error.hint) from error
        rates = [each.elements.find(Rate) for each in directions.values()]
        if profile.folder == source.file.parent:
            named += [find_below(profile.folder, r.mahimahi) for r in rates if r and r.mahimahi]
            named += [find_below(profile.folder, d.table) for d in directions.values() if d.table]
        texts = ((path, path.read_text("utf-8", "backslashreplace")) for path in named if path)
        yield from ((path.name, text) for path, text in texts)
        for module in source.own_modules(experiment):
            yield from ((f"{module.name}/{name}", text) for name, text in module.sources.items())
        for program, files in source.program_files(experiment).items():
            yield from ((f"{program}/{name}", file.base64) for name, file in files.items())
