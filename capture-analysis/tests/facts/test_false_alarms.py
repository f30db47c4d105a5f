"""The frequency with which random gaps look like those of a link."""

from collections.abc import Callable

import numpy as np
import pytest
from capture_analysis.facts.gap_modes import modes

Random = np.random.Generator
GAPS = 400_000
FAMILIES: dict[str, Callable[[Random, tuple[int, int]], np.ndarray]] = {
    "exponential": lambda random, shape: random.exponential(1, shape),
    "uniform": lambda random, shape: random.uniform(0, 2, shape),
    "lognormal, sigma 2": lambda random, shape: random.lognormal(0, 2, shape),
    "lognormal, sigma 0.5": lambda random, shape: random.lognormal(0, 0.5, shape),
    "lognormal, sigma 0.2": lambda random, shape: random.lognormal(0, 0.2, shape),
    "Pareto": lambda random, shape: random.pareto(1.5, shape),
}


def alarms(gaps: np.ndarray) -> float:
    """Return the share of samples (rows of gaps) whose mode counts as a link's."""
    samples, count = gaps.shape
    gap_ns = np.maximum(1e6 * gaps, 1).astype(np.int64).ravel()
    group = np.repeat(np.arange(samples), count)
    return float(modes(group, np.full(len(gap_ns), 12_000.0), gap_ns, samples, 0.5).true.mean())


@pytest.mark.parametrize("count", [20, 50, 200, 2000])
@pytest.mark.parametrize("family", FAMILIES)
def test_random_gaps_are_no_link(family: str, count: int) -> None:
    """At most one in 500 samples of random gaps counts as having a mode."""
    random = np.random.default_rng(len(family) + count)
    samples = max(GAPS // count, 1000)
    assert alarms(FAMILIES[family](random, (samples, count))) <= 0.002


@pytest.mark.parametrize("count", [50, 200, 2000])
def test_a_link_among_random_gaps(count: int) -> None:
    """If half of the gaps are a link's, within 2 %, nearly every sample has a mode."""
    random = np.random.default_rng(count)
    gaps = random.exponential(4, (100, count))
    gaps[:, ::2] = random.normal(1, 0.01, gaps[:, ::2].shape)
    assert alarms(gaps) >= 0.95
