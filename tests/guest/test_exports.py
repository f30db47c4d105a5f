"""`twoway export` of a run of the guest."""

import re
from pathlib import Path

import pytest
from flent import resultset
from support.running import ROOT
from support.runs import kept

from twoway.report.export import export_run

pytestmark = pytest.mark.usefixtures("guest")


def test_the_guides_mean(tmp_path: Path) -> None:
    """Flent's reader finds the mean goodputs that the guide prints."""
    (mbit,) = re.findall(r"\*\*([0-9.]+) Mbit/s\*\*", (ROOT / "docs/guides/exports.md").read_text())
    with kept("kalampoukas-5.2") as folder:
        found = resultset.load(str(export_run(folder, "flent", tmp_path / "run.flent.gz")))
    for direction in ("download", "upload"):
        goodputs = found.series(f"TCP {direction} BE::1")
        assert f"{sum(goodputs) / len(goodputs):.2f}" == mbit
