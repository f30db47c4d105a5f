"""Commands without a guest in a stranger's folder, which has a module of each name."""

import subprocess
import sys
from pathlib import Path

import pytest
from planted_modules import plant_modules, planted_that_ran
from support.running import ROOT, SWEPT, write_experiment

_WORK = """
from twoway.sweeps.workers import workers
from twoway.sweeps.sweep import Work
if __name__ == "__main__":
    with workers(1) as (threads, run):
        print(threads.submit(run, Work("a", None, None, None)).result().kept)
"""


def test_a_worker_runs_no_module_of_the_current_folder(tmp_path: Path) -> None:
    """The processes that carry out points run no Python file of the current folder."""
    stranger, ours = tmp_path / "stranger", tmp_path / "ours"
    for folder in (stranger, ours):
        folder.mkdir()
    plant_modules(stranger)
    (ours / "work.py").write_text(_WORK)
    argv = [sys.executable, str(ours / "work.py")]
    done = subprocess.run(argv, cwd=stranger, capture_output=True, text=True, check=False)
    assert planted_that_ran(stranger) == []
    assert done.stdout == "False\n", done.stderr  # the point is none, and fails


@pytest.mark.parametrize(
    "words",
    [
        "list",
        "metrics",
        "new mine.yml",
        "vet small.yml",
        "plan small.yml@window=4",
        "predict small.yml",
        "runs --results results",
        "clean --results results",
        "schema experiment",
        "lab bundle --help",
    ],
)
def test_no_module_beside_an_experiment_runs(tmp_path: Path, words: str) -> None:
    """A command runs no Python file of the folder in which a user starts it."""
    plant_modules(tmp_path)
    (tmp_path / "results").mkdir()
    write_experiment(tmp_path, SWEPT)
    program = Path(sys.executable).with_name("twoway")
    done = subprocess.run(
        [program, *words.split()], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert planted_that_ran(tmp_path) == []
    assert done.returncode == 0, done.stderr


def test_a_labs_services_load_no_module_of_their_working_directory() -> None:
    """Each service of the playbooks that runs Python keeps its working directory off the path."""
    services = list((ROOT / "playbooks").glob("roles/*/templates/*.service.j2"))
    assert services
    for path in services:
        assert "\nEnvironment=PYTHONSAFEPATH=1\n" in path.read_text(), path
