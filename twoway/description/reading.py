"""Reading and checking the files of experiments and link profiles.

Unknown keys are errors, and all errors of a file are reported at once.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from twoway.contract.model import Model, demand
from twoway.contract.plan import PlannedFile
from twoway.description.experiment import OWN_FIELDS, Experiment, Profile
from twoway.description.link_tables import with_table
from twoway.description.matrix import (
    AxisValues,
    Value,
    changed_profile,
    changes,
    point_name,
    set_values,
)
from twoway.description.own_modules import OwnModule, read_own_modules
from twoway.description.parsing import parse, show_text
from twoway.description.programs import read_files
from twoway.description.repetitions import at_matrix, set_seed
from twoway.description.rules import experiment_problems, profile_problems
from twoway.errors import SpecError
from twoway.manifest import SEED
from twoway.messages import suggest
from twoway.paths import shown_path

# Endings of the names of experiments' files.
_SUFFIXES = (".yml", ".yaml")
# Limits of a file's size, and of the number of problems printed for one file.
_MOST_KIB, _MOST_PROBLEMS = 128, 50

# Names of effects that other tools have, and the sentence on them.
_NOT_HERE = {
    **dict.fromkeys(
        ("mptcp", "gre", "vxlan", "wireguard", "tun", "bond", "ecmp", "netfilter", "syn_cookies"),
        "commands in `setup` make it with `kernel: wide`",
    ),
    **dict.fromkeys(
        ("htb", "tbf", "prio", "priority", "classes", "hhf", "qdisc"),
        "`queue: {tc: WORDS}` takes tc's own words",
    ),
    **dict.fromkeys(("distribution", "correlation"), "netem's jitter is uniform here"),
    **dict.fromkeys(
        ("ack_filter", "diffserv", "atm"), "`queue: {tc: cake WORDS}` takes cake's options"
    ),
    **dict.fromkeys(
        ("nodelay", "TCP_NODELAY", "notsent_lowat_bytes", "max_pacing_rate_mbit"),
        "`socket: {nodelay: true}` of a flow has options of its socket, with names of their own",
    ),
    "dscp": "`socket: {dscp: 46}` of a flow and `datagrams` have it, and `queue: {tc: WORDS}` "
    "sorts by it",
    "tos": "`dscp` has its upper six bits",
    "qdiscs": "hosts.NAME.qdisc and routers.NAME.qdisc name them",
    "sysctls": "stack.sysctls has those of all hosts, hosts.NAME.stack.sysctls those of one",
    **dict.fromkeys(
        ("mtu", "mtu_bytes"),
        "mtu_bytes is a direction's own MTU, and stack.mtu_bytes that of all interfaces",
    ),
}
# The fields that have a schedule, by the field with one value.
_SCHEDULED = {"rate_mbit": "rate", "delay_ms": "delay", "queue_packets": "queue_limit"}

# Parts of an error's place that name a member of a union, not a field.
_OF_UNION = re.compile(
    r"(\[key\]|bool|int|float|str|constrained-str)$|(list|dict|tuple|union|literal)\["
)

ModelT = TypeVar("ModelT", bound=Model)


class ProfileSource(NamedTuple):
    """The fields of a link profile as they are written.

    Attributes:
        where: the file, or the experiment's field, for errors.
        document: the fields.
        folder: the folder of the files that the profile names.
    """

    where: str
    document: dict[str, Any]
    folder: Path


@dataclass(frozen=True, eq=False)
class ExperimentSource:
    """The fields of an experiment as they are written.

    Attributes:
        id: the experiment's id.
        where: the file, or the row of a suite, for errors.
        file: the file, whose folder has the files that the experiment names.
        document: the fields.
        modules: kernel modules besides those that the experiment names.
    """

    id: str
    where: str
    file: Path
    document: dict[str, Any]
    modules: tuple[OwnModule, ...] = ()

    @cached_property
    def as_written(self) -> Experiment:
        """The fields, validated, without a point's values.

        Raises: SpecError with every problem found.
        """
        return validate_document(self.where, self.document, Experiment)

    def own_modules(self, experiment: Experiment) -> tuple[OwnModule, ...]:
        """Read the kernel modules that the experiment brings along.

        Raises: SpecError with every path that is no module's.
        """
        try:
            return (*read_own_modules(experiment.own_modules, self.file.parent), *self.modules)
        except SpecError as error:
            raise SpecError([f"{self.where}: {problem}" for problem in error.problems]) from error

    def program_files(self, experiment: Experiment) -> dict[str, dict[str, PlannedFile]]:
        """Read the files of the experiment's programs.

        Raises: SpecError with every path that cannot be copied.
        """
        try:
            return read_files(experiment.programs, self.file.parent)
        except SpecError as error:
            raise SpecError([f"{self.where}: {problem}" for problem in error.problems]) from error


def experiment_file(path: Path) -> ExperimentSource:
    """Read the fields of an experiment's file, with those of its base.

    Raises: SpecError with a sentence if it is no YAML, or no mapping, or has no sound base.
    """
    text = text_of(path)
    document = document_of(path, text)
    if "base" not in document:
        return _source(path, text)
    given = document["base"]
    beside = {each.stem: each for each in path.parent.iterdir() if each.suffix in _SUFFIXES}
    base = beside.get(given) if isinstance(given, str) else None
    if base is None:
        problem = f"no experiment {show_text(repr(given))} beside it"
        raise SpecError(
            [f"{shown_path(path)}: base: {problem}{suggest(str(given), sorted(beside))}"]
        )
    return _source(path, text, base, text_of(base))


@cache
def _source(
    path: Path, text: str, base: Path | None = None, base_text: str = ""
) -> ExperimentSource:
    """Read an experiment's file, once for all points of a sweep."""
    document = document_of(path, text)
    if base:
        document, below = dict(document), document_of(base, base_text)
        named = document.pop("base")
        if "base" in below:
            problem = (
                "is this file" if base == path else f"{named} has a base itself: take that one"
            )
            raise SpecError([f"{shown_path(path)}: base: {problem}"])
        set_up = {field: value for field, value in below.items() if field not in OWN_FIELDS}
        document = merge_patch(set_up, document)
    where = f"{shown_path(path)} with base {base.stem}" if base else shown_path(path)
    return ExperimentSource(path.stem, where, path, document)


