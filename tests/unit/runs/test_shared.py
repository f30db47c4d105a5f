"""Untrusted files of runs: complete and bounded, or refused with a sentence."""

import base64
import gzip
import io
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from capture_analysis.errors import AnalysisError
from support.swept_runs import write_points
from support.synthetic_run import edit_json, write_run
from support.warm_command import twoway

from twoway import load
from twoway.api import Run
from twoway.manifest import without_captures
from twoway.runs import shared
from twoway.runs.archive import ArchiveError
from twoway.runs.shared import share_runs, shared_runs

NAME = "20000101-000030-000000"
PAGE = "<html><body>A run.</body></html>\n"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A finished run in a folder of results."""
    return write_run(tmp_path / "results/by-hand" / NAME)


def _files(folder: Path) -> dict[str, bytes]:
    there = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in there}


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


def _tar(*members: tuple[str, int]) -> bytes:
    """Make an archive of files of zeros."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as made:
        for name, size in members:
            member = tarfile.TarInfo(name)
            member.size = size
            made.addfile(member, io.BytesIO(bytes(size)))
    return packed.getvalue()


def _holding(archive: bytes) -> bytes:
    content = base64.encodebytes(gzip.compress(archive))
    return b"<html>\n" + shared._BEGIN + content + shared._END


def _page_without_end(page: bytes) -> bytes:
    return page[: page.index(shared._END, page.index(shared._BEGIN))]


def _shorter(page: bytes) -> bytes:
    at = page.index(shared._BEGIN) + len(shared._BEGIN)
    return page[: at + 4000] + b"\n" + shared._END


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (_page_without_end, "truncated: the archive of runs has no end"),
        (_shorter, "not a whole archive of runs"),
        (lambda page: page[:30], "not a file of runs"),
        (lambda _: b"", "not a file of runs"),
        (lambda _: shared._BEGIN + b"A\n" + shared._END, "Incorrect padding|base64"),
        (lambda _: shared._BEGIN + b"AAAA\n" + shared._END, "Not a gzipped file"),
        (lambda _: _holding(_tar(("../../escaped", 1))), r"\.\./\.\./escaped: not allowed"),
        (lambda _: _holding(_tar(("/tmp/a/escaped", 1))), "/tmp/a/escaped: not allowed"),
        (lambda _: _holding(_tar(("SHA256SUMS", 0))), "has no finished run"),
        (
            lambda _: _holding(_tar((f"by-hand/{NAME}/zeros", 2 << 20))),
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
    monkeypatch.setattr(shared, "_ALWAYS_BYTES", 1 << 20)
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
