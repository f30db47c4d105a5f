"""Experiments from Python: the guide and the notebook work as written."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.guides import copy_listings
from support.running import ROOT

import twoway
from twoway.errors import RunError, SpecError, UsageError

pytestmark = pytest.mark.usefixtures("guest")

LINK: dict[str, Any] = {"rate_mbit": 8, "delay_ms": 10, "queue_packets": 20, "overhead_bytes": 0}
FIELDS: dict[str, Any] = {
    "schema": 1,
    "title": "An upload",
    "topology": {"name": "two_node"},
    "profile": {"schema": 1, "title": "A link", "directions": {"forward": LINK, "reverse": LINK}},
    "flows": [{"name": "up", "from": "h1", "to": "h2", "congestion": "reno"}],
    "duration_s": 3,
    "warm_up_s": 1,
}
# The text of each output of the notebook, by lines.
IN_NOTEBOOK = [
    [
        "kalampoukas-5.2",
        "flow   Mbit/s  retrans, %  queue mean  queue p95  rtt min  rtt p50  rtt p95, ms",
        "left     84.9           0       8.457         13    24.11    24.12        24.12",
        "right    84.9           0       8.457         13    24.11    24.12        24.12",
    ],
    [
        "{'utilisation.forward': 0.6537467002763805,",
        " 'utilisation_data.forward': 0.6509113503583003,",
        " 'utilisation.reverse': 0.6537467002763805,",
        " 'utilisation_data.reverse': 0.6509113503583003}",
    ],
    ["<Drawing size 700x360 with 1 Axes>"],
    [
        "      time_s  cwnd_segments",
        "998     9.98             28",
        "999     9.99             28",
        "1000   10.00             28",
    ],
    [
        "                    point control  goodput.up  rtt_median.up  rtt_p95.up",
        "0   controls@control=reno    reno     7.78618      73.500000   88.500000",
        "1  controls@control=cubic   cubic     7.78618      81.000000   90.000000",
        "2    controls@control=bbr     bbr     7.78618      26.888697   30.971451",
    ],
]
SHARES = [
    "    bdp     share  share_margin  share_seeds",
    "0  0.25  0.808193      0.011343           10",
    "1  0.50  0.711566      0.019122           10",
    "2  1.00  0.709314      0.025818           10",
    "3  2.00  0.595458      0.039010           10",
    "4  4.00  0.472071      0.113721           10",
    "5  8.00  0.295728      0.132560           10",
]
BUFFERS = {"buffer": {"set": ["profile.forward.queue_packets"], "to": [10, 20]}}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder of results for this file's tests."""
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def run(results: Path) -> twoway.Run:
    """Return the run of the upload."""
    return twoway.run(FIELDS, name="upload", results=results)


def test_an_experiment_of_fields_has_metrics_and_verdicts(run: twoway.Run) -> None:
    """An experiment given as fields, link included, runs and has metrics and verdicts."""
    assert run.name == "upload"
    assert run.verdicts.exit_code == 0
    assert run.metrics["goodput.up"] == run.measured.metrics["goodput.up"].value
    assert str(run).startswith("upload\nflow")


def test_series_and_packets_are_those_of_the_captures(run: twoway.Run) -> None:
    """Goodput over time adds up to the payload that reaches h2 before traffic ends."""
    stop_ns = run.manifest.clock.stop_ns
    series = run.series("goodput.up").to_pandas()
    interval_s = series["time_s"][1] - series["time_s"][0]
    packets = run.packets("h2-eth0").to_pandas()
    payload = packets[(packets.receiver_port == 5001) & (packets.time_ns < stop_ns)].new_bytes
    received = (series["goodput_mbit_per_s"] * interval_s).sum() * 125e3
    assert received == pytest.approx(payload.sum())
    assert set(run.series("queue.forward").column_names) == {"time_s", "queue_packets"}


def test_a_figure_is_shown_as_svg(run: twoway.Run) -> None:
    """A notebook shows the queues as SVG, and the figure can be extended."""
    figure = run.figure("queues")
    (axes,) = figure.axes
    axes.axhline(20)
    assert "Bottleneck queues" in figure._repr_svg_()


def test_names_that_are_not_there_are_answered_with_those_there_are(run: twoway.Run) -> None:
    """A series, figure or metric that a run lacks is refused with a list of existing names."""
    with pytest.raises(UsageError, match="nosuch: no such series") as series:
        run.series("nosuch")
    assert series.value.hint.endswith("cwnd.up, ssthresh.up, smoothed_rtt.up")
    with pytest.raises(UsageError, match="nosuch: no such figure"):
        run.figure("nosuch")
    with pytest.raises(UsageError, match="nosuch: no such metric"):
        twoway.Sweep({"upload": run}, {}).table("nosuch")


