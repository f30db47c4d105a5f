"""Lines of progress where standard error is no terminal."""

import pytest

from twoway.progress import Steps


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
