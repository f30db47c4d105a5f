"""The comparison that `compare` prints for runs."""

import json
from pathlib import Path

from support.synthetic_run import edit_json, metrics_of, write_run
from support.warm_command import twoway

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
