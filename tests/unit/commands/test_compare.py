"""What `compare` says of runs."""

import json
from pathlib import Path

from synthetic_run import edit_json, metrics_of, write_run
from warm_command import twoway

ALONE = "parameters alone differ: what came out is the same\n"


def test_parameters_alone_may_differ(tmp_path: Path) -> None:
    """Where a parameter alone differs `compare` says that, and the exit code is 0."""
    runs = [write_run(tmp_path / name) for name in ("20260101-one", "20260102-two")]
    for run in runs:
        document = json.loads((run / "manifest.json").read_text())
        metrics_of(document, {}).write(run / "metrics.json")
    page = ("--to", tmp_path / "page.html")
    equal = twoway("compare", *runs, *page)
    assert (equal.returncode, ALONE in equal.stderr) == (0, False)
    edit_json(runs[1] / "manifest.json", lambda m: m["kernel"].update(release="another"))
    differing = twoway("compare", *runs, *page)
    assert (differing.returncode, ALONE in differing.stderr) == (0, True)
