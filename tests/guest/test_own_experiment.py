"""The guide to one's own experiment works as written."""

import json
from pathlib import Path

import pytest
from support.guides import copy_listings
from support.running import ROOT, carry_out_points, metrics, run_small
from support.warm_command import twoway

GUIDE = ROOT / "docs/guides/own-experiment.md"


def _row(run: Path) -> str:
    """Return a run's row of the guide's tables."""
    found = metrics(run)["metrics"]
    rates = [
        found[f"goodput.{flow}"]["value"] for flow in ("down", "up") if f"goodput.{flow}" in found
    ]
    cells = [f"{rate:.2f} Mbit/s" for rate in rates] + [""] * (2 - len(rates))
    return f"| {' | '.join(cells)} | {found['utilisation.forward']['value']:.0%} |".replace(
        "%", " %"
    )


@pytest.mark.usefixtures("guest")
def test_the_guide_works_as_written(tmp_path: Path) -> None:
    """The guide's files are valid and run; the guide's tables and `compare` have the numbers."""
    copy_listings(GUIDE.name, tmp_path, "my-line.yml", "upload.yml", "grid.yml")
    results, text = tmp_path / "results", GUIDE.read_text("utf-8").replace("| | ", "|  | ")
    assert twoway("vet", tmp_path / "upload.yml", tmp_path / "grid.yml").returncode == 0
    run = run_small(tmp_path / "upload.yml", results)
    assert f"| both {_row(run)}" in text
    assert twoway("report", run).stdout in text
    carry_out_points(tmp_path / "grid.yml", results)
    done = twoway("run", "grid.yml", "--results", results, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout in text
    for upload in (0, 1):
        for buffer in ("short", "long"):
            (run,) = (results / f"grid@upload={upload},buffer={buffer}").glob("[0-9]*")
            assert f"| {upload} | {buffer} {_row(run)}" in text
    compared = json.loads(twoway("compare", "grid", "--json", "--results", results).stdout)
    assert [run.partition("/")[0] for run in compared["runs"]] == [
        f"grid@upload={upload},buffer={buffer}" for upload in (0, 1) for buffer in ("long", "short")
    ]
    assert "goodput.down" in compared["metrics"]
