"""Figures of one metric against another, and of Barakat and Altman's safe region."""

from pathlib import Path
from typing import Any

import pytest
from support.synthetic_run import manifest, metrics_of, prediction

from twoway.manifest import Manifest
from twoway.report.curves import pictures, scatters
from twoway.report.judging import judged
from twoway.report.results import Experiment, Result

# Figures of one metric against another.

MATRIX = {
    "control": {"set": ["flows.first.congestion"], "to": ["cubic", "bbr"]},
    "line": {"set": ["profile.forward.rate_mbit"], "to": [1, 50]},
}


def _result(control: str, line: int, values: dict[str, float | None], **asked: Any) -> Result:
    document = manifest()
    document["experiment"] |= {
        "id": f"class@control={control},line={line}",
        "matrix": MATRIX,
        "figures": [{"y": "goodput", "x": "rtt_p95", "for_each": None, **asked}],
    }
    document["point"] = {"control": control, "line": line}
    made = Manifest.model_validate(document)
    units = {"goodput": "Mbit/s", "rtt_p95": "ms"}
    metrics = metrics_of(
        document,
        {name: {"value": v, "unit": units[name.split(".")[0]]} for name, v in values.items()},
    )
    folder = Path(f"{control}-{line}")
    return Result(folder, made, metrics, judged(made, metrics, lambda _run: None))


def _both(number: float) -> dict[str, float | None]:
    return {"goodput.first": number, "rtt_p95.first": 10 * number}


def _link(result: Result) -> str:
    return f"{result.folder}/report.html"


def test_a_figure_for_each_value_of_an_axis() -> None:
    """Each value of the axis has a figure with a dot for each run; a dot links to its run."""
    results = [
        _result(control, line, _both(line + place), for_each="line")
        for line in (1, 50)
        for place, control in enumerate(["cubic", "bbr"])
    ]
    slow, fast = scatters(Experiment("class", tuple(results)), _link)
    assert (slow.id, fast.id) == (
        "class-goodput-against-rtt_p95-1",
        "class-goodput-against-rtt_p95-50",
    )
    assert slow.title == "goodput against rtt p95, line 1"
    assert (slow.x_label, slow.y_label) == ("rtt p95, ms", "goodput, Mbit/s")
    assert [line.name for line in fast.lines] == ["first, control cubic", "first, control bbr"]
    assert [(*line.x, *line.y) for line in fast.lines] == [(500, 50), (510, 51)]
    assert fast.lines[1].links == ("bbr-50/report.html",)
    assert {line.style for line in fast.lines} == {"points"}
    assert [line.colour for line in fast.lines] == [0, 1]


def test_one_figure_of_all_runs() -> None:
    """Without an axis one figure has the dots of all runs, each point with its name."""
    results = [_result("cubic", 1, _both(1)), _result("bbr", 50, _both(2))]
    (figure,) = scatters(Experiment("class", tuple(results)), _link)
    assert figure.title == "goodput against rtt p95"
    assert [line.name for line in figure.lines] == [
        "first, control cubic, line 1",
        "first, control bbr, line 50",
    ]


def test_what_is_not_measured_has_no_dot() -> None:
    """A dot needs both metrics of one connection, and a figure needs a dot."""
    lacking: list[dict[str, float | None]] = [
        {"goodput.first": 1, "rtt_p95.first": None},
        {"goodput.first": None, "rtt_p95.first": 1},
        {"goodput.first": 1, "rtt_p95.second": 1},
    ]
    for values in lacking:
        experiment = Experiment("class", (_result("cubic", 1, values),))
        assert scatters(experiment, _link) == []


# The picture of Barakat and Altman's safe region.

PIPE = 205.0


def _region_result(name: str, main: int, upstream: int, drops: float) -> Result:
    """Make a run with buffers of this size, plus one packet in transmission."""
    limits = {"node1": upstream + 1, "bottleneck": main + 1}
    document = manifest()
    document["experiment"] |= {
        "id": f"barakat-fig5-6@point={name}",
        "matrix": {"point": {"to": ["safe", "step", "lossy"]}},
    }
    document["point"] = {"point": name}
    document["queues"] = [
        {**document["queues"][0], "direction": direction, "limit_packets": limit}
        for direction, limit in limits.items()
    ]
    peak = prediction("window_peak.flow", PIPE + main - 1, printed=PIPE + main)
    document["experiment"]["predictions"] = [peak]
    made = Manifest.model_validate(document)
    metrics = metrics_of(document, {"drops_per_epoch": {"value": drops, "unit": "packets"}})
    return Result(Path(), made, metrics, judged(made, metrics, lambda _run: None))


def test_edges_and_points() -> None:
    """For mu T = 205 the exact region begins at 64.5 packets, the paper's at mu T / 3.

    The region is 205 + B < 2^n + 2B, where 2^n is the power of two from 2B on. It holds from B =
    64.5 on, where that power is 256.
    """
    results = (
        _region_result("safe", 80, 80, 1),
        _region_result("step", 66, 80, 1),
        _region_result("lossy", 80, 50, 7),
    )
    figure = pictures(Experiment("barakat-fig5-6", results))[0]
    exact, paper, safe, lossy = figure.lines
    assert exact.x.min() == exact.y.min() == 64.5
    assert paper.x.min() == 68.5  # the first half-integer above 205/3
    assert dict(zip(paper.x, paper.y, strict=True))[80.0] == pytest.approx((PIPE + 80) / 4)
    assert list(zip(safe.x, safe.y, strict=True)) == [(80, 80), (66, 80)]
    assert list(zip(lossy.x, lossy.y, strict=True)) == [(80, 50)]
