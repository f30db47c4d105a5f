"""Finding finished runs, and listing them, beside commands that run the same points."""

import fcntl
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.synthetic_run import edit_manifest, write_run
from support.warm_command import twoway

from twoway.errors import UsageError
from twoway.runs import run
from twoway.runs.finding import find_run, find_runs, finished_runs

OLD, NEW = "20260101-000000-000001", "20260102-000000-000001"


def _run(results: Path, experiment: str, name: str, identity: str) -> Path:
    (results / experiment).mkdir(parents=True, exist_ok=True)
    folder = write_run(results / experiment / ".made").rename(results / experiment / name)
    edit_manifest(folder, lambda m: m.update(run=name, identity=identity))
    return folder


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Make two runs of one experiment, one of another, and a folder that is no run."""
    results = tmp_path / "results"
    _run(results, "a", OLD, "1" * 64)
    _run(results, "a", NEW, "2" * 64)
    _run(results, "b@x=1", OLD, "3" * 64)
    (results / "papers").mkdir()
    return results


def test_runs_are_found_the_newest_of_each_first(results: Path) -> None:
    """Runs are grouped by experiment, without runs in progress and other folders."""
    (results / "a" / f"{NEW}.partial").mkdir()
    (results / "a" / f"{NEW}.partial/manifest.json").write_text("{}")
    names = [str(run.relative_to(results)) for run in finished_runs(results)]
    assert names == [f"a/{NEW}", f"a/{OLD}", f"b@x=1/{OLD}"]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("a", f"a/{NEW}"),
        ("b@x=1", f"b@x=1/{OLD}"),
        ("111111", f"a/{OLD}"),
        ("d-row@y=1,x=2", f"d-row@x=2,y=1/{OLD}"),
        ("d/row@x=2", f"d-row@x=2,y=1/{OLD}"),
        ("some/d.yml/row@x=2,y=1", f"d-row@x=2,y=1/{OLD}"),
        ("d-row@x=1", f"d-row@x=1/{OLD}"),
    ],
)
def test_a_run_has_the_names_that_a_point_has(results: Path, name: str, found: str) -> None:
    """A run is found by its experiment, suite's row, point in any order, or identity's digits."""
    for point in ("d-row@x=2,y=1", "d-row@x=1,y=1", "d-row@x=1"):
        _run(results, point, OLD, "4" * 64)
    assert find_run(name, results) == results / found
    assert find_run(str(results / found), results) == results / found


def test_an_experiments_file_or_folder_names_its_runs(results: Path) -> None:
    """The file or folder of an experiment names the newest run of its id; with "@", of a point."""
    assert find_run("somewhere/a.yml", results) == results / f"a/{NEW}"
    assert find_run("b.yml@x=1", results) == results / f"b@x=1/{OLD}"
    assert find_run(str(results / "b@x=1"), results) == results / f"b@x=1/{OLD}"
    done = twoway("report", "--results", results, "mine.yml")
    assert done.returncode == 2
    assert done.stderr.startswith("twoway: mine.yml: neither a finished run's folder nor")


def test_a_sweep_names_the_newest_run_of_each_point(results: Path) -> None:
    """A sweep's id finds the newest run of each point, in the order of the points' numbers."""
    for point, name in (("c@n=100", OLD), ("c@n=20", OLD), ("c@n=20", NEW), ("c@n=1.5", OLD)):
        _run(results, point, name, "4" * 64)
    runs = [f"c@n=1.5/{OLD}", f"c@n=20/{NEW}", f"c@n=100/{OLD}"]
    assert find_runs("c", results) == [results / run for run in runs]
    assert find_runs("c.yml", results) == [results / run for run in runs]
    (results / "c").mkdir()  # the sweep's page is there
    assert find_runs(str(results / "c"), results) == [results / run for run in runs]
    assert find_runs("a", results) == [results / f"a/{NEW}"]
    assert find_runs("c@n=20", results) == [results / runs[1]]
    _run(results, "c@n=20,m=1", NEW, "4" * 64)
    assert find_runs("c@m=1", results) == [results / f"c@n=20,m=1/{NEW}"]
    assert find_runs("c@n=20", results) == [results / runs[1]]
    alone = twoway("compare", "a", "--results", results)
    assert alone.stderr.startswith(f"twoway: compare needs two runs or more, got {results}/a/")


def test_a_run_of_a_sweep_has_its_points_name(results: Path) -> None:
    """A command for one run refuses a sweep's file, counts its points with runs, and names one."""
    for n in (20, 3):
        _run(results, f"c@n={n}", OLD, "4" * 64)
    with pytest.raises(UsageError, match=r"^c.yml: 2 of its points have finished runs") as refused:
        find_run("c.yml", results)
    assert refused.value.hint == "for example c@n=3"


@pytest.mark.parametrize("name", ["11111", "444444", "c", "papers"])
def test_no_such_run(results: Path, name: str) -> None:
    """Five digits, an unknown identity and an experiment without runs are refused."""
    with pytest.raises(UsageError, match=f"^{name}: neither a finished run"):
        find_run(name, results)


@pytest.mark.slow
def test_runs_are_listed(results: Path) -> None:
    """`twoway runs` prints and writes one line per run, and names unreadable ones."""
    assert twoway("report", "111111", "--results", results).returncode == 0
    (results / "b@x=1" / OLD / "manifest.json").write_text("{")
    done = twoway("runs", "--results", results, "--json")
    assert done.returncode == 0
    rows = json.loads(done.stdout)
    assert [(row["run"], row["has_page"], row["exit_code"]) for row in rows] == [
        (NEW, False, -1),
        (OLD, True, 0),
    ]
    assert f"left out: {results}/b@x=1/{OLD}/manifest.json" in done.stderr
    page = (results / "index.html").read_text()
    assert page.count("<tr>") == 3
    assert f'href="a/{OLD}/report.html"' in page
    assert f'href="a/{NEW}/"' in page  # a run without a report has a link to its folder


def test_no_runs(tmp_path: Path) -> None:
    """For an empty folder the list is empty, and no page is written."""
    done = twoway("runs", "--results", tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert not (tmp_path / "index.html").exists()


# Two commands that run the same points.


def test_a_second_command_says_that_it_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A point that another command runs is waited for, and the command says so once."""
    (tmp_path / "small").mkdir()
    held = os.open(tmp_path / "small", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    said: list[str] = []

    def hear(text: str) -> None:
        said.append(text)
        fcntl.flock(held, fcntl.LOCK_UN)

    monkeypatch.setattr(run, "say", hear)
    point: Any = SimpleNamespace(id="small")
    with run.lock_point(point, tmp_path):
        assert said == [
            f"another command runs points into {tmp_path}: waiting for it, its runs are kept"
        ]
    with run.lock_point(point, tmp_path):
        assert len(said) == 1
