"""Congestion epochs, from the times of drops and their victims."""

from itertools import pairwise

import numpy as np
import pytest
from capture_analysis.congestion_epochs import SEVERAL, CongestionEpochs, congestion_epochs
from hypothesis import given
from hypothesis import strategies as st

GAP_NS = 10


def epochs(*drops: tuple[int, int]) -> CongestionEpochs:
    """Return the epochs of drops given as (time, victim), with a gap of 10 ns."""
    time_ns, victim = np.array(drops, dtype=np.int64).reshape(-1, 2).T
    return congestion_epochs(time_ns, victim, GAP_NS)


def as_rows(found: CongestionEpochs) -> list[tuple[int, int, int]]:
    """Return start, number of drops and victim of each epoch."""
    columns = (found.start_ns.tolist(), found.drops.tolist(), found.victim.tolist())
    return list(zip(*columns, strict=True))


def test_gap_separates() -> None:
    """Drops exactly the gap apart are one epoch; a nanosecond more makes two."""
    assert as_rows(epochs((5, 0), (15, 0))) == [(5, 2, 0)]
    assert as_rows(epochs((5, 0), (16, 0))) == [(5, 1, 0), (16, 1, 0)]


def test_epoch_has_one_victim_or_several() -> None:
    """An epoch has the victim of all its drops, or "several"."""
    found = epochs((0, 1), (1, 1), (20, 0), (21, 1), (22, 0), (50, 2))
    assert as_rows(found) == [(0, 2, 1), (20, 3, SEVERAL), (50, 1, 2)]
    assert found.single_victim_share() == pytest.approx(2 / 3)


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 2)), min_size=1, max_size=30))
def test_by_walking(drops: list[tuple[int, int]]) -> None:
    """Epochs equal those found by walking from drop to drop."""
    drops.sort()
    clusters = [[drops[0]]]
    for before, drop in pairwise(drops):
        if drop[0] - before[0] > GAP_NS:
            clusters.append([])
        clusters[-1].append(drop)
    expected = [
        (
            cluster[0][0],
            len(cluster),
            cluster[0][1] if len({victim for _, victim in cluster}) == 1 else SEVERAL,
        )
        for cluster in clusters
    ]
    assert as_rows(epochs(*drops)) == expected


@pytest.mark.parametrize(
    ("victims", "share"),
    [([0, 1, 0, 1], 1), ([0, 0, 1], 0.5), ([0, 0], 0), ([0, SEVERAL, 1], 0)],
)
def test_epochs_with_different_victims_alternate(victims: list[int], share: float) -> None:
    """Two successive epochs alternate if each has one victim, and these differ."""
    columns = np.arange(len(victims)), np.ones(len(victims), dtype=np.int64)
    assert CongestionEpochs(*columns, np.array(victims)).alternating_share() == share


def test_window_takes_starts() -> None:
    """An epoch, with all its drops, belongs to the window in which it starts."""
    found = epochs((5, 0), (14, 1), (40, 0), (45, 0)).within(6, 41)
    assert as_rows(found) == [(40, 2, 0)]


def test_without_drops() -> None:
    """Without drops there is no epoch and no share; a single epoch cannot alternate."""
    none = epochs()
    assert as_rows(none) == []
    assert np.isnan(none.single_victim_share())
    assert np.isnan(none.alternating_share())
    assert np.isnan(epochs((0, 0)).alternating_share())
