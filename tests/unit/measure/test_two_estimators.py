"""The estimators of a run and of two captures agree on the same traffic."""

from typing import Any

import numpy as np
import pytest
from capture_analysis.two_captures.pair import PairOfCaptures
from capture_analysis.two_captures.pair_document import document
from two_vantage import PROPAGATION_NS, TwoWayPath

from twoway.measure.queues import Passage, occupancy

PATH = TwoWayPath()


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    """Return the results of two complete captures with one clock."""
    return document(
        PairOfCaptures(("a", "b"), lambda: PATH.capture("a"), lambda: PATH.capture("b")).measure()
    )


@pytest.mark.parametrize("way", [0, 1])
def test_the_queue_is_that_of_a_run(plain: dict[str, Any], way: int) -> None:
    """Peak and mean of a streamed queue equal those from whole arrays (queues.occupancy)."""
    rows = way == PATH.way
    first, second = (PATH.a_ns, PATH.b_ns) if way == 0 else (PATH.b_ns, PATH.a_ns)
    order = np.argsort(first[rows], kind="stable")
    entering = PATH.packets.where(np.flatnonzero(rows)[order]).widened()
    entering.time_ns[:] = first[rows][order]
    passed: Any = Passage(entering, second[rows][order] - PROPAGATION_NS, entering.flow >= 0)
    whole = occupancy(passed)
    found = plain["ways"][("a_to_b", "b_to_a")[way]]
    start, stop = int(whole.time_ns[0]), int(whole.time_ns[-1])
    assert found["queue_peak"]["value"] == whole.packets.max()
    assert found["queue_mean"]["value"] == pytest.approx(whole.mean(start, stop), rel=1e-9)
