"""Repetitions in the guest: `--seeds` on a link that loses packets."""

import re
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
import yaml
from support.running import SMALL, write_experiment
from support.warm_command import twoway

from twoway.manifest import read_manifest

pytestmark = pytest.mark.usefixtures("guest")

LINE: dict[str, Any] = {
    "schema": 1,
    "title": "A line that loses packets",
    "directions": {
        name: {"rate_mbit": 4, "delay_ms": 10, "queue_packets": 20, "loss": {"percent": 1}}
        for name in ("forward", "reverse")
    },
}
LOSSY: dict[str, Any] = SMALL | {
    "profile": "line",
    "stack": {},
    "flows": [
        {"name": name, "from": "h1", "to": "h2", "congestion": "reno"} for name in ("one", "two")
    ],
    "duration_s": 3,
    "warm_up_s": 1,
    "findings": [
        {
            "finding": "As seed 1 has it.",
            "metric": "link_loss.one",
            "measured": 0.0,
            "tolerance": 1e-9,
        }
    ],
}


def captures(run: Path) -> dict[str, bytes]:
    """All captures of a run."""
    return {path.name: path.read_bytes() for path in (run / "pcap").iterdir()}


def newest(results: Path, name: str) -> Path:
    """Return the only run of a point."""
    (run,) = (results / name).glob("[0-9]*")
    return run


def test_seeds(tmp_path: Path) -> None:
    """The run without seeds and each seed's run differ in every capture; runs are kept."""
    (tmp_path / "line.yml").write_text(yaml.safe_dump(LINE), encoding="utf-8")
    experiment, results = write_experiment(tmp_path, LOSSY, "lossy"), tmp_path / "results"
    twoway("run", experiment, "--results", results)
    done = twoway("run", experiment, "--results", results, "--seeds", "2")
    assert f"report: {results}/lossy/index.html" in done.stderr
    plain, first = (captures(newest(results, name)) for name in ("lossy", "lossy@seed=1"))
    second = newest(results, "lossy@seed=2")
    for name, content in captures(second).items():
        assert len({content, first[name], plain[name]}) == 3
    one, two = read_manifest(second).connections
    assert 0 < one.start_s != two.start_s > 0
    done = twoway("sweep", experiment, "--results", results, "--seeds", "3")
    assert len(re.findall(r"\(kept\)", done.stderr)) == 2
    assert captures(newest(results, "lossy@seed=3")) != captures(second)
    assert "lossy, median of 3" in done.stdout
    said = re.findall(r"^lossy: link_loss.one .*: (.*)$", done.stderr, re.MULTILINE)
    page = (results / "lossy/index.html").read_text("utf-8")
    assert len(said) == 1
    assert said[0] in page
    assert set(re.findall(r'"style": "(\w+)"', page)) == {"points"}  # lines do not join seeds
    table = pyarrow.parquet.read_table(results / "lossy/points.parquet")
    assert table["seed"].to_pylist() == [1, 2, 3]
    assert len(set(table["link_loss.one"].to_pylist())) == 3
