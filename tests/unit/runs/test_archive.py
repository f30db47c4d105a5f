"""Runs moved between machines arrive complete and unchanged, or not at all."""

import hashlib
import io
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.synthetic_run import edit_json, write_run

from twoway.errors import DiskFullError
from twoway.runs import archive
from twoway.runs.archive import ArchiveError, finished_runs, pack_runs, unpack_runs

RUNS = ["one/20000101-000000-000000", "two@x=1/20000101-000001-000000"]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Make two finished runs, one unfinished, and the link to the latest."""
    folder = tmp_path / "results"
    for name in RUNS:
        write_run(folder / name)
        (folder / name / "pcap/a.pcap").write_bytes(bytes(100_000))
        edit_json(folder / name / "manifest.json", _add_capture)
    (folder / "one/20000101-000002-000000.partial").mkdir()
    (folder / "latest").symlink_to(RUNS[0])
    return folder


def _add_capture(manifest: dict[str, Any]) -> None:
    manifest["files"].append("pcap/a.pcap")
    manifest["digests"] = {"pcap/a.pcap": hashlib.sha256(bytes(100_000)).hexdigest()}


def _packed(results: Path) -> bytes:
    packed = io.BytesIO()
    pack_runs(results, finished_runs(results), packed)
    return packed.getvalue()


def _files(results: Path) -> dict[str, bytes]:
    there = (path for name in RUNS for path in (results / name).rglob("*") if path.is_file())
    return {str(path.relative_to(results)): path.read_bytes() for path in there}


def test_round_trip(results: Path, tmp_path: Path) -> None:
    """Unpacking restores the finished runs; a run that exists is kept."""
    packed = _packed(results)
    there = tmp_path / "there"
    for _ in range(2):
        assert unpack_runs(io.BytesIO(packed), there) == [there / name for name in RUNS]
        assert _files(there) == _files(results)
        assert sorted(path.name for path in there.iterdir()) == ["one", "two@x=1"]


def _changed(packed: bytes) -> bytes:
    return packed.replace(bytes(1000), bytes(999) + b"\1", 1)


def _with(name: str, packed: bytes) -> bytes:
    extended = io.BytesIO()
    with tarfile.open(fileobj=extended, mode="w") as new:
        with tarfile.open(fileobj=io.BytesIO(packed)) as old:
            for member in old:
                new.addfile(member, old.extractfile(member))
        new.addfile(tarfile.TarInfo(name))
    return extended.getvalue()


def _outside(_: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as made:
        made.addfile(tarfile.TarInfo("../escaped"))
    return packed.getvalue()


def _link(_: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as made:
        link = tarfile.TarInfo("one")
        link.type, link.linkname = tarfile.SYMTYPE, "/"
        made.addfile(link)
    return packed.getvalue()


def _sums_of_no_text(_: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as made:
        sums = tarfile.TarInfo("SHA256SUMS")
        sums.size = 1
        made.addfile(sums, io.BytesIO(b"\xff"))
    return packed.getvalue()


def _sparse(_: bytes) -> bytes:
    """Write 3 GB of zeros into an archive of some kilobytes."""
    holes = tarfile.TarInfo(f"{RUNS[0]}/holes")
    holes.pax_headers = {"GNU.sparse.map": "0,0", "GNU.sparse.size": str(3 << 30)}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as made:
        made.addfile(holes)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (_changed, "one/.*: its checksum differs from the one it was sent with"),
        (partial(_with, f"{RUNS[0]}/more"), f"{RUNS[0]}/more: differ from those sent"),
        (partial(_with, "one/more"), "one/more: not allowed"),
        (partial(_with, "latest/of/more"), "latest/of/more: not allowed"),
        (partial(_with, "/tmp/of/more"), "/tmp/of/more: not allowed"),
        (_outside, r"\.\./escaped: not allowed"),
        (_link, "one: not allowed"),
        (_sparse, f"{RUNS[0]}/holes: not allowed"),
        (partial(_with, RUNS[0] + "/a" * 17), "/a/a/a: not allowed"),
        (partial(_with, "--to=x/authorized_keys/more"), "more: not allowed"),
        (partial(_with, "one/.hidden/more"), "one/.hidden/more: not allowed"),
        *(
            (partial(_with, f"{name}/more"), "more: not allowed")
            for name in (
                "one/2 --yes",
                "one/2$(touch x)",
                'one/2"><img src=x>',
                "one/2\x1b]0;p\x07",
            )
        ),
        *((partial(_with, f"{name}/2/more"), "more: not allowed") for name in ("o e", "one;", "é")),
        (lambda packed: packed[: len(packed) // 2], "not a whole archive of runs"),
        (lambda _: b"", "not a whole archive of runs"),
        (partial(_with, "SHA256SUMS"), "SHA256SUMS: its name occurs twice"),
        (_sums_of_no_text, "not a whole archive of runs: 'utf-8' codec"),
        (lambda _: b"no archive" * 100, "not a whole archive of runs"),
    ],
)
def test_damaged_archive_adds_nothing(
    results: Path, tmp_path: Path, damage: Callable[[bytes], bytes], sentence: str
) -> None:
    """A truncated, changed or forged archive is refused, and adds nothing."""
    there = tmp_path / "there"
    with pytest.raises(ArchiveError, match=sentence):
        unpack_runs(io.BytesIO(damage(_packed(results))), there)
    assert [*there.iterdir()] == []
    assert not (tmp_path / "escaped").exists()


def test_an_archive_of_many_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive may make a limited number of folders, and an error leaves none."""
    monkeypatch.setattr(archive, "_MOST_FOLDERS", 100)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as made:
        for number in range(20):
            made.addfile(tarfile.TarInfo(f"one/2{number}/d/e/f/g/manifest.json"))
    packed.seek(0)
    with pytest.raises(ArchiveError, match="more than 100 folders"):
        unpack_runs(packed, tmp_path / "there")
    assert [*(tmp_path / "there").iterdir()] == []


