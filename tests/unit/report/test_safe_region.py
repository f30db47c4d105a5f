"""The picture of Barakat and Altman's safe region."""

from pathlib import Path

import pytest
from support.synthetic_run import manifest, metrics_of, prediction

from twoway.manifest import Manifest
from twoway.report.curves import pictures
from twoway.report.judging import judged
from twoway.report.results import Experiment, Result

PIPE = 205.0


def _result(name: str, main: int, upstream: int, drops: float) -> Result:
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
    results = (_result("safe", 80, 80, 1), _result("step", 66, 80, 1), _result("lossy", 80, 50, 7))
    figure = pictures(Experiment("barakat-fig5-6", results))[0]
    exact, paper, safe, lossy = figure.lines
    assert exact.x.min() == exact.y.min() == 64.5
    assert paper.x.min() == 68.5  # the first half-integer above 205/3
    assert dict(zip(paper.x, paper.y, strict=True))[80.0] == pytest.approx((PIPE + 80) / 4)
    assert list(zip(safe.x, safe.y, strict=True)) == [(80, 80), (66, 80)]
    assert list(zip(lossy.x, lossy.y, strict=True)) == [(80, 50)]
