"""Barakat and Altman's figure 6: buffers without slow start's losses."""

import numpy as np
from capture_analysis.pictures.figure import Figure, FloatArray, Line, Style

from twoway.report.claims import predictions
from twoway.report.results import Experiment, Result
from twoway.theory.barakat import is_safe, least_buffers

# Range and resolution of the drawing, packets: the runs have buffers from 50 to 80.
_BUFFERS = np.arange(40, 100.5, 0.5)


def safe_region(experiment: Experiment) -> Figure:
    """Draw the region's edges, and the runs that lost packets in slow start.

    Args:
        experiment: runs with several buffers B, each with a prediction of `window_peak`, whose
            printed form is mu T + B.
    """
    pipe = _pipe(experiment)
    exact = [next((y for y in _BUFFERS if is_safe(pipe, x, y)), np.inf) for x in _BUFFERS]
    least = [max(least_buffers(pipe, x)[1], _BUFFERS[0]) for x in _BUFFERS]
    lines = [
        _edge("exact condition, theory", np.array(exact), 0),
        _edge(
            "approximation, paper", np.where(least_buffers(pipe, 0)[0] < _BUFFERS, least, np.inf), 2
        ),
        _points("nothing lost in slow start, measured", experiment, "points", losing=False),
        _points("lost in slow start, measured", experiment, "crosses", losing=True),
    ]
    return Figure(
        f"{experiment.id}-safe-region",
        "buffers with which slow start loses nothing",
        "Right of and above a dashed line slow start loses nothing, whatever the rate of the "
        "upstream node. Bursts are powers of two, which gives the exact condition steps; the paper "
        "draws the approximation.",
        "bottleneck's buffer B, packets",
        "upstream node's buffer B', packets",
        lines,
    )


def _pipe(experiment: Experiment) -> float:
    """Average mu T of the points.

    The points differ by the upstream node's transmission time.
    """
    found = [
        said.row.printed - _buffer(said.result, "bottleneck")
        for said in predictions(experiment)
        if said.row.metric.startswith("window_peak.") and said.row.printed is not None
    ]
    return float(np.mean(found))


def _buffer(result: Result, direction: str) -> int:
    """Convert a queue's limit to the paper's buffer.

    The limit includes the packet in transmission, the buffer does not.
    """
    limits = {queue.direction: queue.limit_packets for queue in result.manifest.queues}
    return limits[direction] - 1


def _edge(name: str, least: FloatArray, colour: int) -> Line:
    """Draw a region's lower edge, and its left edge straight up."""
    inside = np.isfinite(least)
    x, y = _BUFFERS[inside], least[inside]
    return Line(name, np.insert(x, 0, x[0]), np.insert(y, 0, _BUFFERS[-1]), "dashed", colour)


def _points(name: str, experiment: Experiment, style: Style, *, losing: bool) -> Line:
    """Draw the runs in which slow start lost packets, or did not.

    Congestion avoidance ends with a single drop, so more than one means a loss in slow start.
    """
    results = [
        result
        for result in experiment.results
        if ((result.metrics.metrics["drops_per_epoch"].value or 0) > 1) is losing
    ]
    x, y = (
        np.array([_buffer(result, direction) for result in results], dtype=np.float64)
        for direction in ("bottleneck", "node1")
    )
    return Line(name, x, y, style, 1 if losing else 0)
