"""Reading and checking the files of experiments and link profiles.

Unknown keys are errors, and all errors of a file are reported at once.
"""

import difflib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from twoway.contract.model import Model
from twoway.errors import SpecError
from twoway.spec.experiment import Experiment, Profile
from twoway.spec.matrix import Point, Scalar, changed, changed_profile, changes, point_name
from twoway.spec.own_modules import OwnModule, read_own_modules
from twoway.spec.rules import experiment_problems, profile_problems

ModelT = TypeVar("ModelT", bound=Model)


def load_experiment(path: Path, point: Point | None = None) -> Experiment:
    """Read and check one experiment file.

    Args:
        path: the file.
        point: a point of the matrix, whose values are set in the experiment.

    Raises: SpecError with every problem of the file, or of the point.
    """
    document = _read(path)
    experiment = _validated(str(path), document, Experiment)
    own = own_modules(path, experiment)
    problems = experiment_problems(experiment, own)
    if point and not problems:
        where = f"{path}: point {point_name(point)}"
        try:
            document = changed(document, changes(experiment.matrix, point))
        except SpecError as error:
            raise SpecError([f"{where}: {problem}" for problem in error.problems]) from error
        experiment = _validated(where, document, Experiment)
        problems = [f"point {point_name(point)}: {p}" for p in experiment_problems(experiment, own)]
    if problems:
        raise SpecError([f"{path}: {problem}" for problem in problems])
    return experiment


def own_modules(path: Path, experiment: Experiment) -> tuple[OwnModule, ...]:
    """Read the kernel modules that an experiment brings along.

    Raises: SpecError with every path that is no module's.
    """
    try:
        return read_own_modules(experiment.own_modules, path.parent)
    except SpecError as error:
        raise SpecError([f"{path}: {problem}" for problem in error.problems]) from error


def load_profile(path: Path, values: Mapping[str, Scalar] | None = None) -> Profile:
    """Read and check one link profile.

    Args:
        path: the file.
        values: the values that a point sets, by path.

    Raises: SpecError with every problem of the file.
    """
    document = changed_profile(_read(path), values or {})
    profile = _validated(str(path), document, Profile)
    problems = [f"{path}: {problem}" for problem in profile_problems(profile)]
    if problems:
        raise SpecError(problems)
    return profile


class _Loader(yaml.SafeLoader):
    """A YAML loader that refuses duplicate keys.

    YAML would silently keep the last.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for key, _ in node.value:
            if keys.count(key.value) > 1 and key.value != "<<":
                raise yaml.constructor.ConstructorError(
                    None, None, f'"{key.value}" is given twice', key.start_mark
                )
        return super().construct_mapping(node, deep)


@cache
def _parsed(text: str) -> Any:
    """Parse YAML, once for all points of a sweep.

    Callers must not change the result.
    """
    return yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader


def _read(path: Path) -> dict[str, Any]:
    try:
        document = _parsed(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise SpecError([f"{path}: not UTF-8: {error.reason} at byte {error.start}"]) from error
    except yaml.YAMLError as error:
        raise SpecError([f"{path}: not YAML: {' '.join(str(error).split())}"]) from error
    except OSError as error:
        raise SpecError([f"{path}: {error.strerror}"]) from error
    if not isinstance(document, dict):
        raise SpecError([f"{path}: must be a mapping of fields, got {type(document).__name__}"])
    return document


def _validated(where: str, document: dict[str, Any], model: type[ModelT]) -> ModelT:
    try:
        return model.model_validate(document)
    except ValidationError as error:
        problems = [f"{where}: {_sentence(detail, model)}" for detail in error.errors()]
        kind = model.__name__.lower()
        raise SpecError(problems, f"`twoway schema {kind}` describes every field") from error


def _sentence(detail: ErrorDetails, model: type[BaseModel]) -> str:
    where = ".".join(str(part) for part in detail["loc"] if part != "[key]")
    match detail["type"]:
        case "extra_forbidden":
            return f"{where}: unknown field{_suggestion(detail, model)}"
        case "missing":
            return f"{where}: required"
        case _:
            message = detail["msg"].replace("Input should be", "must be")
            return f"{where}: {message}, got {detail['input']!r}"


def _suggestion(detail: ErrorDetails, model: type[BaseModel]) -> str:
    """Suggest the known field that is most like an unknown one."""
    known: set[str] = set()
    _collect_fields(model.model_json_schema(by_alias=True), known)
    close = difflib.get_close_matches(str(detail["loc"][-1]), sorted(known), n=1)
    return f'; did you mean "{close[0]}"?' if close else ""


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
