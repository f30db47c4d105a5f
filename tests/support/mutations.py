"""Documents as a hostile guest may leave them: every kind of wrong value at every place."""

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

Place = tuple[str | int, ...]
# Values in JSON's own text, as Python cannot hold or write all of them.
VALUES = (
    *("null", "true", '"x"', '""', "[]", "{}", "[[]]", '{"a": 1}', '"\\ud800"', '"../../x"'),
    *("0", "-1", "1", "7.5", "1e-300", "1e18", "1e300", "NaN", "-Infinity", "100000000"),
    *(str(2**31), str(2**53), str(2**63 - 1), str(-(2**63)), str(2**63), str(2**64), "9" * 200_000),
)
# Whole files.
FILES = (
    *(b"", b"\n", b"\xff\xfe", b"\0" * 5000, b"[" * 100_000, b'{"a":' * 100_000, b"7", b"null"),
    *(b"NaN", b'"x"', b"[]", b"{}", b"[1, 2, 3]", b"[[]]", b"9" * 200_000, b"x" * 200_000),
)
_MARK = "the mutated value"


def places(document: Any, place: Place = ()) -> Iterator[Place]:
    """List the places of all values in a document, containers included."""
    if place:
        yield place
    if isinstance(document, dict | list):
        for key in document if isinstance(document, dict) else range(len(document)):
            yield from places(document[key], (*place, key))


def mutated(document: Any, place: Place, value: str) -> bytes:
    """Replace the value at a place by a text of JSON."""
    changed = json.loads(json.dumps(document))
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = _MARK
    return json.dumps(changed).replace(json.dumps(_MARK), value).encode()


def lacking(document: Any, place: Place) -> bytes:
    """Remove the value at a place."""
    changed = json.loads(json.dumps(document))
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    del inner[place[-1]]
    return json.dumps(changed).encode()


def of_document(content: bytes, most: int | None = None) -> Iterator[tuple[str, bytes]]:
    """List mutations of a document, each with a name: all, or a sample that a seed draws."""
    document = json.loads(content)
    where = [*places(document)]
    found = [(place, value) for place in where for value in (*VALUES, None)]
    for place, value in found if most is None else random.Random(5).sample(found, most):
        name = ".".join(map(str, place))
        if value is None:
            yield f"without {name}", lacking(document, place)
        else:
            yield f"{name}: {value[:20]}", mutated(document, place, value)


def of_table(content: bytes, numbers: Sequence[str] = VALUES) -> Iterator[tuple[str, bytes]]:
    """List mutations of a CSV table with a preamble, each with a name."""
    lines = content.decode().splitlines()
    head = next(at for at, line in enumerate(lines) if not line.startswith("#"))
    columns = lines[head].split(",")
    for at, column in enumerate(columns):
        for value in numbers:
            row = lines[head + 1].split(",")
            row[at] = value.strip('"')
            yield f"{column}: {value[:20]}", "\n".join([*lines[:-1], ",".join(row), ""]).encode()
        rows = [line.split(",") for line in lines[head:]]
        fewer = [",".join([*row[:at], *row[at + 1 :]]) for row in rows]
        yield f"without {column}", "\n".join([*fewer, ""]).encode()
    for name, more in _LINES.items():
        yield f"{name} before", more + b"\n" + content
        yield f"{name} after", content + more
        first = "\n".join(lines[:head]).encode() + b"\n"
        yield f"{name} as header", first + more + b"\n" + "\n".join(lines[head:]).encode()
    yield "no rows", "\n".join(lines[: head + 1]).encode() + b"\n"


_LINES = {
    "a byte": b"\xff",
    "a preamble of bytes": b"# \xff",
    "no numbers": b"\0" * 5000,
    "a long row": b"1" * 200_000,
    "a long field": b'"' + b"x" * 200_000 + b'"',
    "an open quote": b'"' + b"x,\n" * 70_000,
    "many fields": b"," * 10_000,
    "an empty row": b"",
}
