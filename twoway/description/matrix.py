"""Sweeps: the `matrix:` of an experiment; every combination of its axes' values is run."""

import copy
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from twoway.contract.model import Model, Name, text
from twoway.contract.statements import label
from twoway.errors import SpecError

_WORDS = "of letters, digits and {}, a letter or digit first"
_IN_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
Scalar = bool | int | float | Annotated[str, text(_IN_NAME, _WORDS.format("_ . -"))]
Value = Scalar | list[Scalar]
# A value as `label` writes it: the values of several fields are joined by "+".
Label = (
    bool
    | int
    | float
    | Annotated[str, text(r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$", _WORDS.format("_ . + -"))]
)
# Values of a named one are in no name of a point.
_Words = Annotated[str, Field(max_length=16384)]
NamedValues = Annotated[
    dict[Label, bool | int | float | _Words | list[bool | int | float | _Words]],
    Field(min_length=1),
]
AxisValues = Mapping[str, Value]

_MOST_POINTS = 10_000
# Limit of a point's name: with the experiment's name and a seed it names a folder, 255 bytes.
_LONGEST_NAME = 180
# A path of `set:` that starts with one of these leads into the link profile: to a direction, or to
# the part that both directions share.
PROFILE, _SHARED = "profile.", "half_duplex."


_COMMAND = re.compile(r"programs\.[^.]+\.command")


def _nameable(given: object) -> object:
    """Refuse a list's words that no name of a point can have."""
    values = given if isinstance(given, list) else []
    words = [word for each in values for word in (each if isinstance(each, list) else [each])]
    for word in words:
        if isinstance(word, str) and not re.fullmatch(_IN_NAME, word):
            named = "name each value, as in `to: {first: VALUE, second: VALUE}`"
            raise ValueError(f"{word!r} cannot be part of a point's name; {named}")
    return given


class Axis(Model):
    """One axis of a sweep: the fields that it sets together, and their values."""

    set: Annotated[list[str], Field(min_length=1)] = Field(
        description="fields that take the value: flows.NAME.FIELD, profile.DIRECTION.FIELD, "
        "profile.half_duplex.FIELD, programs.NAME.command, or any other of this file's"
    )
    to: Annotated[
        Annotated[list[Value], Field(min_length=1)] | NamedValues, BeforeValidator(_nameable)
    ] = Field(
        description="the values in turn, or values by the names that points get; a list has one "
        "value for each field of `set`, or the words of a program's `command`"
    )

    def named_values(self) -> Iterable[tuple[Scalar, Value]]:
        """List the values, each with its name, or with its index in the list."""
        return self.to.items() if isinstance(self.to, dict) else enumerate(self.to)

    @property
    def is_command(self) -> bool:
        """True if it sets a program's command, whose value is a list of words."""
        return len(self.set) == 1 and bool(_COMMAND.fullmatch(self.set[0]))

    def value(self, at: Value) -> Value:
        """Return the value that this axis assigns to the point labelled `at`."""
        if not isinstance(self.to, dict):
            return at
        assert not isinstance(at, list)
        return self.to[at]


Matrix = Mapping[Name, Axis]


def points(matrix: Matrix) -> Iterator[AxisValues]:
    """List all points, the last axis varying fastest.

    Without axes there is one point, without values.
    """
    for values in itertools.product(*(axis.to for axis in matrix.values())):
        yield dict(zip(matrix, values, strict=True))


def point_name(point: AxisValues) -> str:
    """Name a point, such as "window=8,delay=2"."""
    return ",".join(f"{axis}={label(value)}" for axis, value in point.items())


def drop_axis(axis: str, point: AxisValues) -> AxisValues:
    """Return a point's values without that of one axis."""
    return {name: value for name, value in point.items() if name != axis}


def full_name(name: str, point: AxisValues) -> str:
    """Build the id of an experiment's point, for folders and command lines."""
    return f"{name}@{point_name(point)}" if point else name


def find_point(where: str, matrix: Matrix, name: str) -> AxisValues:
    """Find a point by its name, with its values in any order.

    Raises: SpecError if there is no such point.
    """
    for point in points(matrix):
        if same_name(point_name(point), name):
            return point
    raise _no_point(where, matrix, name)


def same_name(one: str, other: str) -> bool:
    """Tell whether two names of points have the same values, in any order."""
    return sorted_name(one) == sorted_name(other)


def sorted_name(name: str) -> str:
    """Write a point's name with its values in the order of the alphabet."""
    return ",".join(sorted(re.split("[@,]", name)))


def find_points(where: str, matrix: Matrix, name: str) -> list[AxisValues]:
    """Find the points with the values in a name: "window=8" finds them for each "delay".

    Args:
        where: the experiment's file, for errors.
        matrix: the experiment's axes.
        name: the values of some axes, in any order, such as "delay=2,window=8".

    Raises: SpecError if there is no such point.
    """
    asked = {value for value in name.split(",") if value}
    found = [point for point in points(matrix) if name == point_name(point)] or [
        point for point in points(matrix) if asked <= {*point_name(point).split(",")}
    ]
    if not found:
        raise _no_point(where, matrix, name)
    return found


def _no_point(where: str, matrix: Matrix, asked: str) -> SpecError:
    """Return the error that names the points that exist."""
    if not matrix:
        return SpecError([f'{where}: no point "{asked}"'], "there are none: there is no matrix")
    axes = (
        f"{name}={', '.join(label(value) for value in [*axis.to][:8])}"
        for name, axis in matrix.items()
    )
    return SpecError(
        [f'{where}: no point "{asked}"'], f"{size(matrix)} points combine {'; '.join(axes)}"
    )


def matrix_problems(matrix: Matrix) -> list[str]:
    """List the contradictions within a matrix."""
    if size(matrix) > _MOST_POINTS:
        return [f"matrix: {size(matrix)} points, at most {_MOST_POINTS} can be run"]
    problems = []
    for name, axis in matrix.items():
        problems += [
            f"matrix.{name}.to.{index}: {len(value)} values for {len(axis.set)} fields of set"
            for index, value in axis.named_values()
            if isinstance(value, list) and not axis.is_command and len(value) != len(axis.set)
        ]
        labels = [label(value) for value in axis.to]
        problems += [
            f"matrix.{name}.to: {each} is given twice"
            for each in dict.fromkeys(labels)
            if labels.count(each) > 1
        ]
    paths = [path for axis in matrix.values() for path in axis.set]
    problems += [
        f"matrix: {path} is set twice" for path in dict.fromkeys(paths) if paths.count(path) > 1
    ]
    longest = ",".join(
        max((f"{name}={label(value)}" for value in axis.to), key=len, default="")
        for name, axis in matrix.items()
    )
    if len(longest.encode()) > _LONGEST_NAME:
        problems.append(
            f"matrix: a point's name must have at most {_LONGEST_NAME} characters, "
            f"got {len(longest)}: {longest:.80}"
        )
    return problems


def changes(matrix: Matrix, point: AxisValues) -> dict[str, Value]:
    """List the fields that a point sets: values by path."""
    found: dict[str, Value] = {}
    for name, at in point.items():
        axis = matrix[name]
        value = axis.value(at)
        if isinstance(value, list) and not axis.is_command:
            found.update(zip(axis.set, value, strict=True))
        else:
            found.update(dict.fromkeys(axis.set, value))
    return found


def set_values(document: dict[str, Any], values: Mapping[str, Value]) -> dict[str, Any]:
    """Set a point's values in an experiment's document.

    Values of the profile are not set here.

    Raises: SpecError naming a path that names no field.
    """
    document = copy.deepcopy(document)
    if isinstance(name := document.get("topology"), str):  # its parameters may be set
        document["topology"] = {"name": name}
    for path, value in values.items():
        if not path.startswith(PROFILE):
            _set(document, path, value)
    return document


def changed_profile(document: dict[str, Any], values: Mapping[str, Value]) -> dict[str, Any]:
    """Set a point's values in a link profile's document.

    Raises: SpecError naming a path that names no field.
    """
    # deepcopy keeps directions that share a YAML anchor one object; separate them here.
    document = copy.deepcopy(document)
    directions = document.get("directions")
    if isinstance(directions, dict):  # validation refuses other types
        document["directions"] = {name: copy.deepcopy(each) for name, each in directions.items()}
    for path, value in values.items():
        if path.startswith(PROFILE):
            inside = path.removeprefix(PROFILE)
            _set(document, inside if inside.startswith(_SHARED) else f"directions.{inside}", value)
    return document


def _set(document: dict[str, Any], path: str, value: Value) -> None:
    above, mark, sysctl = path.partition(".sysctls.")  # whose names have dots
    *parents, last = [*above.split("."), "sysctls", sysctl] if mark else path.split(".")
    place: Any = document
    for depth, step in enumerate(parents):
        listed = isinstance(place, list) and all(isinstance(each, dict) for each in place)
        if listed:  # by name; by number where there is none, as of interventions
            place = {str(each.get("name", n)): each for n, each in enumerate(place)}
        if not isinstance(place, dict):
            raise SpecError([f"{path}: leads to no field"])
        if step not in place:
            named = parents[0] in ("flows", "datagrams", "programs", "directions") and depth == 1
            if listed or named:
                raise SpecError([f'{path}: no "{step}"; there are: {", ".join(place)}'])
            # a field that the document does not have yet; validation refuses unknown ones
            place[step] = {}
        place = place[step]
    if not isinstance(place, dict):
        raise SpecError([f"{path}: leads to no field"])
    place[last] = value


def matches(at: Mapping[str, Label | list[Label]], point: AxisValues) -> bool:
    """Tell whether an `at` includes a point, compared by labels."""
    return all(
        label(point[axis]) in map(label, wanted if isinstance(wanted, list) else [wanted])
        for axis, wanted in at.items()
    )


def size(matrix: Matrix) -> int:
    """Count a matrix's points."""
    return math.prod(len(axis.to) for axis in matrix.values())
