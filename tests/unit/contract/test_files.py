"""A run's files: opened by one module, written whole, and no link is followed."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.running import ROOT

from twoway.contract.files import open_run_file, read_run_file
from twoway.contract.writing import refuse_full_disk, write_json, written_aside
from twoway.errors import DiskFullError
from twoway.runs.captures import pack

# Only one module opens a run's files; it follows no link and creates only new files.

VICTIM = "the user's"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file of the user's, outside of the run's folder."""
    path = tmp_path / "victim"
    path.write_text(VICTIM)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run's folder with a capture."""
    path = tmp_path / "run"
    (path / "pcap").mkdir(parents=True)
    (path / "pcap/h1-eth0.pcap").write_bytes(b"packets")
    return path


def _write(folder: Path, name: str) -> None:
    with open_run_file(folder, name, new=True) as file:
        file.write(b"changed")


def _read(folder: Path, name: str) -> Any:
    return read_run_file(folder, name)


@pytest.mark.parametrize("act", [_write, _read])
@pytest.mark.parametrize("name", ["linked", "below/victim", "../victim", "pipe", "pcap"])
def test_what_is_no_plain_file_of_the_run_is_refused(
    folder: Path, victim: Path, act: Callable[[Path, str], None], name: str
) -> None:
    """The host reads and writes no link, file behind a link, file outside, pipe or folder."""
    (folder / "linked").symlink_to(victim)
    (folder / "below").symlink_to(victim.parent)
    os.mkfifo(folder / "pipe")
    with pytest.raises(OSError):  # noqa: PT011 - of several kinds
        act(folder, name)
    assert victim.read_text() == VICTIM


def test_a_file_that_is_there_is_not_written(folder: Path) -> None:
    """The host does not overwrite a file that exists; it raises an error."""
    with pytest.raises(FileExistsError):
        _write(folder, "pcap/h1-eth0.pcap")
    assert read_run_file(folder, "pcap/h1-eth0.pcap") == "packets"


def test_captures_are_packed_into_new_files_alone(folder: Path, victim: Path) -> None:
    """A capture is not compressed if a link has the name of its compressed form."""
    (folder / "pcap/h1-eth0.pcap.zst").symlink_to(victim)
    with pytest.raises(FileExistsError):
        pack(folder)
    assert victim.read_text() == VICTIM


def test_documents_replace_links_and_do_not_follow_them(folder: Path, victim: Path) -> None:
    """A document is written under another name and then replaces a link of its name."""
    (folder / "metrics.json").symlink_to(victim)
    (folder / ".metrics.json").symlink_to(victim)
    write_json(folder / "metrics.json", {})
    assert victim.read_text() == VICTIM
    assert read_run_file(folder, "metrics.json") == "{}\n"


def test_two_may_write_a_document_at_once(folder: Path) -> None:
    """Each of two writers of one document has its own temporary file; the last writer's stays."""
    with written_aside(folder / "page") as first:
        first.write(b"first")
        with written_aside(folder / "page") as second:
            second.write(b"second, and longer")
    assert read_run_file(folder, "page") == "first"
    assert sorted(path.name for path in folder.iterdir()) == ["page", "pcap"]


@pytest.mark.parametrize("package", ["runs", "measure"])
def test_no_other_place_opens_a_file_of_a_run(package: str) -> None:
    """The stages that take over and measure a run use the one module to open its files."""
    opening = re.compile(r"folder / [^)]*\)\.(open|read_text|read_bytes|write_text|write_bytes)\(")
    found = [
        f"{path.name}: {line.strip()}"
        for path in sorted((ROOT / "twoway" / package).rglob("*.py"))
        for line in path.read_text("utf-8").splitlines()
        if opening.search(line)
    ]
    assert found == []


# Files are written whole or not at all.


def test_a_document_is_whole(tmp_path: Path) -> None:
    """A JSON file has the written content, and no other file is left."""
    document = {"pass": True, "value": 0.5, "none": None}
    write_json(tmp_path / "metrics.json", document)
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.json"]
    assert json.loads((tmp_path / "metrics.json").read_text()) == document


def test_what_is_not_json_is_refused(tmp_path: Path) -> None:
    """A number that JSON cannot express is refused, and an earlier file survives."""
    path = tmp_path / "metrics.json"
    write_json(path, {"pass": True})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, {"value": float("nan")})
    assert [each.name for each in tmp_path.iterdir()] == ["metrics.json"]
    assert json.loads(path.read_text()) == {"pass": True}


@pytest.mark.parametrize(
    ("files", "blocks_free", "words"),
    [
        ((2000, 255), 1 << 20, "room for fewer than 256 files left on the disk"),
        ((2000, 256), 1 << 20, ""),
        ((0, 0), 1 << 20, ""),
        ((2000, 256), 100, "less than 64 MiB left on the disk"),
    ],
)
def test_a_disk_without_room(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: tuple[int, int],
    blocks_free: int,
    words: str,
) -> None:
    """A disk has no room if bytes or files run out; some disks have no limit of files."""
    disk = SimpleNamespace(f_bavail=blocks_free, f_frsize=4096, f_files=files[0], f_favail=files[1])
    monkeypatch.setattr(os, "statvfs", lambda _: disk)
    if not words:
        refuse_full_disk(tmp_path / "run")
        return
    with pytest.raises(DiskFullError, match=f"^{tmp_path}: {words}"):
        refuse_full_disk(tmp_path / "run")


def test_an_error_names_the_file(tmp_path: Path) -> None:
    """A file that cannot be written is named as it is called in the end; no other file is left."""
    (tmp_path / "index.html").mkdir()
    with (
        pytest.raises(OSError, match=r"index\.html'$") as told,
        written_aside(tmp_path / "index.html") as file,
    ):
        file.write(b"x")
    assert told.value.filename == str(tmp_path / "index.html")
    with pytest.raises(OSError, match=r"none'$"), written_aside(tmp_path / "none/page.html"):
        pass
    assert [each.name for each in tmp_path.iterdir()] == ["index.html"]
