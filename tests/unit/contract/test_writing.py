"""Files are written whole or not at all."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from twoway.contract.writing import refuse_full_disk, write_json, written_aside
from twoway.errors import DiskFullError


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
    with (
        pytest.raises(OSError, match=r"none'$"),
        written_aside(tmp_path / "none/page.html"),
    ):
        pass
    assert [each.name for each in tmp_path.iterdir()] == ["index.html"]
