"""README's pictures and its experiment match twoway's output."""

import re
from pathlib import Path

import pytest
from pictures import ASSETS, all_run_pictures, readme_experiment
from support.running import ROOT
from support.warm_command import twoway

pytestmark = pytest.mark.usefixtures("guest")

# A picture that every clone of the repository has.
MOST_BYTES = 64 * 1024


def test_pictures_are_of_their_runs() -> None:
    """Each picture of a run in docs/assets equals the output of `make pictures`, byte for byte."""
    for name, svg in all_run_pictures().items():
        assert (ASSETS / name).read_bytes() == svg, f"{name}: `make pictures` draws another"
        assert len(svg) < MOST_BYTES


def test_the_experiment_runs_as_written(tmp_path: Path) -> None:
    """README's experiment runs, and prints the numbers in README."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (printed,) = re.findall(r"```text\n(.*?)```", readme, re.DOTALL)
    (tmp_path / "mine.yml").write_text(readme_experiment(), encoding="utf-8")
    done = twoway("run", "mine.yml", "--results", "results", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    *verdicts, report = re.sub(r"(results/mine)/[\d-]+/", r"\1/RUN/", done.stderr).splitlines()
    assert [*verdicts, *done.stdout.splitlines(), report] == printed.splitlines()
