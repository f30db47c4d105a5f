"""Files made to exhaust or confuse a reader are refused, or read in part, in bounded memory."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bounded_cli
import pytest
from hostile_files import Hostile, files

pytestmark = pytest.mark.slow

FILES = list(files())

Ask = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """Return a function that runs the command with at most 1 GiB of address space."""
    with subprocess.Popen(
        [sys.executable, bounded_cli.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        requests, answers = process.stdin, process.stdout

        def one(*arguments: str | Path) -> dict[str, Any]:
            requests.write(json.dumps([str(argument) for argument in arguments]) + "\n")
            requests.flush()
            line = answers.readline()
            assert line, "the command took the whole process with it"
            answer: dict[str, Any] = json.loads(line)
            return answer

        yield one
        requests.close()


@pytest.mark.parametrize("hostile", FILES, ids=lambda hostile: hostile.name)
def test_hostile_file(ask: Ask, hostile: Hostile, tmp_path: Path) -> None:
    """A hostile file is refused with a sentence and status 2, or read in part with a warning."""
    path = tmp_path / "hostile.pcap"
    path.write_bytes(hostile.content())
    answer = ask("metrics", path, "--workers", "1")
    if hostile.packets is None:
        assert answer["status"] == 2
        assert answer["output"] == ""
        assert answer["errors"].startswith(f"capture-analysis: {path}: ")
        assert hostile.said in answer["errors"]
    else:
        assert answer["status"] == 0
        document = json.loads(answer["output"])
        assert document["capture"]["packets"] == hostile.packets
        assert hostile.said in " ".join(document["warnings"])


@pytest.mark.parametrize("hostile", FILES, ids=lambda hostile: hostile.name)
def test_hostile_file_annotated(ask: Ask, hostile: Hostile, tmp_path: Path) -> None:
    """`annotate` refuses a hostile file and leaves no copy, or copies it as far as possible."""
    path, target = tmp_path / "hostile.pcap", tmp_path / "copy.pcapng"
    path.write_bytes(hostile.content())
    answer = ask("annotate", path, "-o", target)
    if hostile.packets is None:
        assert answer["status"] == 2
        assert answer["errors"].startswith(f"capture-analysis: {path}: ")
        assert list(tmp_path.iterdir()) == [path]
    else:
        assert answer["status"] == 0
        again = ask("metrics", target, "--workers", "1")
        assert json.loads(again["output"])["capture"]["packets"] == hostile.packets


def test_hostile_file_as_table(ask: Ask, tmp_path: Path) -> None:
    """`flows` lists the connections before the damage, and reports it on stderr."""
    path = tmp_path / "hostile.pcap"
    path.write_bytes(next(each for each in FILES if each.name == "4 GB record").content())
    answer = ask("flows", path)
    assert answer["status"] == 0
    assert "10.0.1.2:40001 > 10.0.2.2:20001" in answer["output"]
    assert "claims 4294967295 bytes; the rest was not read" in answer["errors"]


def test_no_file(ask: Ask, tmp_path: Path) -> None:
    """A missing file, a folder and a device are refused by name, with status 2."""
    for path in (tmp_path / "nothing.pcap", tmp_path, Path("/dev/null")):
        answer = ask("flows", path)
        assert answer["status"] == 2
        assert answer["errors"].startswith(f"capture-analysis: {path}")
