"""Files and folders of a run: written whole, behind no link, and given to their owner."""

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
from twoway.contract.folders import changeable_by_others, give
from twoway.contract.writing import refuse_full_disk, write_json, written_aside
from twoway.errors import DiskFullError
from twoway.runs.captures import pack

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


# Folders of another user: giving them away, and finding what that user can replace.


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")

USER = 1001


def _owners(folder: Path) -> dict[str, int]:
    paths = (folder, *folder.rglob("*"))
    return {str(path.relative_to(folder)): path.lstat().st_uid for path in paths}


@as_root
def test_a_folder_is_given_with_everything_in_it(tmp_path: Path) -> None:
    """Files, folders and links below the folder get the new owner."""
    (tmp_path / "run/pcap").mkdir(parents=True)
    (tmp_path / "run/pcap/a").touch()
    (tmp_path / "run/link").symlink_to("pcap/a")
    give(tmp_path / "run", USER, USER)
    assert set(_owners(tmp_path / "run").values()) == {USER}
    assert tmp_path.stat().st_uid == 0


@as_root
@pytest.mark.parametrize("name", ["run", "run/pcap", "run/pcap/a"])
def test_no_link_is_followed(tmp_path: Path, name: str) -> None:
    """The target of a link keeps its owner, wherever in the folder the link is."""
    target = tmp_path / "target"
    target.mkdir()
    (target / "inside").touch()
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).symlink_to(target)
    give(tmp_path / "run", USER, USER)
    assert (tmp_path / name).lstat().st_uid == USER
    assert set(_owners(target).values()) == {0}


@as_root
def test_a_file_with_a_second_name_keeps_its_owner(tmp_path: Path) -> None:
    """A hard link to a file of root's does not give that file away."""
    (tmp_path / "shadow").touch()
    (tmp_path / "run").mkdir()
    (tmp_path / "run/lock").hardlink_to(tmp_path / "shadow")
    give(tmp_path / "run", USER, USER)
    assert (tmp_path / "shadow").stat().st_uid == 0
    assert (tmp_path / "run").stat().st_uid == USER


@as_root
def test_a_folder_of_roots_alone_cannot_be_changed(tmp_path: Path) -> None:
    """No other user can change root's folder below a sticky one; it need not exist."""
    (tmp_path / "results").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to("results")
    assert changeable_by_others(tmp_path / "results") is None
    assert changeable_by_others(tmp_path / "link/base") is None


@as_root
@pytest.mark.parametrize(
    ("path", "owner", "mode"),
    [
        ("way", USER, 0o755),  # on the way
        ("way", 0, 0o777),
        ("way/results", USER, 0o700),
        ("way/results", 0, 0o757),
        ("way/results/base", USER, 0o755),  # the folder of an experiment
        ("way/results/base", 0, 0o777),
    ],
)
def test_a_changeable_folder_is_named(tmp_path: Path, path: str, owner: int, mode: int) -> None:
    """Another user's folder, and one in which others may write, are found on the way and inside."""
    (tmp_path / "way/results/base").mkdir(parents=True)
    (tmp_path / path).chmod(mode)
    os.chown(tmp_path / path, owner, 0)
    assert changeable_by_others(tmp_path / "way/results") == tmp_path / path


@as_root
def test_a_link_of_another_user_is_found(tmp_path: Path) -> None:
    """A link of another user leads to root's folder only as long as that user likes."""
    (tmp_path / "results").mkdir()
    (tmp_path / "theirs").symlink_to(tmp_path / "results")
    (tmp_path / "ours").symlink_to("theirs")
    os.chown(tmp_path / "theirs", USER, USER, follow_symlinks=False)
    assert changeable_by_others(tmp_path / "ours/base") == tmp_path / "theirs"


@as_root
def test_a_group_that_may_write_is_found(tmp_path: Path) -> None:
    """A folder that a group other than root's may write to is changeable."""
    (tmp_path / "results").mkdir()
    (tmp_path / "results").chmod(0o775)
    assert changeable_by_others(tmp_path / "results") is None
    os.chown(tmp_path / "results", 0, USER)
    assert changeable_by_others(tmp_path / "results") == tmp_path / "results"
