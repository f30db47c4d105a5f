"""Documents of untrusted runs: names, numbers and nesting."""

from pathlib import Path
from typing import Any

import pytest
from support.synthetic_run import manifest

from twoway.contract.guest_files import read_netstat
from twoway.contract.model import read_json
from twoway.contract.writing import write_json
from twoway.manifest import Manifest

NAMES = ["../../elsewhere", "/etc/passwd", "..", ".hidden", "", "a\x1b[2J", "a\nb", "x" * 256]


def _places(document: dict[str, Any], name: str) -> dict[str, tuple[Any, Any, Any]]:
    """List the fields of a manifest that name files, each as mapping, key and value."""
    connection, queue = document["connections"][0], document["queues"][0]
    return {
        "experiment.id": (document["experiment"], "id", name),
        "run": (document, "run", name),
        "nodes.hosts.0": (document["nodes"], "hosts", [name]),
        "interfaces.0.name": (document["interfaces"][0], "name", name),
        "interfaces.0.node": (document["interfaces"][0], "node", name),
        "queues.0.interface": (queue, "interface", name),
        "queues.0.direction": (queue, "direction", name),
        "queues.0.reallocations": (queue, "reallocations", name),
        "connections.0.name": (connection, "name", name),
        "connections.0.source_interface": (connection, "source_interface", name),
        "captures": (document, "captures", {name: "in"}),
        "files.0": (document, "files", [name]),
        "digests": (document, "digests", {name: "0"}),
    }


@pytest.mark.parametrize("place", _places(manifest(), ""))
def test_names_of_files(tmp_path: Path, place: str) -> None:
    """A manifest with a path out of the run's folder is refused, with the field."""
    for name in NAMES:
        document = manifest()
        where, key, value = _places(document, name)[place]
        where[key] = value
        write_json(tmp_path / "manifest.json", document)
        with pytest.raises(ValueError, match=rf"(?s)manifest.json: {place}.*should match pattern"):
            Manifest.read(tmp_path / "manifest.json")


@pytest.mark.parametrize(
    ("content", "phrase"),
    [
        ("[" * 300_000, "nested too deep"),
        ("1" * 5000, "a number that does not fit in 64 bits: 11111111111111111111$"),
        (str(2**64), "a number that does not fit in 64 bits"),
        ("1e300", "a number that does not fit in 64 bits: 1e300"),
        ("{", "Expecting property name"),
    ],
)
def test_what_python_cannot_take(content: str, phrase: str) -> None:
    """JSON that is nested too deep, or has too large a number, is refused in a phrase."""
    with pytest.raises(ValueError, match=phrase):
        read_json(content)
    assert read_json(f"[{2**64 - 1}, {-(2**63)}, 1e15]") == [2**64 - 1, -(2**63), 1e15]


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"\xff", b"TcpExt: a\n", b"TcpExt: a b\nTcpExt: 1\n", b"\n\n", b" " * (1 << 17)),
        *(b"TcpExt: a\nTcpExt: %b\n" % each for each in (b"x", b"-1", b"1" * 4000, b"1" * 5000)),
    ],
)
def test_counters_of_another_form(tmp_path: Path, content: bytes) -> None:
    """Counters of TCP that are no numbers of 64 bits, or without names, are refused."""
    (tmp_path / "netstat").write_bytes(content)
    with pytest.raises(ValueError):  # noqa: PT011 - in Python's words
        read_netstat(tmp_path, "netstat")
    (tmp_path / "netstat").write_bytes(b"TcpExt: a b\nTcpExt: 1 20\nIpExt: a\nIpExt: x\n")
    assert read_netstat(tmp_path, "netstat") == {"a": 1, "b": 20}
