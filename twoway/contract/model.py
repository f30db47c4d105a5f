"""Base classes of documents, and how to read and write one."""

import json
import re
from pathlib import Path
from typing import Annotated, Any, NoReturn, Self

from pydantic import AliasGenerator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from twoway.contract.files import read_whole
from twoway.contract.writing import written_aside

# Limits of numbers, so that a computation in 64 bits does not overflow.
Positive = Annotated[float, Field(gt=0, le=1e15)]
NonNegative = Annotated[float, Field(ge=0, le=1e15)]
Whole = Annotated[int, Field(ge=-(10**15), le=10**15)]
# Counts and times of documents that a guest or a stranger wrote. No sum of three times, in ns since
# 1970, overflows 64 bits.
Count = Annotated[int, Field(ge=0, lt=2**53)]
LATEST_NS = 3 * 10**18
Nanoseconds = Annotated[int, Field(ge=0, le=LATEST_NS)]
OffsetNs = Annotated[int, Field(ge=-LATEST_NS, le=LATEST_NS)]
Port = Annotated[int, Field(ge=0, le=65535)]
# Limit of nested lists and objects in a document.
_DEEPEST = 64
# The patterns of `text`, in words.
_FORMS: dict[str, str] = {}


def text(pattern: str, form: str, most: int | None = None) -> Any:
    """Describe a string's pattern in words for errors; also limit its length."""
    _FORMS[pattern] = form
    return Field(pattern=pattern, max_length=most)


def demand(error: ErrorDetails) -> str:
    """Write what a value must be, from the error of its validation."""
    if error["type"] == "string_pattern_mismatch":
        pattern = error["ctx"]["pattern"]
        return f"must be {_FORMS[pattern]}" if pattern in _FORMS else f"must match {pattern}"
    if error["type"].startswith("bool_"):
        return "must be true or false"
    if error["type"] == "string_type" and isinstance(error["input"], bool | int | float):
        return "must be text in quotes"
    if error["type"] in ("dict_type", "model_type"):
        return "must be fields with values"
    said = error["msg"].removeprefix("Value error, ").partition(", unable to parse ")[0]
    return re.sub(r"^\w+ should ", "must ", said)


# Names become file names, metric names and command arguments.
Name = Annotated[
    str,
    text(
        r"^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$",
        "at most 32 letters, digits, _ and -, a letter or digit first",
    ),
]
# Names in documents of runs, which are untrusted: one part of a path, and a path below the run's
# folder. No part begins with a dot.
_PART = r"[^./\x00-\x1f\x7f-\x9f][^/\x00-\x1f\x7f-\x9f]{0,254}"
FileName = Annotated[str, Field(pattern=f"^{_PART}$")]
FilePath = Annotated[str, Field(pattern=f"^{_PART}(/{_PART}){{0,9}}$")]


def read_json(content: str | bytes, *, unique_keys: bool = False) -> Any:
    """Read untrusted JSON.

    Args:
        content: the text.
        unique_keys: whether a key that an object has twice is an error. tc prints such objects.

    Raises: ValueError with a phrase if the text is not JSON, is nested too deep, or has a number
        that 64 bits do not hold or half of a character.
    """
    text = content if isinstance(content, str) else content.decode(json.detect_encoding(content))
    try:
        found = json.loads(
            text,
            object_pairs_hook=_object if unique_keys else None,
            parse_int=_whole,
            parse_float=_fraction,
            parse_constant=_refuse,
        )
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    level, depth = [found], 0
    while level := [inner for each in level for inner in _containers(each)]:
        depth += 1
        if depth > _DEEPEST:
            raise ValueError("nested too deep")
    if re.search(r"\\u[dD]", text):  # a half of a pair, which no file can hold
        json.dumps(found, ensure_ascii=False).encode()
    return found


def _containers(value: Any) -> list[Any]:
    """List the lists and objects in a list or object."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [each for each in inner if isinstance(each, (dict, list))]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"a key twice: {key:.80}")
        found[key] = value
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _whole(digits: str) -> int:
    # Unsigned 64-bit numbers are allowed, too: the digest of a timetable is one.
    if len(digits) < 21 and -(2**63) <= (number := int(digits)) < 2**64:
        return number
    raise ValueError(f"a number that does not fit in 64 bits: {digits:.20}")


def _fraction(digits: str) -> float:
    if abs(number := float(digits)) < 2**63:
        return number
    raise ValueError(f"a number that does not fit in 64 bits: {digits:.20}")


class Model(BaseModel):
    """A part of a file: unknown fields are errors, and values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


class Record(Model):
    """A part of a document that twoway writes and reads itself.

    A field with a name that Python reserves ends in an underscore here, and not in the document.
    """

    model_config = ConfigDict(
        alias_generator=AliasGenerator(lambda name: name.rstrip("_")),
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )


class Document(Record):
    """A JSON document in a run's folder, whose field `schema_` is its version."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a document.

        Raises: OSError if it cannot be read; ValueError with a sentence that names the file if the
            document is not JSON, of another schema or does not fit its own.
        """
        try:
            fields = read_json(read_whole(path.parent, path.name))
        except ValueError as error:
            raise ValueError(f"{path}: not JSON: {error}") from error
        if not isinstance(fields, dict):
            raise ValueError(f"{path}: not a JSON object")  # noqa: TRY004 - the file, not a caller
        schema = cls.model_fields["schema_"].default
        if fields.get("schema") != schema:
            raise ValueError(
                f"{path}: not of schema {schema} but {fields.get('schema')}: "
                "another version of twoway wrote it"
            )
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            problems = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
            raise ValueError(f"{path}: {'; '.join(problems)}") from error

    def json_text(self) -> str:
        """Format the document as JSON."""
        return self.model_dump_json(indent=1)

    def write(self, path: Path) -> None:
        """Write the document, whole or not at all."""
        with written_aside(path) as file:
            file.write(self.json_text().encode() + b"\n")
