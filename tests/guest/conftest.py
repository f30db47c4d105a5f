"""Runs that several tests use, each carried out once for all of pytest's workers."""

from pathlib import Path

import pytest
from support.running import CLAIMED, SMALL, SWEPT, run_small, twoway, write_experiment
from support.sharing import once


@pytest.fixture(scope="session")
def small_run(guest: object, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a reported run of SMALL with one claim; tests must not change the folder."""
    assert guest
    document = {**SMALL, "claims": [CLAIMED]}

    def run(folder: Path) -> None:
        run_small(write_experiment(folder, document), folder / "results")

    return (once(tmp_path_factory, "small", run) / "results/latest").resolve()


@pytest.fixture(scope="session")
def paper_run(guest: object, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a reported run of kalampoukas-5.2; tests must not change the folder."""
    assert guest

    def run(folder: Path) -> None:
        run_small(Path("kalampoukas-5.2"), folder / "results")

    return (once(tmp_path_factory, "paper", run) / "results/latest").resolve()


@pytest.fixture(scope="session")
def sweep_results(guest: object, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a sweep of SWEPT with real workers; tests get copies of its results."""
    assert guest

    def sweep(folder: Path) -> None:
        done = twoway("sweep", write_experiment(folder, SWEPT), "--results", folder / "results")
        assert done.returncode == 0, done.stderr

    return once(tmp_path_factory, "sweep", sweep) / "results"
