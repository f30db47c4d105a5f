"""Instruments in the kernel are used in virtual time only."""

from pathlib import Path
from typing import Any

import pytest
from support.running import SMALL, write_experiment

from twoway.backends.uml import Uml
from twoway.errors import UsageError
from twoway.runs.points import load_point
from twoway.runs.run import run_experiment


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"capture": "kernel"}, "capture"),
        ({"observe": {"sampler": "kernel"}}, "observe.sampler"),
    ],
)
def test_a_backend_without_instruments_says_so(
    tmp_path: Path, wanted: dict[str, Any], field: str
) -> None:
    """Without virtual time the kernel's instruments are refused by field, and no folder is left."""
    point = load_point(str(write_experiment(tmp_path, {**SMALL, **wanted})))
    without = Uml(guest=None, name="native", in_kernel=False)  # type: ignore[arg-type]
    with pytest.raises(
        UsageError, match=f"small: {field}: kernel needs virtual time, which native"
    ):
        run_experiment(point, without, tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_a_backend_without_seeds_says_so(tmp_path: Path) -> None:
    """A seed is refused by a backend whose random numbers do not come from it."""
    point = load_point(str(write_experiment(tmp_path, {**SMALL, "seed": 2})))
    without = Uml(guest=None, name="native", in_kernel=False)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="small: seed: native has random numbers"):
        run_experiment(point, without, tmp_path / "results")
