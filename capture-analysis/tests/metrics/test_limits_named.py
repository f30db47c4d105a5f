"""The causes named for transfers against the truth of simulated captures."""

import pytest
from capture_analysis.one_capture.limit import CANNOT_TELL
from limits_confusion import cases, is_right

pytestmark = pytest.mark.slow


def test_causes_are_true() -> None:
    """A cause is named for four of five directions, from every place, and nine of ten are true."""
    found = list(cases(2, seed=7))
    named = [each for each in found if each.said != CANNOT_TELL]
    assert len(named) >= 0.8 * len(found)
    assert sum(map(is_right, named)) >= 0.9 * len(named)
    for place in ("near", "middle", "far"):
        there = [is_right(each) for each in named if each.place == place]
        assert sum(there) >= 0.85 * len(there) > 0
