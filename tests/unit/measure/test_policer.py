"""What a policer refuses, by hand."""

import math

from column_run import analysis_of, queue_view
from queue_columns import passage_of

from twoway.measure.links.policer import policed

MS = 1_000_000
# 8 Mbit/s: a byte takes a microsecond, and the bucket holds two frames of 1000.
POLICER: dict[str, float] = {"rate_mbit": 8, "burst_bytes": 2000}


def _share(steady_ns: int, stop_ns: int, policer: dict[str, float] | None = POLICER) -> float:
    """The share refused of four frames at once, and of one that comes when the bucket is full."""
    entered = [0, 0, 0, 0, 5 * MS]
    view = queue_view(passage_of(entered, entered, frame_bytes=[1000] * 5))
    links = {"forward": {"policer": policer}}
    analysis = analysis_of(links=links, steady_ns=steady_ns, stop_ns=stop_ns)
    (found,) = policed.measure(analysis, view)
    return found


def test_share_of_what_comes_in_the_steady_window() -> None:
    """Two of four that come at once are refused, none of the later; a window is half open."""
    assert _share(0, 6 * MS) == 2 / 5
    assert _share(0, 5 * MS) == 2 / 4
    assert _share(1, 6 * MS) == 0
    assert _share(5 * MS, 6 * MS) == 0
    assert math.isnan(_share(1, 5 * MS))


def test_no_policer_refuses_nothing() -> None:
    """Where there is no policer there is no share."""
    assert math.isnan(_share(0, 6 * MS, policer=None))
