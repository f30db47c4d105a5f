"""Theories applied to the experiments of the checkout."""

import math

import pytest

from twoway.description.predictions import setup_of
from twoway.links.dtm import Channel
from twoway.measure.registry import metric_names
from twoway.runs.points import load_point
from twoway.theory.registry import predict

THEORIES = {**{f"fast-ex{n}": "fast" for n in range(1, 6)}, "dtm-fig2": "dtm", "dtm-fig4": "dtm"}


def _predicted(name: str) -> dict[str, float]:
    point = load_point(name)
    setup = setup_of(point.experiment, point.profile, point.graph, list(point.connections))
    return predict(THEORIES[name], setup)


@pytest.mark.parametrize("name", THEORIES)
def test_predictions_are_metrics(name: str) -> None:
    """Theories predict only measured metrics, and give numbers."""
    point = load_point(name)
    channels = [n for n, link in point.profile.directions.items() if link.elements.has(Channel)]
    known = metric_names(point.profile.directions, [c.name for c in point.connections], channels)
    values = _predicted(name)
    assert set(values) <= set(known)
    assert all(math.isfinite(value) for value in values.values())
