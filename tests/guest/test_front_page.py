"""README's picture and its experiment are what twoway makes."""

import re
import shutil
from pathlib import Path

import pytest
from running import ROOT, kept, twoway

pytestmark = pytest.mark.usefixtures("guest")

PICTURE = ROOT / "docs/assets/two-way-queues.svg"
FOOT = "twoway kalampoukas-5.2, Linux 6.12, virtual time"
# A picture that each clone of the repository takes along.
MOST_BYTES = 64 * 1024


def test_the_picture_is_of_kalampoukas(tmp_path: Path) -> None:
    """README's picture is `queues.svg` of a run of kalampoukas-5.2, byte for byte.

    If the drawing has changed: `twoway figures RUN --foot FOOT`, and copy it here.
    """
    with kept("kalampoukas-5.2") as run:
        shutil.copytree(run, tmp_path / "run")
    done = twoway("figures", tmp_path / "run", "--foot", FOOT)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run/figures/queues.svg").read_bytes() == PICTURE.read_bytes()
    assert PICTURE.stat().st_size < MOST_BYTES


def test_the_experiment_runs_as_written(tmp_path: Path) -> None:
    """README's experiment runs, and prints what README says."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (experiment,) = re.findall(r"```yaml\n(.*?)```", readme, re.DOTALL)
    (printed,) = re.findall(r"```text\n(.*?)```", readme, re.DOTALL)
    (tmp_path / "mine.yml").write_text(experiment, encoding="utf-8")
    done = twoway("run", "mine.yml", "--results", "results", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    *verdicts, report = re.sub(r"(results/mine)/[\d-]+/", r"\1/RUN/", done.stderr).splitlines()
    assert [*verdicts, *done.stdout.splitlines(), report] == printed.splitlines()
