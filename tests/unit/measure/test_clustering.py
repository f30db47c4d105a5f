"""Clusters of data in what leaves a queue, by hand."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from twoway.measure.metrics.clustering import clusters
from twoway.measure.queues import Occupancy


def _measured(order: str, window: int = 2) -> tuple[float, ...]:
    """The metrics of packets a of a connection, of its FIN f, and x of others, as they leave."""
    rows = np.array([row for row, name in enumerate(order) if name in "af"], dtype=np.int64)
    departed = SimpleNamespace(
        left_ns=np.arange(len(order)),
        is_data=np.array([name != "f" for name in order]),
        lanes=None,
    )
    run = SimpleNamespace(rows=lambda *_, **__: rows)
    analysis: Any = SimpleNamespace(run=run, departed=lambda _: departed)
    flight = Occupancy(np.array([0]), np.array([window]))
    view: Any = SimpleNamespace(forward=None, connection=None, window=flight)
    return tuple(clusters.measure(analysis, view))


def test_clusters_by_hand() -> None:
    """xaaxaaax: of five, three follow their own; two clusters of 2.5 are those of 5/2 windows."""
    assert _measured("xaaxaaax") == pytest.approx((3 / 5, 5 / 2, 2 / (5 / 2)), rel=1e-12)
    assert _measured("xaaxaaax", window=5)[2] == pytest.approx(2)
    assert _measured("xaaxaaax", window=0)[2] == pytest.approx(2 / 5)


def test_what_leaves_first_has_nothing_before_it() -> None:
    """Whether the first packet of the window follows its own cannot be seen: it does not count."""
    assert _measured("aaxa")[:2] == (1 / 2, 2)
    assert np.isnan(_measured("a")).all()
    assert np.isnan(_measured("xx")).all()
    share, size, _ = _measured("aaa")
    assert share == 1
    assert math.isnan(size)


def test_only_data_make_clusters() -> None:
    """A FIN between two clusters parts them, and is none of their packets."""
    assert _measured("xafa")[:2] == (0, 1)
