"""The documents and tables that a guest writes: types, ranges and limits of size.

They are untrusted: no analysis computes with a value that has not passed here.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from twoway.contract.files import read_whole
from twoway.contract.model import LATEST_NS, Count, demand, read_json

_Kind = TypeVar("_Kind")

# Size limit of a document. The counters of a router with 1000 interfaces have 0.3 MB.
MOST_BYTES = 4 << 20
# Size limit of a copy of /proc/net/netstat: some 2 KiB.
_NETSTAT_BYTES = 1 << 16
_COUNTER = re.compile(r"[0-9]{1,20}\Z")
# Limit of a table's rows: 1000 connections sampled every 10 ms, at both ends, for 80 s.
MOST_ROWS = 1 << 24
# Limit of a row's length; the rows that a guest writes have some 100 characters.
MOST_CHARACTERS = 1 << 14
# Lowest and highest number of a table's columns; a column that is not listed has any 64 bits.
RANGES = {
    "time_ns": (0, LATEST_NS),
    "read_ns": (0, LATEST_NS),
    "source_port": (0, (1 << 16) - 1),
    "packets": (0, (1 << 32) - 1),
    "cwnd": (0, (1 << 32) - 1),
    "ssthresh": (-1, (1 << 32) - 1),
    "rtt_us": (0, (1 << 32) - 1),
    "from": (0, (1 << 16) - 1),
    "to": (0, (1 << 16) - 1),
    "wanted": (0, (1 << 16) - 1),
    "estimate_bit": (0, 10**15),
}
# Names of marks in `tc -s -j qdisc show`: of red and choke, of all others, and of a threshold.
_MARKS = ("marked", "ecn_mark", "ce_mark")


def read_document(folder: Path, name: str, kind: type[_Kind]) -> _Kind:
    """Read a JSON file that a guest wrote.

    Args:
        folder: the run's folder.
        name: path relative to `folder`.
        kind: a model of the file's content.

    Raises: OSError if the file is missing or no plain file; ValueError with a phrase if it is too
        large, is not JSON, or does not fit its kind.
    """
    said = read_json(read_whole(folder, name, MOST_BYTES))
    try:
        return TypeAdapter(kind).validate_python(said)
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"{each}: " for each in first["loc"])
        raise ValueError(f"{where:.80}{demand(first)}") from error


def read_netstat(folder: Path, name: str) -> dict[str, int]:
    """Read a copy of /proc/net/netstat: the counters of TCP by name.

    Raises: OSError if the file is missing or no plain file; ValueError if it has another form.
    """
    text = read_whole(folder, name, _NETSTAT_BYTES).decode()
    lines = [line.split() for line in text.splitlines()]
    names, values = (words for words in lines if words[:1] == ["TcpExt:"])
    counters = dict(zip(names[1:], values[1:], strict=True))
    if odd := next((name for name, value in counters.items() if not _COUNTER.match(value)), None):
        raise ValueError(f"{odd:.80}: must be a number of 64 bits, got {counters[odd]:.80}")
    return {name: int(value) for name, value in counters.items()}


class _Said(BaseModel):
    """A document of a guest; fields that no analysis reads are ignored."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class Qdisc(_Said):
    """A queueing discipline with its counters, as `tc -s -j qdisc show` prints it."""

    dev: str = Field(description="its interface")
    kind: str = Field(default="", description="its kind, such as netem")
    root: bool = Field(default=False, description="true if it is the interface's own queue")
    parent: str = Field(default="", description="the class that it is in; empty for the root")
    drops: Count = Field(default=0, description="packets that it dropped")
    qlen: Count = Field(default=0, description="packets in it")
    packets: Count = Field(default=0, description="packets that left it")
    marks: tuple[Count, ...] = Field(description="packets that it and its parts marked")

    @model_validator(mode="before")
    @classmethod
    def _with_marks(cls, document: Any) -> Any:
        if isinstance(document, dict):
            return {**document, "marks": tuple(_marks(document))}
        return document


def _marks(part: Any) -> Iterator[Any]:
    """List the marks counted by a qdisc and by its parts, such as cake's tins."""
    if isinstance(part, dict):
        yield from (part[name] for name in _MARKS if name in part)
    if isinstance(part, dict | list):
        for inner in part.values() if isinstance(part, dict) else part:
            yield from _marks(inner)


class StreamSource(_Said):
    """The report of a source of TCP connections at its end, by its TCP_INFO."""

    sndbuf_limited_us: Count = Field(description="time in which its send buffer held it back")
    rwnd_limited_us: Count = Field(description="time in which the receiver's window held it back")
    gave_up: bool = Field(
        default=False, description="the kernel gave the connection up: no ACK came"
    )


class StreamSink(_Said):
    """The report of a sink of TCP connections at its end."""

    bytes_received: Count = Field(description="payload that it read")


class DatagramSource(_Said):
    """The report of a source of UDP packets at its end."""

    packets_sent: Count = Field(description="packets that it sent")
