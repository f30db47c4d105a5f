"""Runs of a sweep for a paper, made by hand: no captures, only documents for judging."""

from pathlib import Path
from typing import Any

from support.synthetic_run import manifest
from twoway.contract.judge import Verdict
from twoway.contract.metrics import METRICS, FidelityRow, Metric, Metrics
from twoway.contract.verdicts import VERDICTS
from twoway.manifest import Manifest
from twoway.measure.revision import revision
from twoway.report.judging import judge_run
from twoway.report.results import Experiment, read_results

PAPER = "Zhang, Shenker, Clark, Observations, 1991"
WINDOWS = [4, 8, 16]
MATRIX = {
    "window": {"set": ["flows.first.window_packets"], "to": WINDOWS},
    "acks": {"set": ["stack.acks"], "to": ["every-segment", "delayed"]},
}
NAMES = ("efficiency.first", "efficiency.second")


def _said(window: int, acks: str) -> dict[str, Any]:
    """Make a point's statements: points with delayed ACKs explain the others' differences."""
    why = {"why": "by hand"}
    predicted = {"theory": "kalampoukas", "value": float(window), "tolerance": 0.1, **why}
    claim = {"where": "figure 1", "by": "paper", "tolerance": 0.1, **why}
    known = {"why": "ACKs", "explained_by": f"swept@window={window},acks=delayed"}
    return {
        "predictions": [{"metric": NAMES[0], "printed": 2.0 * window, **predicted}],
        "claims": [
            {
                "claim": "Both lines are as busy.",
                "metric": name,
                "value": 1.1 * window if acks == "delayed" else 2.2 * window,
                "differs": None if acks == "delayed" else known,
                **claim,
            }
            for name in NAMES
        ],
        "findings": [{"finding": "It is so.", "metric": NAMES[1], "value": 1.1 * window, **why}],
    }


def _point(folder: Path, window: int, acks: str) -> Path:
    """Make a run of one point, 10 % above its prediction.

    At window 16 with an ACK for every segment its metrics are undefined.
    """
    run = folder / f"swept@window={window},acks={acks}/20000101-000030-000000"
    run.mkdir(parents=True)
    document = manifest()
    document["experiment"] |= {
        "id": run.parent.name,
        "title": "A sweep",
        "summary": "By hand.",
        "source": {"paper": PAPER, "where": "figure 1"},
        "matrix": MATRIX,
        **_said(window, acks),
    }
    document |= {
        "point": {"window": window, "acks": acks},
        "timing": {"wall_s": 2.0, "simulated_s": 10.0, "speed": 5.0},
    }
    made = Manifest.model_validate(document)
    made.write(run / "manifest.json")
    undefined = window == 16 and acks == "every-segment"
    Metrics(
        experiment=run.parent.name,
        run=made.run,
        measured_sha256=made.measured_sha256,
        backend=made.backend,
        clock_source=made.clock_source,
        kernel=made.kernel.release,
        analysis=revision(),
        metrics={
            name: Metric(
                value=None if undefined else (2.2 if acks != "delayed" else 1.1) * window, unit="1"
            )
            for name in NAMES
        },
        fidelity=(FidelityRow(check="frames", value=1, bound="1", verdict=Verdict.PASS),),
    ).write(run / METRICS)
    return run


def write_points(folder: Path) -> list[Path]:
    """Make the sweep's six points, judged, in arbitrary order."""
    points = [
        _point(folder, window, acks)
        for acks in ("delayed", "every-segment")
        for window in reversed(WINDOWS)
    ]
    for run in points:
        judge_run(run).write(run / VERDICTS)
    return points


def swept(folder: Path) -> Experiment:
    """Make the sweep and read it; at one of its points a metric is undefined."""
    (experiment,) = read_results(write_points(folder))
    return experiment
