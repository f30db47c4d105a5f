"""The number of points that are as their files say, on a sweep's page and the console."""

from argparse import Namespace
from pathlib import Path

import pytest
from support.swept_runs import write_points

from twoway.commands.sweeping import judge_points
from twoway.contract.verdicts import BAD, GOOD, VERDICTS, Verdicts
from twoway.report.results import read_results
from twoway.report.sweep_page import write_sweep_pages
from twoway.sweeps.sweep import Outcome


def test_a_finding_that_is_not_as_stated_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that does not confirm its finding fails nothing, but its point is counted."""
    runs = write_points(tmp_path)
    for run in runs:
        judged = Verdicts.read(run / VERDICTS)
        judged.model_copy(update={"predictions": (), "claims": ()}).write(run / VERDICTS)
    verdicts = [Verdicts.read(run / VERDICTS) for run in runs]
    outcomes = [
        Outcome(name=run.parent.name, folder=run).with_verdicts(each)
        for run, each in zip(runs, verdicts, strict=True)
    ]
    assert judge_points(Namespace(), outcomes) == GOOD
    (page,) = write_sweep_pages(read_results(runs), tmp_path, {})
    sentence = (
        "3 of 6 points are as their files say; "
        "3 have a finding that is not as stated, which fails no run"
    )
    assert sentence in capsys.readouterr().err.splitlines()
    assert sentence in page.read_text()


def test_a_failed_point_is_printed_with_the_command_that_runs_it_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The command that runs a failed point again has the sweep's results, backend and kernel."""
    failed = Outcome(name="my file.yml@window=8", error="no", exit_code=BAD)
    args = Namespace(results=Path("/tmp/x"), backend="uml", kernel="newest")
    assert judge_points(args, [failed]) == BAD
    again = "twoway run 'my file.yml@window=8' --results /tmp/x --kernel newest"
    assert f"     {again}" in capsys.readouterr().err.splitlines()
