"""`twoway new` writes valid experiments, or nothing."""

from pathlib import Path

import pytest
import yaml
from support.warm_command import twoway


def test_a_new_experiment_is_sound(tmp_path: Path) -> None:
    """Without options both files pass `vet`, and so do the fields in their comments."""
    assert twoway("new", "mine.yml", cwd=tmp_path).returncode == 0
    text = (tmp_path / "mine.yml").read_text()
    matrix = "".join(f"{line[2:]}\n" for line in text.splitlines() if line.startswith("# "))
    (tmp_path / "swept.yml").write_text(text + matrix[matrix.index("matrix:") :])
    link = (tmp_path / "mine-link.yml").read_text()
    managed = link.partition("management add ")[2].partition("\n")[0]
    (tmp_path / "mine-link.yml").write_text(link.replace("forward: {", f"forward: {{{managed}, "))
    done = twoway("vet", "mine.yml", "swept.yml", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "2 experiments are sound: 5 points\n")


def test_options_become_fields(tmp_path: Path) -> None:
    """Each option appears in its field, even a title with a colon."""
    words = ["--title", "Why: so?", "--down", "8", "--up", "1.5", "--delay", "10", "--queue", "7"]
    words += ["--flow", "a=h1>h2:bbr", "--duration", "8"]
    assert twoway("new", "mine.yml", *words, cwd=tmp_path).returncode == 0
    experiment = yaml.safe_load((tmp_path / "mine.yml").read_text())
    assert experiment["title"] == "Why: so?"
    assert experiment["flows"] == [{"name": "a", "from": "h1", "to": "h2", "congestion": "bbr"}]
    assert (experiment["duration_s"], experiment["warm_up_s"]) == (8, 2)
    directions = yaml.safe_load((tmp_path / "mine-link.yml").read_text())["directions"]
    assert directions["reverse"] == {"rate_mbit": 1.5, "delay_ms": 10, "queue_packets": 7}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["mine.txt"], "mine.txt: the name must end in .yml"),
        (["mine.yml", "--flow", "h1>h2"], "--flow: must be NAME=FROM>TO:CONTROL, got h1>h2"),
        (["mine.yml", "--flow", "a=h1>h9:reno"], 'flows.0.to: no host "h9"'),
        (["mine.yml", "--profile", "none"], "tc-profiles/none.yml: no such profile"),
        (["mine.yml", "--down", "-1"], "rate_mbit: must be greater than"),
    ],
)
def test_what_is_not_sound_is_not_written(tmp_path: Path, words: list[str], sentence: str) -> None:
    """A mistake gives a sentence and exit code 2, and no file is written."""
    done = twoway("new", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_not_overwritten(tmp_path: Path) -> None:
    """An existing file stays unchanged."""
    (tmp_path / "mine-link.yml").write_text("mine")
    done = twoway("new", "mine.yml", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "twoway: mine-link.yml: exists already\n")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]
