"""Runs moved between machines, and files that share them: complete, bounded, or refused."""

import base64
import gzip
import hashlib
import io
import shutil
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from capture_analysis.errors import AnalysisError
from support.swept_runs import write_points
from support.synthetic_run import edit_json, edit_manifest, write_run
from support.warm_command import twoway

from twoway import load
from twoway.api import Run
from twoway.errors import DiskFullError
from twoway.manifest import without_captures
from twoway.runs import archive, share_file
from twoway.runs.archive import ArchiveError, finished_runs, pack_runs, unpack_runs
from twoway.runs.share_file import share_runs, shared_runs

RUNS = ["one/20000101-000000-000000", "two@x=1/20000101-000001-000000"]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Make two finished runs, one unfinished, and the link to the latest."""
    folder = tmp_path / "results"
    for name in RUNS:
        write_run(folder / name)
        (folder / name / "pcap/a.pcap").write_bytes(bytes(100_000))
        edit_manifest(folder / name, _add_capture)
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


def _files(folder: Path) -> dict[str, bytes]:
    there = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in there}


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


def _member(name: str, **fields: Any) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def _tar(*members: tarfile.TarInfo | tuple[str, bytes], before: bytes = b"") -> bytes:
    """Make an archive of files, behind those of another one."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as made:
        if before:
            with tarfile.open(fileobj=io.BytesIO(before)) as old:
                for member in old:
                    made.addfile(member, old.extractfile(member))
        for each in members:
            name, content = each if isinstance(each, tuple) else (each, b"")
            info = _member(name, size=len(content)) if isinstance(name, str) else name
            made.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def _with(name: str, packed: bytes) -> bytes:
    return _tar((name, b""), before=packed)


LINK = _member("one", type=tarfile.SYMTYPE, linkname="/")
# 3 GB of zeros in an archive of some kilobytes.
_HOLES = {"GNU.sparse.map": "0,0", "GNU.sparse.size": str(3 << 30)}
SPARSE = _member(f"{RUNS[0]}/holes", pax_headers=_HOLES)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (_changed, "one/.*: its checksum differs from the one it was sent with"),
        (partial(_with, f"{RUNS[0]}/more"), f"{RUNS[0]}/more: differ from those sent"),
        (partial(_with, "one/more"), "one/more: not allowed"),
        (partial(_with, "latest/of/more"), "latest/of/more: not allowed"),
        (partial(_with, "/tmp/of/more"), "/tmp/of/more: not allowed"),
        (lambda _: _tar(("../escaped", b"")), r"\.\./escaped: not allowed"),
        (lambda _: _tar(LINK), "one: not allowed"),
        (lambda _: _tar(SPARSE), f"{RUNS[0]}/holes: not allowed"),
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
        (
            lambda _: _tar(("SHA256SUMS", b"\xff")),
            "not a whole archive of runs: 'utf-8' codec",
        ),
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
    packed = _tar(*((f"one/2{n}/d/e/f/g/manifest.json", b"") for n in range(20)))
    with pytest.raises(ArchiveError, match="more than 100 folders"):
        unpack_runs(io.BytesIO(packed), tmp_path / "there")
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


# Untrusted files of runs: complete and bounded, or refused with a sentence.

