"""The file of predicted values of a folder's experiments, and the theories that apply."""

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.connections import setup_at
from support.running import ROOT, SMALL, write_experiment
from support.warm_command import twoway

from twoway.errors import SpecError
from twoway.links.dtm import Channel
from twoway.measure.registry import metric_names
from twoway.runs.points import load_point
from twoway.runs.predicted import find_shrunk, is_up_to_date, load_points, read_predictions, write
from twoway.theory.registry import predict

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


def test_each_point_is_a_line(tmp_path: Path) -> None:
    """A line has point and theory, and each metric's value and tolerance; it is up to date."""
    name = _experiment(tmp_path, SAID)
    assert not is_up_to_date(name)
    path = write(name)
    assert path == tmp_path / "predictions.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    points = [(line["point"], line["theory"]) for line in lines]
    assert points == [(f"small@window={window}", "kalampoukas") for window in (4, 8)]
    for line in lines:
        assert list(line["predicted"]) == ["efficiency.left", "efficiency.right"]
        assert all(said["tolerance"] == 0.1 for said in line["predicted"].values())
    assert is_up_to_date(name)
    assert list(find_shrunk(name, load_points(name))) == []


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
    assert len(list(find_shrunk(name, load_points(name)))) == lost
    assert not is_up_to_date(name)


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


def test_experiments_of_a_folder_share_a_file(tmp_path: Path) -> None:
    """An experiment's rows are replaced by its own; those of a removed experiment go."""
    name = _experiment(tmp_path, SAID)
    text = Path(name).read_text()
    others = [tmp_path / "another.yml", tmp_path / "zebra.yml"]
    for each in others:
        each.write_text(text)
    path = write(name)
    assert path
    for each in others:
        assert write(str(each)) == path
    assert [_counted(path)[each] for each in ("another", "small", "zebra")] == [4, 4, 4]
    assert is_up_to_date(name)
    assert is_up_to_date(str(others[0]))
    before = path.read_text()
    _experiment(tmp_path, {**SAID, "metric": "efficiency.left"})
    assert not is_up_to_date(name)
    assert is_up_to_date(str(others[0]))
    assert list(find_shrunk(str(others[0]), load_points(str(others[0])))) == []
    write(name)
    assert list(_counted(path).items()) == [("another", 4), ("small", 2), ("zebra", 4)]
    kept = [line for line in before.splitlines() if "small" not in line]
    assert [line for line in path.read_text().splitlines() if "small" not in line] == kept
    others[1].unlink()
    assert not is_up_to_date(name)
    write(name)
    assert list(_counted(path)) == ["another", "small"]


def _counted(path: Path) -> Counter[str]:
    """Count the rows of each experiment, in the file's order."""
    return Counter(row.point.partition("@")[0] for row in read_predictions(path))


def test_an_experiment_without_predictions_has_no_rows(tmp_path: Path) -> None:
    """The file goes with its last row."""
    path = write(_experiment(tmp_path, SAID))
    assert path
    name = _experiment(tmp_path)
    assert list(find_shrunk(name, load_points(name)))
    assert write(name) is None
    assert not path.exists()
    assert is_up_to_date(name)


@pytest.mark.parametrize("text", ["name,age\nsmith,3\n", "", '{"point": "a"}\n', "\xff"])
def test_another_table_is_not_overwritten(tmp_path: Path, text: str) -> None:
    """`predict` and `vet` refuse a file of another form, with a sentence and a hint."""
    name = _experiment(tmp_path, SAID)
    path = tmp_path / "predictions.jsonl"
    path.write_text(text, "latin-1")
    for command in ("predict", "vet"):
        done = twoway(command, name)
        assert done.returncode == 2
        assert "predictions.jsonl: line " in done.stderr
        assert "give another file another name" in done.stderr
    assert path.read_text("latin-1") == text


@pytest.mark.parametrize("edit", [('"tolerance"', '"toleranze"'), ("0.1", '"a tenth"')])
def test_a_line_with_other_fields_is_refused(tmp_path: Path, edit: tuple[str, str]) -> None:
    """A field that there is not, and a number in words, are errors of their line."""
    path = write(_experiment(tmp_path, SAID))
    assert path
    path.write_text(path.read_text().replace(*edit, 1))
    with pytest.raises(SpecError, match="line 1: must be a JSON object with point, theory"):
        read_predictions(path)


def test_kept_predictions_are_of_experiments_that_exist() -> None:
    """Each row of a folder's file is of an experiment in that folder, in order of their ids."""
    files = sorted((ROOT / "experiments").glob("*/predictions.jsonl"))
    assert len(files) > 5
    for path in files:
        counted = [*_counted(path)]
        assert counted == sorted(counted)
        assert set(counted) <= {each.stem for each in path.parent.glob("*.yml")}


# Theories applied to the experiments of the checkout.

THEORIES = {**{f"fast-ex{n}": "fast" for n in range(1, 6)}, "dtm-fig2": "dtm", "dtm-fig4": "dtm"}


@pytest.mark.parametrize("name", THEORIES)
def test_predictions_are_metrics(name: str) -> None:
    """Theories predict only measured metrics, and give numbers."""
    point = load_point(name)
    channels = [
        n for n, link in point.profile.directions.items() if link.elements.contains(Channel)
    ]
    known = metric_names(point.profile.directions, [c.name for c in point.connections], channels)
    values = predict(THEORIES[name], setup_at(name))
    assert set(values) <= set(known)
    assert all(math.isfinite(value) for value in values.values())
