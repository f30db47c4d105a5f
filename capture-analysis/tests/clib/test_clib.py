"""The C library under compiler warnings, sanitisers, valgrind and a fuzzer."""

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from both_parsers import assert_alike
from capture_analysis import clib
from capture_analysis.errors import AnalysisError
from hand_built import captures
from support.sharing import once

CLIB = Path(__file__).parents[2] / "clib"
FUZZ_RUNS = 5_000
VALGRIND = ["valgrind", "--quiet", "--error-exitcode=1", "--leak-check=full"]
VALGRIND_INPUTS = 100
# The fuzzer's targets without the parser, which has a corpus.
TARGETS = ["track", "histogram", "streaks", "order", "match", "steps", "walk"]


def need(*programs: str) -> None:
    """Skip the test if a program is missing, and name the program."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (vm/install-packages test)")


def succeed(*command: str | Path) -> str:
    """Run a program, which must succeed; return its output."""
    done = subprocess.run(
        command, cwd=CLIB, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the library's objects, in which tests build their own programs."""
    need("make", "gcc", "clang")
    return once(tmp_path_factory, "clib", lambda folder: make(folder, "objects"))


def fuzz(build: Path, folder: Path, target: str, *settings: str | Path) -> None:
    """Run some thousand inputs through a fuzz target, which must find nothing.

    `timeout` forks: a program that the test runs itself inherits the test's peak of memory
    (`ru_maxrss`) through exec, and libFuzzer would take that for its own.
    """
    program = build / f"fuzz-{target}"
    make(build, str(program))
    artifacts = f"-artifact_prefix={folder}/finding-"
    succeed("timeout", "300", program, f"-runs={FUZZ_RUNS}", "-seed=1", artifacts, *settings)


def make(folder: Path, target: str) -> None:
    """Build a target of clib/Makefile into a folder."""
    need("make", "gcc")
    succeed("make", "--silent", f"BUILD={folder}", target)


@pytest.mark.slow
@pytest.mark.parametrize("library", ["no-such-library.so", "libc.so.6"])
def test_no_library(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    """A package without its library, or with another version's, says so in a sentence."""
    monkeypatch.setattr(clib, "LIBRARY", library)
    with pytest.raises(AnalysisError, match="the C library of capture-analysis is missing, or of"):
        clib.load.__wrapped__()


@pytest.mark.slow
def test_no_memory_for_the_library() -> None:
    """If the address space is too small to map the library, the error names memory."""
    program = """
import resource
from capture_analysis import clib
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    clib.load()
except clib.AnalysisError as error:
    print(error)
"""
    words = [sys.executable, "-c", program]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert said.startswith("the C library of capture-analysis finds no memory:")
    assert said.endswith("hint: allow more address space (ulimit -v)\n")


def write(folder: Path) -> list[Path]:
    """The hand-built captures as files."""
    paths = [folder / f"{k:02}.pcap" for k in range(len(captures()))]
    for path, content in zip(paths, captures(), strict=True):
        path.write_bytes(content)
    return paths


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_no_warning(tmp_path: Path, compiler: str) -> None:
    """Neither compiler gives a warning, though many are switched on."""
    need(compiler)
    make(tmp_path, f"strict-{compiler}")


@pytest.mark.slow
@pytest.mark.long
def test_no_access_out_of_bounds(tmp_path: Path) -> None:
    """No capture, and no beginning of one, causes a read or write out of bounds.

    Full tables (SMALL in clib/Makefile) do not either; a sentence reports them.
    """
    make(tmp_path, f"{tmp_path}/parse-sanitised")
    paths = write(tmp_path)
    output = succeed(tmp_path / "parse-sanitised", "-t", *paths)
    assert len(output.splitlines()) == len(paths)
    assert "frame 17 begins connection 17, for which there is no room" in output
    assert "more than 16 interfaces in a section" in output


@pytest.mark.slow
@pytest.mark.long
def test_no_memory(tmp_path: Path) -> None:
    """Whichever allocation fails first, tracker and counts work without it or report it."""
    make(tmp_path, f"{tmp_path}/no-memory")
    succeed(tmp_path / "no-memory")


@pytest.mark.slow
@pytest.mark.long
def test_no_uninitialised_read_or_leak(tmp_path: Path) -> None:
    """For whole and truncated files nothing unwritten is read, and nothing leaks."""
    need("valgrind")
    make(tmp_path, f"{tmp_path}/parse-plain")
    paths = write(tmp_path)
    succeed(*VALGRIND, tmp_path / "parse-plain", *paths)
    succeed(*VALGRIND, tmp_path / "parse-plain", "-t", paths[1], paths[3])


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS)
def test_valgrind_of_what_follows_parsing(objects: Path, target: str) -> None:
    """On random inputs tracking, counting and matching read nothing unwritten, and leak nothing."""
    need("valgrind")
    program = objects / f"plain-{target}"
    make(objects, str(program))
    succeed(*VALGRIND, program, str(VALGRIND_INPUTS))


@pytest.mark.slow
@pytest.mark.long
def test_corpus_and_mutations_parse_alike(objects: Path, tmp_path: Path) -> None:
    """The kept corpus and some thousand mutations of it parse alike at once and in pieces."""
    make(tmp_path, f"{tmp_path}/seeds")
    found = tmp_path / "found"
    found.mkdir()
    fuzz(objects, tmp_path, "parser", found, tmp_path / "seeds")


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS)
def test_fuzz_without_a_corpus(objects: Path, tmp_path: Path, target: str) -> None:
    """Thousands of inputs stay in bounds and give the same results in any pieces and order."""
    fuzz(objects, tmp_path, target, "-max_len=1200")


@pytest.mark.slow
@pytest.mark.long
def test_an_ack_years_after_another_overflows_nothing(objects: Path, tmp_path: Path) -> None:
    """The causes of a direction near its sender divide a time as long as 64 bits can hold."""
    program, packets = objects / "fuzz-walk", tmp_path / "packets"
    make(objects, str(program))
    near, ack, later = bytes([0, 0, 1, 1]), bytes([14, 0, 0, 0, 9, 5, 0, 0]), bytes([9, 127, 0])
    packets.write_bytes(4 * near + ack + 2 * later.ljust(8, b"\0") + ack)
    succeed(program, packets)


# The parser in C and the one in numpy, on inputs from fuzzing.

ARCHIVE = Path(__file__).parents[2] / "clib" / "fuzz" / "corpus.tar.xz"


@pytest.mark.long
def test_both_parsers_agree_on_broken_files() -> None:
    """Both parsers give the same rows, counts, connections and sentences for any broken file."""
    with tarfile.open(ARCHIVE) as archive:
        files = [file.read() for each in archive if (file := archive.extractfile(each))]
    assert len(files) > 100
    for content in files + captures():
        assert_alike(content)


def test_archive_is_reproducible_and_small() -> None:
    """The archive depends only on its files, and is small enough to be committed."""
    with tarfile.open(ARCHIVE) as archive:
        members = archive.getmembers()
    names = [each.name for each in members]
    assert names == sorted(set(names))
    assert all(each.isreg() and "/" not in each.name for each in members)
    stamps = {(each.mtime, each.uid, each.gid, each.uname, each.mode) for each in members}
    assert stamps == {(0, 0, 0, "", 0o644)}
    assert ARCHIVE.stat().st_size < 1 << 16