def merge_patch(document: Any, patch: Any) -> Any:
    """Change a document by a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, Mapping):
        return patch
    found = dict(document) if isinstance(document, Mapping) else {}
    for key, value in patch.items():
        found[key] = merge_patch(found.get(key), value)
        if value is None:
            del found[key]
    return found


def load_experiment(source: ExperimentSource, point: AxisValues | None = None) -> Experiment:
    """Check the fields of an experiment.

    Args:
        source: the fields.
        point: a point of the matrix, whose values are set in the experiment; with a seed, the
            repetition of the experiment at that point.

    Raises: SpecError with every problem of the fields, or of the point.
    """
    document, experiment = source.document, source.as_written
    own = source.own_modules(experiment)
    problems, matrix = _problems_as_written(source, own), experiment.matrix
    if point and not problems:
        where = f"{source.where}: point {point_name(point)}"
        try:
            values = changes(experiment.matrix, at_matrix(experiment, point))
            document = set_values(document, values)
        except SpecError as error:
            raise SpecError([f"{where}: {problem}" for problem in error.problems]) from error
        experiment = validate_document(where, document, Experiment)
        problems = [f"point {point_name(point)}: {p}" for p in experiment_problems(experiment, own)]
    if problems:
        raise SpecError([f"{source.where}: {problem}" for problem in problems])
    if point and SEED in point and SEED not in matrix:
        return set_seed(experiment, int(str(point[SEED])))
    return experiment


def axis_problems(
    source: ExperimentSource, profile_source: ProfileSource, values: Mapping[str, Value]
) -> list[str]:
    """List paths of axes that lead to no field of the experiment or of its link profile.

    Args:
        source: the experiment.
        profile_source: its link profile.
        values: the values of a point, by path.
    """
    given, profile = source.document, profile_source.document
    wrong: dict[str, str] = {}
    for each, value in values.items():
        try:
            set_values(given, {each: value})
            changed_profile(profile, {each: value})
        except SpecError as error:
            wrong[each] = str(error)
    sound = {each: value for each, value in values.items() if each not in wrong}
    wrong |= _unknown_paths(set_values(given, sound), Experiment, sound)
    wrong |= _unknown_paths(changed_profile(profile, sound), Profile, sound)
    return [
        f"{source.where}: matrix.{name}.set.{index}: {wrong[each]}"
        for name, axis in source.as_written.matrix.items()
        for index, each in enumerate(axis.set)
        if each in wrong
    ]


def _unknown_paths(
    document: dict[str, Any], model: type[Model], paths: Iterable[str]
) -> dict[str, str]:
    """Find the paths that set fields which a model does not have; return a sentence for each."""
    try:
        model.model_validate(document)
    except ValidationError as error:
        unknown = [each for each in error.errors() if each["type"] == "extra_forbidden"]
    else:
        return {}
    found = {}
    for each in unknown:
        steps = {step for step in each["loc"] if isinstance(step, str)}
        place = {step for step in steps if not _OF_UNION.match(step)}
        for path in paths:
            # The error's place has no names of flows: it has their indices, which are left out
            # here.
            if place <= {"directions", *path.split(".")}:
                found[path] = f"{path}: unknown field{_suggestion(each, model)}"
    return found


def profile_file(path: Path) -> ProfileSource:
    """Read the fields of a profile's file.

    Raises: SpecError with a sentence if it is no YAML, or no mapping.
    """
    return ProfileSource(str(path), read_document(path), path.parent)


def load_profile(path: Path) -> Profile:
    """Read and check one link profile.

    Raises: SpecError with every problem of the file.
    """
    return checked_profile(profile_file(path), {})


def checked_profile(source: ProfileSource, values: Mapping[str, Value]) -> Profile:
    """Check a link profile.

    Args:
        source: its fields.
        values: the values that a point sets, by path.

    Raises: SpecError with every problem of the fields.
    """
    document = _with_tables(source, changed_profile(source.document, values))
    profile = validate_document(source.where, document, Profile)
    profile, problems = _with_files(profile, source.folder)
    problems = [f"{source.where}: {problem}" for problem in problems or profile_problems(profile)]
    if problems:
        raise SpecError(problems)
    return profile


def _with_tables(source: ProfileSource, document: dict[str, Any]) -> dict[str, Any]:
    """Read the tables that directions name into their fields.

    Raises: SpecError with every table that cannot be read.
    """
    directions, problems = document.get("directions"), list[str]()
    if not isinstance(directions, dict):  # validation refuses other types
        return document
    for name, fields in directions.items():
        if isinstance(fields, dict) and isinstance(fields.get("table"), str):
            try:
                directions[name] = with_table(name, fields, source.folder)
            except ValueError as error:
                problems.append(f"{source.where}: directions.{name}.table{error}")
    if problems:
        raise SpecError(problems)
    return document


def _with_files(profile: Profile, folder: Path) -> tuple[Profile, list[str]]:
    """Read the files that elements of a profile name; list those that cannot be read."""
    directions, problems = {}, []
    for name, direction in profile.directions.items():
        read = {}
        for element in direction.elements:
            try:
                found = element.read(folder)
            except ValueError as error:
                problems.append(f"directions.{name}.{element.FIELD}{error}")
                continue
            if found is not element:
                read[element.FIELD] = found
        directions[name] = direction.model_copy(update=read)
    return profile.model_copy(update={"directions": directions}), problems


@cache
def _parsed(text: str) -> Any:
    """Parse YAML, once for all points of a sweep.

    Callers must not change the result.
    """
    return parse(text)


@cache
def _problems_as_written(source: ExperimentSource, own: tuple[OwnModule, ...]) -> list[str]:
    return experiment_problems(source.as_written, own)


def read_document(path: Path) -> dict[str, Any]:
    """Read a file's fields as they are.

    Raises: SpecError with a sentence if it is no YAML, or no mapping.
    """
    return document_of(path, text_of(path))


def text_of(path: Path) -> str:
    """Read the text of a file.

    Raises: SpecError with a sentence if it cannot be read, is too long or not UTF-8.
    """
    try:
        with path.open("rb") as file:
            content = file.read((_MOST_KIB << 10) + 1)
        if len(content) > _MOST_KIB << 10:
            raise SpecError([f"{path}: more than {_MOST_KIB} KiB"])
        return content.decode()
    except UnicodeDecodeError as error:
        raise SpecError([f"{path}: not UTF-8: {error.reason} at byte {error.start}"]) from error
    except OSError as error:
        raise SpecError([f"{path}: {error.strerror}"]) from error


def document_of(path: Path, text: str) -> dict[str, Any]:
    """Parse the fields of a file.

    Raises: SpecError with a sentence if it is no YAML, or no mapping.
    """
    try:
        document = _parsed(text)
    except yaml.YAMLError as error:
        raise SpecError(
            [f"{path}: not YAML: {show_text(' '.join(str(error).split()), 300)}"]
        ) from error
    if not isinstance(document, dict):
        raise SpecError([f"{path}: must be a mapping of fields, got {type(document).__name__}"])
    return document


def validate_document(where: str, document: dict[str, Any], model: type[ModelT]) -> ModelT:
    """Validate the content of a file.

    Args:
        where: the file, for errors.
        document: the fields of the file.
        model: the model that describes the fields.

    Raises: SpecError with every problem found.
    """
    try:
        valid = model.model_validate(document)
    except ValidationError as error:
        details = error.errors(include_url=False)
        sentences = _sentences(details, model)
        problems = [f"{where}: {sentence}" for sentence in sentences[:_MOST_PROBLEMS]]
        if len(sentences) > _MOST_PROBLEMS:
            problems.append(f"{where}: and {len(sentences) - _MOST_PROBLEMS} problems more")
        kind = model.__name__.lower()
        raise SpecError(problems, f"`twoway schema {kind}` describes every field") from error
    if taken := [
        f"{where}: {p}" for p in _taken_for_numbers(document, valid.model_dump(by_alias=True))
    ]:
        raise SpecError(taken)
    return valid


def _taken_for_numbers(given: Any, valid: Any, where: str = "") -> Iterator[str]:
    """List truth values and words that validation would accept as numbers."""
    if isinstance(given, dict) and isinstance(valid, dict):
        for key, value in given.items():
            yield from _taken_for_numbers(value, valid.get(key), f"{where}.{key}".lstrip("."))
    elif isinstance(given, list) and isinstance(valid, list | tuple):
        for index, pair in enumerate(zip(given, valid, strict=False)):
            yield from _taken_for_numbers(*pair, f"{where}.{index}")
    elif isinstance(given, bool | str) and type(valid) in (int, float):
        yield f"{where}: must be a number, got {show_text(repr(given))}"


def _sentences(details: Sequence[ErrorDetails], model: type[BaseModel]) -> list[str]:
    """List problems, one sentence for each place; a union counts as one place."""
    found: dict[str, list[ErrorDetails]] = {}
    for detail in details:
        parts = (show_text(str(part)) for part in detail["loc"] if not _OF_UNION.match(str(part)))
        found.setdefault(".".join(parts), []).append(detail)
    return [
        f"{where}{_complaint(group, model)}"
        for where, group in found.items()
        if group[0]["type"] not in ("list_type", "dict_type")
        or not any(each.startswith(f"{where}.") for each in found)
    ]


def _complaint(details: Sequence[ErrorDetails], model: type[BaseModel]) -> str:
    """Write the sentence for one place."""
    first = details[0]
    match first["type"]:
        case "extra_forbidden":
            return f": unknown field{_suggestion(first, model)}"
        case "missing":
            return ": required"
        case _:
            messages = [demand(each) for each in details]
            others = [message.removeprefix("must be ") for message in messages[1:]]
            said = " or ".join(dict.fromkeys([messages[0], *others]))
            given, field = first["input"], str(first["loc"][-1])
            why = _NOT_HERE.get(given) if isinstance(given, str) else None
            if isinstance(given, dict) and field in _SCHEDULED:
                why = f"{_SCHEDULED[field]} has a schedule"
            lacks = f"; {why} (docs/limits.md)" if why else ""
            return f": {said}, got {show_text(repr(given))}{lacks}"


def _suggestion(detail: ErrorDetails, model: type[BaseModel]) -> str:
    """Suggest the known field closest to an unknown one, or the place where it belongs."""
    if detail["loc"][:-1] == ("topology",):
        name = show_text(str(detail["loc"][-1]))
        value = show_text(repr(detail["input"]), 20)
        return f"; a topology's own fields go under parameters: {{{name}: {value}}}"
    if detail["loc"] == ("link",):
        return "; a link is a file that `profile` names: `twoway new` writes one"
    if (name := str(detail["loc"][-1])) in _NOT_HERE and detail["loc"][0] != "stack":
        return f"; {_NOT_HERE[name]} (docs/limits.md)"
    known: set[str] = set()
    _collect_fields(model.model_json_schema(by_alias=True), known)
    unknown = show_text(str(detail["loc"][-1]))
    return suggest(unknown, sorted(known - {unknown}))


def _collect_fields(schema: Any, known: set[str]) -> None:
    if isinstance(schema, dict):
        properties = schema.get("properties")
        if isinstance(properties, dict):
            known.update(properties)
        for value in schema.values():
            _collect_fields(value, known)
    elif isinstance(schema, list):
        for value in schema:
            _collect_fields(value, known)
