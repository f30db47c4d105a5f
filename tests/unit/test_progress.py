"""Lines of progress where standard error is no terminal."""

from types import SimpleNamespace
from typing import Any

import pytest

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
