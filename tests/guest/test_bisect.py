"""`twoway bisect` over a history of the kernel's source with changes in TCP."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.running import twoway, write_experiment

pytestmark = pytest.mark.lab

LOSSY: dict[str, Any] = {
    "schema": 1,
    "title": "Reno loses packets in a short buffer",
    "summary": "For tests.",
    "topology": {"name": "two_node"},
    "profile": "access-8mbit",
    "flows": [{"name": "flow", "from": "h1", "to": "h2", "congestion": "reno"}],
    "duration_s": 6,
    "warm_up_s": 1,
}
CONTROL, CUBIC = "net/ipv4/tcp_cong.c", "net/ipv4/tcp_cubic.c"
HALF, MOST = "tcp_snd_cwnd(tp) >> 1U, 2U", "tcp_snd_cwnd(tp) * 3 >> 2U, 2U"
# For each commit: title, file, old text, and new text.
HISTORY = (
    ("a comment", CONTROL, "Pluggable TCP", "Pluggable  TCP"),
    ("reno keeps three quarters", CONTROL, HALF, MOST),
    ("the comment as it was", CONTROL, "Pluggable  TCP", "Pluggable TCP"),
    ("does not compile", CUBIC, "#include <linux/mm.h>", "#error no"),
    ("reno keeps half", CONTROL, MOST, HALF),
    ("compiles again", CUBIC, "#error no", "#include <linux/mm.h>"),
)
_LEFT_OUT = ("arch/*/boot/dts/*", "drivers/gpu/drm/*.[ch]")


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Make a cache for this test's kernels only; its gigabyte is removed at the end."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make a repository of the kernel's source with a tag for each commit of HISTORY."""
    folder = tmp_path_factory.mktemp("history")
    (tarball,) = Path("/usr/src").glob("linux-source-6.12.tar.*")
    excluded = [f"--exclude=*/{pattern}" for pattern in _LEFT_OUT]
    unpack = ["tar", "-xf", str(tarball), "--strip-components=1", *excluded, "-C", str(folder)]
    subprocess.run(unpack, check=True)
    names = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "gc.auto=0")

    def git(*words: str) -> None:
        subprocess.run(["git", "-C", str(folder), *names, *words], check=True)

    def commit(number: int, title: str) -> None:
        git("add", "--all", "--force")
        git("commit", "--quiet", "--message", title)
        git("tag", f"c{number}")

    git("init", "--quiet")
    commit(0, "a kernel")
    for number, (title, name, old, new) in enumerate(HISTORY, start=1):
        source = (folder / name).read_text()
        assert old in source
        (folder / name).write_text(source.replace(old, new, 1))
        commit(number, title)
    yield folder
    shutil.rmtree(folder)


def _bisect(folder: Path, history: Path, good: str, bad: str) -> subprocess.CompletedProcess[str]:
    experiment = write_experiment(folder, LOSSY)
    ends = ("--source", history, "--good", good, "--bad", bad)
    return twoway("bisect", experiment, *ends, "--json", "--results", folder / "results")


def test_the_change_is_found(history: Path, tmp_path: Path) -> None:
    """The one commit of three that changes TCP is named, with its run and the last good run."""
    done = _bisect(tmp_path, history, "c0", "c3")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["title"].partition(" ")[2] == "reno keeps three quarters"
    assert found["differ"] == "metrics"
    runs = [Path(found["good"]), Path(found["bad"])]
    queues = [
        json.loads((run / "metrics.json").read_text())["metrics"]["queue_mean.forward"]["value"]
        for run in runs
    ]
    assert queues[0] < queues[1]
    left = subprocess.run(
        ["git", "-C", history, "status", "--porcelain"], capture_output=True, check=True
    )
    assert not left.stdout


def test_what_cannot_be_told_apart_is_named(history: Path, tmp_path: Path) -> None:
    """Commits that do not compile are skipped; all commits that may be the cause are listed."""
    done = _bisect(tmp_path, history, "c3", "c6")
    assert done.returncode == 2
    said = done.stderr.rpartition("do not build or run:")[2]
    assert [title for title, *_ in HISTORY if title in said] == [
        "does not compile",
        "reno keeps half",
        "compiles again",
    ]


@pytest.mark.parametrize(
    ("good", "bad", "sentence"),
    [("none", "c3", "none: no commit of "), ("c3", "c0", "c3 is no ancestor of c0")],
)
def test_a_wrong_end_is_refused(
    history: Path, tmp_path: Path, good: str, bad: str, sentence: str
) -> None:
    """Both ends must be commits, the good one before the bad one; otherwise nothing is run."""
    done = _bisect(tmp_path, history, good, bad)
    assert (done.returncode, sentence in done.stderr) == (2, True)
    assert not (tmp_path / "results").exists()
