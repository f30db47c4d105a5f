"""The guide to one's own topologies: each of its examples runs as written."""

import re
from pathlib import Path

import pytest
from support.running import ROOT, measure
from support.warm_command import twoway

pytestmark = pytest.mark.usefixtures("guest")

GUIDE = (ROOT / "docs/guides/own-topology.md").read_text("utf-8")
FILES: dict[str, str] = dict(
    re.findall(r"`([a-z_-]+\.(?:py|yml))`:\n\n```\w+\n(.*?)```", GUIDE, re.DOTALL)
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with all files of the guide."""
    for name, content in FILES.items():
        (tmp_path / name).write_text(content, "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("experiment", "busy"),
    [
        ("lot.yml", ("right-1", "right-2", "right-3")),
        ("round-trips.yml@control=cubic", ("right",)),
        ("triangle.yml", ("side-1", "side-2", "side-4")),
        ("levels.yml", ("leaf-down-2", "leaf-down-3", "leaf-up-4")),
        ("exchange.yml", ()),
        ("over-the-root.yml", ("forward",)),
        ("chain.yml", ("forward",)),
    ],
)
def test_the_guides_topology_runs(folder: Path, experiment: str, busy: tuple[str, ...]) -> None:
    """The guide's routers and switches run: checks hold, and the bottlenecks are busy."""
    assert twoway("vet", folder / experiment).returncode == 0
    found = measure(folder / experiment, folder / "results")
    assert [row["check"] for row in found["fidelity"] if row["verdict"] != "pass"] == []
    full = [name for name, each in found["metrics"].items() if each["value"] == 1]
    assert [name for name in full if name.startswith("utilisation.")] == [
        f"utilisation.{queue}" for queue in busy
    ]


def test_the_guides_round_trips(folder: Path) -> None:
    """The flow with the longer round trip has the goodput that the guide says."""
    for control, mbit in {"reno": "0.5233", "cubic": "0.5873", "bbr": "4.54"}.items():
        found = measure(folder / f"round-trips.yml@control={control}", folder / "results")
        assert f"{found['metrics']['goodput.far']['value']:.4g}" == mbit
        assert mbit in GUIDE
