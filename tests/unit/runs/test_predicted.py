"""The file of predicted values beside an experiment: written, checked, and missed if gone."""

from pathlib import Path
from typing import Any

import pytest
from running import SMALL, write_experiment
from warm_command import twoway

from twoway.runs.predicted import as_written, points_of, shrunk, write

SAID: dict[str, Any] = {
    "metric": ["efficiency.left", "efficiency.right"],
    "value": "theory",
    "tolerance": 0.1,
    "why": "a tenth",
}
WINDOW = {"set": ["flows.left.window_packets", "flows.right.window_packets"], "to": [4, 8]}


def _experiment(folder: Path, *said: dict[str, Any]) -> str:
    fields = {"matrix": {"window": WINDOW}, "theory": "kalampoukas", "predictions": [*said]}
    return str(write_experiment(folder, {**SMALL, **fields}))


def test_each_prediction_of_each_point_is_a_line(tmp_path: Path) -> None:
    """The table has point, metric, theory, value and tolerance, and is up to date."""
    name = _experiment(tmp_path, SAID)
    assert not as_written(name)
    path = write(name)
    assert path == tmp_path / "small.predictions.csv"
    lines = path.read_text().splitlines()
    assert lines[0] == "point,metric,theory,value,tolerance,at_least,at_most"
    assert [line.rsplit(",", 4)[0] for line in lines[1:]] == [
        f'"small@window={window}",efficiency.{flow},kalampoukas'.replace('"', "")
        for window in (4, 8)
        for flow in ("left", "right")
    ]
    assert as_written(name)
    assert list(shrunk(name, points_of(name))) == []


@pytest.mark.parametrize(
    ("said", "lost"),
    [
        ({**SAID, "metric": "efficiency.left"}, 2),
        ({**SAID, "at": {"window": 4}, "elsewhere": "x"}, 2),
        ({**SAID, "tolerance": 0.2}, 4),
        ({**SAID, "tolerance": 0.05}, 0),
    ],
)
def test_what_shrinks_is_warned_of(tmp_path: Path, said: dict[str, Any], lost: int) -> None:
    """A lost metric or point, and a wider tolerance, are named; a narrower tolerance is not."""
    write(_experiment(tmp_path, SAID))
    unsaid = {"metric": "goodput.left", "at_least": "theory", "why": "for the points left out"}
    name = _experiment(tmp_path, said, unsaid)
    assert len(list(shrunk(name, points_of(name)))) == lost
    assert not as_written(name)


def test_vet_warns_and_check_fails(tmp_path: Path) -> None:
    """Until the file is written again, `vet` warns with status 0, and `predict --check` fails."""
    write(_experiment(tmp_path, SAID))
    name = _experiment(tmp_path, {**SAID, "metric": "efficiency.left"})
    vetted = twoway("vet", name)
    assert vetted.returncode == 0
    gone = "small@window=8 efficiency.right: was predicted by kalampoukas, and no longer is"
    assert gone in vetted.stderr
    assert twoway("predict", "--check", name).returncode == 1
    assert twoway("predict", name).returncode == 0
    assert twoway("predict", "--check", name).returncode == 0