NAME = "20000101-000030-000000"
PAGE = "<html><body>A run.</body></html>\n"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A finished run in a folder of results."""
    return write_run(tmp_path / "results/by-hand" / NAME)


def _kept(tmp_path: Path) -> list[Path]:
    return [*(tmp_path / "cache").rglob("*")]


@pytest.mark.parametrize("captures", [True, False])
def test_what_is_read_is_what_was_shared(run: Path, tmp_path: Path, captures: bool) -> None:
    """A shared file restores its run byte for byte, repeatedly; captures may be left out."""
    share_runs(PAGE, [run], tmp_path / "a.html", captures=captures)
    assert (tmp_path / "a.html").read_text("utf-8").startswith("<html><body>A run.")
    for _ in range(2):
        (found,) = shared_runs(tmp_path / "a.html")
        wanted = _files(run)
        if not captures:
            wanted = {name: of for name, of in wanted.items() if not name.startswith("pcap/")}
        assert _files(found) == wanted
        assert without_captures(found) is not captures
    assert isinstance(loaded := load(tmp_path / "a.html"), Run)
    assert loaded.name == "by-hand"


def _holding(archive: bytes) -> bytes:
    content = base64.encodebytes(gzip.compress(archive))
    return b"<html>\n" + share_file._BEGIN + content + share_file._END


def _page_without_end(page: bytes) -> bytes:
    return page[: page.index(share_file._END, page.index(share_file._BEGIN))]


def _shorter(page: bytes) -> bytes:
    at = page.index(share_file._BEGIN) + len(share_file._BEGIN)
    return page[: at + 4000] + b"\n" + share_file._END


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (_page_without_end, "truncated: the archive of runs has no end"),
        (_shorter, "not a whole archive of runs"),
        (lambda page: page[:30], "not a file of runs"),
        (lambda _: b"", "not a file of runs"),
        (lambda _: share_file._BEGIN + b"A\n" + share_file._END, "Incorrect padding|base64"),
        (lambda _: share_file._BEGIN + b"AAAA\n" + share_file._END, "Not a gzipped file"),
        (lambda _: _holding(_tar(("../../escaped", b"0"))), r"\.\./\.\./escaped: not allowed"),
        (lambda _: _holding(_tar(("/tmp/a/escaped", b"0"))), "/tmp/a/escaped: not allowed"),
        (lambda _: _holding(_tar(("SHA256SUMS", b""))), "has no finished run"),
        (
            lambda _: _holding(_tar((f"by-hand/{NAME}/zeros", bytes(2 << 20)))),
            r"unpacks to more than \d+ MiB",
        ),
    ],
)
def test_a_file_that_is_not_sound_leaves_nothing(
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    damage: Callable[[bytes], bytes],
    sentence: str,
) -> None:
    """A truncated or malicious file is refused with its name, and leaves nothing."""
    monkeypatch.setattr(share_file, "_ALWAYS_BYTES", 1 << 20)
    file = tmp_path / "a.html"
    share_runs(PAGE, [run], file, captures=True)
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(ArchiveError, match=f"^{file}: .*({sentence})"):
        shared_runs(file)
    assert [path for path in _kept(tmp_path) if path.name not in ("twoway", "shared")] == []
    assert not (tmp_path / "escaped").exists()


@pytest.mark.slow
def test_no_captures_no_series(run: Path, tmp_path: Path) -> None:
    """A run without captures has metrics; for its series the error names the command."""
    done = twoway("share", run, "--to", tmp_path / "a.html")
    assert (done.returncode, done.stdout) == (0, "")
    one = load(tmp_path / "a.html")
    assert isinstance(one, Run)
    assert one.metrics["goodput.first"] is not None
    with pytest.raises(AnalysisError, match="left out: `twoway run by-hand` makes them again"):
        one.series("cwnd.first")
    again = twoway("report", one.folder)
    assert again.returncode == 1
    assert "its captures were left out" in again.stderr
    unchanged = load(tmp_path / "a.html")
    assert isinstance(unchanged, Run)
    assert one.metrics == unchanged.metrics


@pytest.mark.slow
def test_compare_reads_files_of_runs(run: Path, tmp_path: Path) -> None:
    """Two shared files are compared by metrics, and by captures if both have them."""
    assert twoway("share", run, "--captures", "--to", tmp_path / "a.html").returncode == 0
    edit_json(run / "metrics.json", lambda m: m["metrics"]["goodput.first"].update(value=1.5))
    assert twoway("share", run, "--to", tmp_path / "b.html").returncode == 0
    page: list[str | Path] = ["--to", tmp_path / "page.html"]
    same = twoway("compare", tmp_path / "a.html", tmp_path / "a.html", *page)
    assert same.returncode == 0, same.stderr
    assert "the same: " in same.stdout
    assert ", 6 captures" in same.stdout
    other = twoway("compare", tmp_path / "a.html", tmp_path / "b.html", *page)
    assert other.returncode == 1
    assert "metrics that differ: 1" in other.stdout
    said = "those of 1 were left out; `twoway run by-hand` makes them"
    assert f"no captures are compared: {said}" in " ".join(other.stdout.split())


@pytest.mark.slow
def test_a_shared_sweep_lists_points_without_a_run(tmp_path: Path) -> None:
    """The page of a shared sweep names points of its matrix that have no run."""
    *there, missing = write_points(tmp_path / "results")
    for folder in there:
        (folder / "report.html").write_text(PAGE)
    shutil.rmtree(missing.parent)
    done = twoway("share", "swept", "--results", tmp_path / "results", "--to", tmp_path / "a.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "a.html").read_text("utf-8")
    assert f"<code>{missing.parent.name}</code>: no finished runs here" in page
    assert page.count("no finished runs here") == 1
