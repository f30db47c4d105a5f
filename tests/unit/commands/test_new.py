"""The commands `new` and `compare`."""

import json
from pathlib import Path

import pytest
import yaml
from support.synthetic_run import edit_json, metrics_of, write_run
from support.warm_command import twoway

# `twoway new` writes valid experiments, or nothing.


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


# The comparison that `compare` prints for runs.

ALONE = "only parameters differ: metrics and packets are the same\n"


def test_parameters_alone_may_differ(tmp_path: Path) -> None:
    """If only a parameter differs, `compare` says so, and the exit code is 0."""
    runs = [write_run(tmp_path / name) for name in ("20260101-one", "20260102-two")]
    for run in runs:
        document = json.loads((run / "manifest.json").read_text())
        metrics_of(document, {}).write(run / "metrics.json")
    page = ("--to", tmp_path / "page.html")
    equal = twoway("compare", *runs, *page)
    assert (equal.returncode, ALONE in equal.stdout) == (0, False)
    edit_json(runs[1] / "manifest.json", lambda m: m["kernel"].update(release="another"))
    differing = twoway("compare", *runs, *page)
    assert (differing.returncode, ALONE in differing.stdout) == (0, True)


def test_the_answer_is_short_and_on_standard_output(tmp_path: Path) -> None:
    """The command prints 14 of many differing metrics, those in a table first, and the page."""
    runs = [write_run(tmp_path / name) for name in ("20260101-one", "20260102-two")]
    for value, run in enumerate(runs):
        document = json.loads((run / "manifest.json").read_text())
        names = [*(f"busy.flow{n}" for n in range(40)), *(f"goodput.flow{n}" for n in range(10))]
        numbers = {name: {"value": value, "unit": "1"} for name in names}
        metrics_of(document, numbers).write(run / "metrics.json")
    done = twoway("compare", *runs, "--to", tmp_path / "page.html")
    assert done.returncode == 1
    assert "metrics that differ: 50\n" in done.stdout
    assert done.stdout.count("  goodput.flow") == 10
    assert done.stdout.count("  busy.flow") == 4
    assert "  ... and 36 more\n" in done.stdout
    assert len(done.stdout.splitlines()) < 30
    assert done.stderr == f"all of it: --json, or the page {tmp_path / 'page.html'}\n"
