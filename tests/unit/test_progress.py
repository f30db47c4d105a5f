"""Lines of progress, of commands and of `make test`."""

import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.running import ROOT, ran

from twoway import progress
from twoway.progress import Steps, SweepBar


def test_a_long_step_prints_each_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    """In a file a step prints its name and a line per tenth; a step of no length prints none."""
    with Steps() as steps:
        steps.begin("unpack")
        steps.advance()
        steps.begin("compile", 40)
        for _ in range(12):
            steps.advance()
    begun, compiled, *tenths = capsys.readouterr().err.split("\n")
    assert (begun, compiled) == ("unpack ...", "compile ...")
    assert [line.partition(" after ")[0] for line in tenths if line] == [
        "compile: 10 %",
        "compile: 20 %",
        "compile: 30 %",
    ]


def test_kept_points_do_not_count_in_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time left follows from points that ran; kept ones, which take no time, are left out."""
    clock: Any = SimpleNamespace(monotonic=lambda: clock.now, now=0.0)
    monkeypatch.setattr(progress, "time", clock)
    with SweepBar(60, 60) as bar:
        for _ in range(48):
            bar.show("kept", 1, kept=True)
        clock.now = 5.0
        assert bar.left_s(clock.now) is None
        clock.now = 10.0
        bar.show("ran", 2, kept=False)
        assert bar.left_s(10.0) == 50
        assert bar.left_s(15.0) == 45
        assert bar.left_s(100.0) == 0


# The lines that `make test` prints while it runs.

TESTS = """
from time import sleep
import pytest
@pytest.mark.parametrize("number", [1, 2])
def test_sleeps(number):
    sleep(0.6)
def test_fails():
    assert False, "as expected"
"""
CONFTEST = """
from support import whereabouts
from support.whereabouts import pytest_configure
whereabouts.EVERY_S = 0.2
"""


@pytest.mark.slow
def test_lines_say_where_tests_are(tmp_path: Path) -> None:
    """With several processes lines count the tests and name those that run, and each failure."""
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    done = ran(
        [sys.executable, "-m", "pytest", "-n", "2", "-p", "no:cacheprovider", tmp_path],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
    )
    assert done.returncode == 1
    before, _, after = done.stdout.partition("= FAILURES =")
    lines = before.splitlines()
    assert any(re.fullmatch(r"0:\d\d  \d of 3.*test_it.py::test_sleeps.*", line) for line in lines)
    assert "FAILED test_it.py::test_fails" in lines
    assert "FAILED test_it.py::test_fails - AssertionError: as expected" in after
    assert not re.search(r"^[.F]+(?: |$)", before, re.MULTILINE)