@pytest.mark.parametrize("name", ["report.html", "figures/a.svg", "figures/A.SVG", "x.xhtml"])
def test_no_page_is_taken_from_another_machine(results: Path, tmp_path: Path, name: str) -> None:
    """Files whose scripts a browser would run are left out, unless their maker is trusted."""
    page = results / RUNS[0] / name
    page.parent.mkdir(exist_ok=True)
    page.write_text("<script></script>")
    packed = _packed(results)
    assert unpack_runs(io.BytesIO(packed), tmp_path / "there") == [
        tmp_path / "there" / r for r in RUNS
    ]
    assert not (tmp_path / "there" / RUNS[0] / name).exists()
    assert (tmp_path / "there" / RUNS[0] / "pcap/a.pcap").exists()
    unpack_runs(io.BytesIO(packed), tmp_path / "trusted", pages=True)
    assert (tmp_path / "trusted" / RUNS[0] / name).exists()


def test_a_file_larger_than_the_disk(tmp_path: Path) -> None:
    """A file that does not fit on the disk is refused before a byte of it is written."""
    large = tarfile.TarInfo(f"{RUNS[0]}/large")
    large.size = 1 << 60
    packed = io.BytesIO(large.tobuf(tarfile.GNU_FORMAT) + bytes(100_000))
    with pytest.raises(DiskFullError, match=rf"one/.*/large: {1 << 60} bytes, and \d+ are free"):
        unpack_runs(packed, tmp_path / "there")
    assert [*(tmp_path / "there").iterdir()] == []


@pytest.mark.parametrize(
    "name", ["--to=x/authorized_keys", "../one", "one/..", "/etc/run", "one", "latest/run", "a/b\n"]
)
def test_a_name_that_no_run_has(results: Path, name: str) -> None:
    """A name that is not of the form EXPERIMENT/RUN is not packed."""
    with pytest.raises(ArchiveError, match="must be EXPERIMENT/RUN"):
        pack_runs(results, [name], io.BytesIO())


def test_another_run_of_that_name(results: Path, tmp_path: Path) -> None:
    """An existing run is never replaced by another of its name."""
    there = tmp_path / "there"
    (there / RUNS[1]).mkdir(parents=True)
    (there / RUNS[1] / "manifest.json").write_text("another")
    with pytest.raises(ArchiveError, match="another run of that name exists"):
        unpack_runs(io.BytesIO(_packed(results)), there)
    assert not (there / RUNS[0]).exists()


def test_a_run_that_is_not_as_it_ended_is_not_sent(results: Path) -> None:
    """A run with a file that changed after its end is not packed; the error names the file."""
    (results / RUNS[1] / "pcap/a.pcap").write_bytes(bytes(99_999))
    with pytest.raises(ArchiveError, match=r"changed since the run: pcap/a.pcap"):
        pack_runs(results, RUNS, io.BytesIO())


def test_a_run_that_is_not_as_it_ended_is_not_taken(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archive with valid checksums is refused if its run has changed since its end."""
    (results / RUNS[1] / "pcap/a.pcap").write_bytes(bytes(99_999))
    with monkeypatch.context() as careless:
        careless.setattr(archive, "_refuse_damaged", lambda _: None)
        packed = _packed(results)
    with pytest.raises(ArchiveError, match=r"changed since the run: pcap/a.pcap"):
        unpack_runs(io.BytesIO(packed), tmp_path / "there")
    assert [*(tmp_path / "there").iterdir()] == []


def test_unfinished_run_is_not_sent(results: Path) -> None:
    """An unfinished run is not sent."""
    with pytest.raises(ArchiveError, match="partial: not a finished run"):
        pack_runs(results, ["one/20000101-000002-000000.partial"], io.BytesIO())


def test_part_of_a_run(tmp_path: Path) -> None:
    """One host's part of a multi-host run, complete with machine.json, is sent as a run."""
    part, there = "one/left", tmp_path / "there"
    (tmp_path / "here" / part).mkdir(parents=True)
    (tmp_path / "here" / part / "machine.json").write_text("{}")
    packed = io.BytesIO()
    pack_runs(tmp_path / "here", [part], packed)
    packed.seek(0)
    assert unpack_runs(packed, there) == [there / part]
    assert (there / part / "machine.json").read_text() == "{}"


def test_a_run_below_a_link_is_not_sent(results: Path, tmp_path: Path) -> None:
    """Files behind a link are not read, though root may read them."""
    (results / "one").rename(tmp_path / "elsewhere")
    (results / "one").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ArchiveError, match="no plain file, or below a link"):
        _packed(results)
