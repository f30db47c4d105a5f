"""Tests of `twoway clean`: the parts of runs that it lists, removes and keeps."""

import os
import time
from pathlib import Path

import pytest
from support.deep_folders import nested
from support.warm_command import twoway

from twoway.runs import clean

RUNS = [f"one/2026010{day}-000000-000000" for day in (1, 2, 3)]
FAILED = "one/20260104-000000-000000.partial"
HALF = "one/.removing-20260101-000000-000001"
OTHERS = ["one/.running-20260105-000000-000000", "two/notes", "papers/tables"]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Make runs 30, 20 and 10 days old, one failed, one half removed, and folders without runs."""
    folder = tmp_path / "results"
    for name in (*RUNS, FAILED, HALF, *OTHERS):
        (folder / name).mkdir(parents=True)
        (folder / name / "pcap").write_bytes(bytes(1000))
    for name, days in zip(RUNS, (30, 20, 10), strict=True):
        (folder / name / "manifest.json").touch()
        then = time.time() - days * 24 * 3600
        os.utime(folder / name / "manifest.json", (then, then))
    (folder / "latest").symlink_to(RUNS[2])
    return folder


def _left(results: Path) -> set[str]:
    return {str(path.relative_to(results)) for path in results.glob("*/*")} - {"latest/pcap"}


@pytest.mark.parametrize(
    ("options", "gone"),
    [
        ((), [HALF, FAILED]),
        (("--keep", "1"), [HALF, FAILED, *RUNS[:2]]),
        (("--keep", "9"), [HALF, FAILED]),
        (("--older-than", "15d"), [HALF, FAILED, *RUNS[:2]]),
        (("--older-than", "360h"), [HALF, FAILED, *RUNS[:2]]),
        (("--older-than", "15"), [HALF, FAILED, *RUNS[:2]]),
        (("--older-than", "25", "--keep", "1"), [HALF, FAILED, RUNS[0]]),
        (("--older-than", "0"), [HALF, FAILED, *RUNS]),
    ],
)
def test_what_is_listed_is_removed(
    results: Path, options: tuple[str, ...], gone: list[str]
) -> None:
    """Without --yes runs are only listed; with it, they are removed and nothing else."""
    before = _left(results)
    listed = twoway("clean", "--results", results, *options)
    assert listed.returncode == 0
    assert [line.split("  ")[0] for line in listed.stdout.splitlines()] == [
        str(results / name) for name in gone
    ]
    assert _left(results) == before
    assert twoway("clean", "--results", results, "--yes", *options).returncode == 0
    assert before - _left(results) >= set(gone)
    assert {name for name in (*RUNS, *OTHERS) if (results / name).exists()} == (
        {*RUNS, *OTHERS} - set(gone)
    )
    assert (results / "latest").is_symlink() == (RUNS[2] not in gone)


@pytest.mark.parametrize("age", ["-3", "nan", "-1h", "inf", "x"])
def test_an_age_is_not_below_zero(results: Path, age: str) -> None:
    """Every run is older than -3 days, and --yes would remove all of them."""
    done = twoway("clean", "--results", results, f"--older-than={age}", "--yes")
    assert done.returncode == 2
    assert f'must be days or hours, such as 7d or 12h, got "{age}"' in done.stderr
    assert _left(results) >= {*RUNS}


def test_a_run_half_removed_does_not_look_finished(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupted removal leaves nothing that looks like a run, and is finished later."""

    def killed(_: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as cut:
        cut.setattr(clean, "remove_folder", killed)
        with pytest.raises(KeyboardInterrupt):
            clean.remove(results / RUNS[0])
    assert not (results / RUNS[0]).exists()
    left = results / "one/.removing-20260101-000000-000000"
    assert (left, "half removed") in [*clean.removable(results, None, None)]
    clean.remove(left)
    assert not left.exists()


def test_captures_beyond_the_room_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Captures stay while there is room, all of them or none if so asked; kept runs stay whole."""
    monkeypatch.setattr(clean, "ROOM_BYTES", 250_000)
    for keep, stay in ((None, "01"), (clean.ALL, "01234"), (clean.NONE, "0")):
        room = clean.Room(keep)
        for number in range(5):
            run = tmp_path / str(keep) / str(number)
            (run / "pcap").mkdir(parents=True)
            (run / "report.html").touch()
            (run / "pcap/a.pcap").write_bytes(bytes(100_000))
            room.take(run, mine=number > 0)
            assert (run / "report.html").exists()
        left = sorted(path.parts[-3] for path in (tmp_path / str(keep)).glob("*/pcap/*"))
        assert ("".join(left), room.removed) == (stay, 5 - len(stay))


def test_a_run_nested_without_end(results: Path) -> None:
    """A failed run whose folders are nested deeper than any path is removed like others."""
    with nested(results / FAILED / "log/deep"):
        assert twoway("clean", "--results", results, "--yes").returncode == 0
        assert not (results / FAILED).exists()