def test_a_sweep_is_a_table_and_is_kept(results: Path) -> None:
    """Each point is a row with its axis; a second sweep keeps the runs, and `load` finds them."""
    fields = FIELDS | {"matrix": BUFFERS}
    sweep = twoway.sweep(fields, name="buffers", results=results)
    table = sweep.table("queue_mean.forward")
    assert table.column_names == ["point", "buffer", "queue_mean.forward"]
    assert table["buffer"].to_pylist() == [10, 20]
    again = twoway.sweep(fields, name="buffers", results=results)
    loaded = twoway.load("buffers", results=results)
    assert isinstance(loaded, twoway.Sweep)
    assert {each.folder.resolve() for each in again.runs.values()} == {
        each.folder for each in loaded.runs.values()
    }
    with pytest.raises(UsageError, match="has 2 points"):
        twoway.run(fields, name="buffers", results=results)


def test_problems_are_raised_before_anything_runs(results: Path) -> None:
    """All problems of the fields are in one exception, and no folder is made."""
    with pytest.raises(SpecError) as error:
        twoway.sweep(FIELDS | {"duration_s": "x", "profile": "none"}, name="bad", results=results)
    assert error.value.problems == [
        "bad.yml: duration_s: must be a valid number, got 'x'",
        "bad.yml: profile: tc-profiles/none.yml: no such profile",
    ]
    assert not (results / "bad").exists()


def test_a_failed_point_leaves_the_others(results: Path) -> None:
    """A failed program is the reason for its point's failure; `run` raises it."""
    program = {"name": "check", "host": "h1", "command": ["true"]}
    matrix = {"command": {"set": ["programs.check.exit_code"], "to": [0, 1]}}
    fields = FIELDS | {"programs": [program], "matrix": matrix}
    sweep = twoway.sweep(fields, name="checks", results=results)
    assert list(sweep.runs) == ["checks@command=0"]
    assert list(sweep.failed) == ["checks@command=1"]
    assert "check" in sweep.failed["checks@command=1"]
    with pytest.raises(RunError, match="check"):
        twoway.run(FIELDS | {"programs": [program | {"exit_code": 1}]}, results=results)


def test_the_guides_script_prints_what_the_guide_shows(tmp_path: Path) -> None:
    """The guide's controls.py, alone in a folder, prints the table and leaves its picture."""
    copy_listings("python.md", tmp_path, "controls.py")
    done = subprocess.run(
        [sys.executable, "controls.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    text = (ROOT / "docs/guides/python.md").read_text("utf-8")
    (shown,) = re.findall(r"^\$ python controls.py\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert done.stdout == shown
    assert "<svg" in (tmp_path / "controls.svg").read_text()


def test_polars_takes_a_sweeps_table(run: twoway.Run) -> None:
    """An Arrow table becomes a frame of polars with the same columns."""
    import polars as pl

    table = twoway.Sweep({"upload": run}, {}).table()
    assert pl.DataFrame(pl.from_arrow(table)).columns == table.column_names


def outputs_of(notebook: str) -> tuple[list[list[str]], list[dict[str, Any]]]:
    """Run a notebook of the site; return the lines of each output, and the outputs."""
    from notebook_outputs import with_outputs

    ran = json.loads(with_outputs(ROOT / f"docs/notebooks/{notebook}.ipynb"))
    outputs = [each for cell in ran["cells"] for each in cell.get("outputs", ())]
    texts = ["".join(each.get("text") or each["data"]["text/plain"]) for each in outputs]
    return [text.rstrip("\n").split("\n") for text in texts], outputs


def test_the_notebook_gives_the_same_numbers_everywhere() -> None:
    """The outputs of the notebook's cells have the same numbers on every machine."""
    texts, outputs = outputs_of("two-way-traffic")
    assert texts == IN_NOTEBOOK
    assert "image/svg+xml" in outputs[2]["data"]


@pytest.mark.long
def test_a_notebook_answers_a_question_over_ten_seeds() -> None:
    """A notebook has BBR's share beside three CUBIC, with its interval, for each buffer."""
    texts, outputs = outputs_of("one-bbr")
    assert texts[0] == SHARES
    assert "image/png" in outputs[1]["data"]
