"""Goodput over a flow's own time and by whole seconds; shares, dips, and segments sent again."""

import math
from typing import Any

import numpy as np
import pytest
from conversation import packets
from support.column_run import Ends, analysis_of, queue_view
from support.queue_columns import queue_of

from twoway.measure.analysis import Analysis
from twoway.measure.metrics.completion import completion_time
from twoway.measure.metrics.fairness_by_second import fairness_by_second, jain_by_second
from twoway.measure.metrics.goodput_by_second import goodput_by_second
from twoway.measure.metrics.retransmissions import retransmissions
from twoway.measure.metrics.share import convergence_time, share_least
from twoway.measure.metrics.throughput import fairness, goodput
from twoway.measure.metrics.throughput_dip import throughput_dip

# Goodput over a flow's own sending time, on segments made by hand.

MS = 1_000_000


def ends(*at_ms: int, **fields: Any) -> Ends:
    """Make a connection with a segment of 1000 bytes that arrives at each of some times."""
    data = packets(
        time_ns=[ms * MS for ms in at_ms],
        seq=[1000 * number for number in range(len(at_ms))],
        payload_bytes=[1000] * len(at_ms),
        frame_bytes=[1066] * len(at_ms),
    )
    return Ends(sent=data, arrived=data, fields=fields)


def measured(flow: Ends, steady_ms: int = 0, stop_ms: int = 100) -> tuple[float, float]:
    """Return goodput and throughput in Mbit/s: 1000 bytes in a ms are 8."""
    analysis = analysis_of(flow, steady_ns=steady_ms * MS, stop_ns=stop_ms * MS)
    (view,) = analysis.connections.values()
    found, through, _ = goodput.measure(analysis, view)
    return found, through


@pytest.mark.parametrize("stop_ms", [40, 100, 400])
def test_a_transfer_has_one_goodput(stop_ms: int) -> None:
    """A transfer of 4000 bytes in 20 ms has 1.6 Mbit/s, however long the run goes on."""
    flow = ends(5, 10, 15, 20, 30, transfer_bytes=4000)
    assert measured(flow, stop_ms=stop_ms) == pytest.approx((1.6, 1.6 * 1.066))


def test_a_transfer_is_measured_from_its_own_start() -> None:
    """A transfer from 10 ms to 20 ms has twice the goodput, and a time of 10 ms."""
    flow = ends(12, 14, 16, 20, transfer_bytes=4000, start_ns=10 * MS)
    assert measured(flow)[0] == pytest.approx(3.2)
    analysis = analysis_of(flow, stop_ns=100 * MS)
    (view,) = analysis.connections.values()
    assert completion_time.measure(analysis, view) == (0.01,)


def test_an_unfinished_transfer_sends_to_the_end() -> None:
    """A transfer that is not complete has its goodput over the whole window, and no time."""
    flow = ends(10, 20, transfer_bytes=4000)
    assert measured(flow)[0] == pytest.approx(0.16)
    analysis = analysis_of(flow, stop_ns=100 * MS)
    (view,) = analysis.connections.values()
    assert math.isnan(completion_time.measure(analysis, view)[0])


@pytest.mark.parametrize(
    ("at_ms", "mbit"), [((25, 35), 16 / 20), ((25, 45), 16 / 25), ((25, 120), 8 / 80)]
)
def test_a_stopped_flow_sends_until_its_data_has_arrived(
    at_ms: tuple[int, ...], mbit: float
) -> None:
    """A flow from 20 to 40 ms is measured to 40 ms, or until its last byte arrives in the run."""
    flow = ends(*at_ms, start_ns=20 * MS, stop_ns=40 * MS)
    assert measured(flow)[0] == pytest.approx(mbit)


def test_the_window_bounds_the_time() -> None:
    """A transfer from 0 to 40 ms counts with what arrives from 20 ms on, over 20 ms."""
    flow = ends(10, 20, 30, 40, transfer_bytes=4000)
    assert measured(flow, steady_ms=20)[0] == pytest.approx(3 * 8 / 20)


def test_a_flow_outside_of_the_window_has_no_goodput() -> None:
    """A transfer that ends before the window has no goodput, and does not count for fairness."""
    early, other = ends(1, 2, transfer_bytes=2000), ends(30, 60)
    analysis = analysis_of(early, other, steady_ns=20 * MS, stop_ns=100 * MS)
    assert all(map(math.isnan, goodput.measure(analysis, analysis.connections["0"])))
    assert fairness.measure(analysis) == (1,)
    alone = analysis_of(early, steady_ns=20 * MS, stop_ns=100 * MS)
    assert math.isnan(fairness.measure(alone)[0])


# Segments sent again, and those sent again in vain.


def test_copies_by_a_link_are_no_retransmissions() -> None:
    """A segment is needless if its payload had arrived; copies by a link never count.

    The first segment arrives twice because of the link, and once more because it was sent again,
    and the link copies that one, too.
    """
    arrived = packets(
        time_ns=[10, 11, 20, 30, 31],
        seq=[1, 1, 101, 1, 1],
        ip_id=[1, 1, 2, 3, 3],
        payload_bytes=[100] * 5,
    )
    sent = packets(time_ns=[0, 1, 2], seq=[1, 101, 1], ip_id=[1, 2, 3], payload_bytes=[100] * 3)
    analysis = analysis_of(Ends(sent=sent, arrived=arrived), stop_ns=100)
    found = retransmissions.measure(analysis, analysis.connections["0"])
    assert tuple(found) == (1, 1 / 3, 1)


# Goodput, shares and fairness of whole seconds.

S = 1_000_000_000
KBIT = 125  # bytes of 1 kbit


def sender(*kbit: int, start_s: float = 0, **fields: Any) -> Ends:
    """Make a connection whose receiver gets given bytes, in one segment, in each second from 0."""
    at = [int((second + 0.5) * S) for second, each in enumerate(kbit) if each]
    sizes = [each * KBIT for each in kbit if each]
    arrived = packets(
        time_ns=at, seq=[sum(sizes[:row]) for row in range(len(sizes))], payload_bytes=sizes
    )
    return Ends(arrived=arrived, fields={"start_ns": int(start_s * S), **fields})


def run_of(*connections: Ends, steady_s: float = 0, stop_s: float = 5) -> Analysis:
    """Make a run of some connections."""
    return analysis_of(*connections, steady_ns=int(steady_s * S), stop_ns=int(stop_s * S))


def of(analysis: Analysis, estimator: Any) -> list[list[float]]:
    """Return an estimator's values for each connection."""
    return [[*estimator.measure(analysis, view)] for view in analysis.connections.values()]


def test_goodput_of_the_worst_and_the_best_second() -> None:
    """The extremes are over whole seconds of the steady window; a second without data has 0."""
    analysis = run_of(sender(9, 4, 0, 6, 8), steady_s=0.5, stop_s=4.9)
    assert of(analysis, goodput_by_second) == [[0, 6e-3]]


def test_seconds_before_a_start_and_behind_an_end_do_not_count() -> None:
    """A connection's seconds go from its start to its end, a transfer's to its last data."""
    late = sender(0, 1, 5, 6, 7, start_s=1.5)
    early = sender(3, 2, 1, 0, 0, stop_ns=2 * S)
    done = sender(4, 5, 1, 0, 0, transfer_bytes=10 * KBIT)
    analysis = run_of(late, early, done)
    assert of(analysis, goodput_by_second) == [[5e-3, 7e-3], [2e-3, 3e-3], [4e-3, 5e-3]]


def test_no_whole_second_has_no_value() -> None:
    """Without a whole second goodputs, shares, convergence and fairness are undefined."""
    analysis = run_of(sender(1), sender(1), stop_s=0.9)
    for estimator in (goodput_by_second, share_least, convergence_time):
        assert np.isnan(of(analysis, estimator)).all()
    assert np.isnan(fairness_by_second.measure(analysis)).all()


def test_the_least_share() -> None:
    """A share is among the connections of one queue; without goodput it is undefined."""
    opposite = sender(9, 9, 9, 9, directions=["back"], direction="back")
    analysis = run_of(sender(1, 3, 0, 1), sender(3, 1, 0, 1), opposite, stop_s=4)
    assert of(analysis, share_least) == [[0.25], [0.25], [1]]


def test_convergence_from_the_latest_start() -> None:
    """Convergence counts from the second sender's start to the first second of fair shares."""
    analysis = run_of(sender(100, 100, 90, 56, 54), sender(0, 0, 10, 44, 46, start_s=1.5))
    assert of(analysis, convergence_time) == [[2.5], [2.5]]


@pytest.mark.parametrize(("more", "less", "time_s"), [(549, 451, 0), (551, 449, np.nan)])
def test_fair_is_within_a_tenth(more: int, less: int, time_s: float) -> None:
    """Shares of 0.549 and 0.451 are fair, 0.551 and 0.449 are not."""
    analysis = run_of(sender(more), sender(less), stop_s=1)
    np.testing.assert_allclose(of(analysis, convergence_time), [[time_s]] * 2, equal_nan=True)


def test_alone_is_not_convergence() -> None:
    """A connection alone in its queue has no time of convergence."""
    opposite = sender(1, 1, directions=["back"], direction="back")
    analysis = run_of(sender(1, 1), opposite, stop_s=2)
    assert np.isnan(of(analysis, convergence_time)).all()


def test_jain_by_second() -> None:
    """Two connections that alternate have index 1/2 each second, though their means are equal."""
    analysis = run_of(sender(8, 0, 8, 0, 1), sender(0, 8, 0, 8, 1))
    assert jain_by_second(analysis.seconds).tolist() == [0.5, 0.5, 0.5, 0.5, 1]
    assert fairness_by_second.measure(analysis) == (0.5, 0.5)


def test_jain_needs_two_and_goodput() -> None:
    """Seconds with fewer than two senders, or without goodput, have no index."""
    analysis = run_of(sender(8, 3, 0, 8), sender(0, 1, 0, 8, start_s=1), stop_s=4, steady_s=1)
    assert fairness_by_second.measure(analysis) == pytest.approx((0.9, 0.8))


# The dip of a throughput in any second, by hand.


def _dip(came_s: list[float], window_s: float, frame_bytes: list[int] | None = None) -> float:
    """Return the dip of data sent at these times, in a steady window that begins at 7 s."""
    sizes = frame_bytes or [104] * len(came_s)
    came_ns = [7 * S + round(at * S) for at in came_s]
    data = packets(time_ns=came_ns, payload_bytes=sizes, frame_bytes=sizes)
    views = {"forward": queue_view(queue=queue_of(overhead_bytes=-4))}
    steady_ns, stop_ns = 7 * S, round((7 + window_s) * S)
    analysis = analysis_of(Ends(arrived=data), queues=views, steady_ns=steady_ns, stop_ns=stop_ns)
    (found,) = throughput_dip.measure(analysis, analysis.connections["0"])
    return found


def test_the_worst_second() -> None:
    """With 3, 1 and 2 segments in three seconds the dip is 1/2: one segment, against two."""
    assert _dip([0, 0.5, 0.999999999, 1, 2, 2.9], 3) == pytest.approx(0.5, rel=1e-12)
    assert _dip([0, 1], 2) == 0
    assert _dip([0.1, 0.2], 2) == 1


def test_sizes_are_those_on_the_link() -> None:
    """A second of 200 bytes on the link and one of 100 make a dip of a third."""
    assert _dip([0.5, 1.5], 2, [204, 104]) == pytest.approx(1 / 3, rel=1e-12)


def test_a_rest_of_a_second_is_left_out() -> None:
    """An incomplete last second of the window does not count, though it has no packets."""
    assert _dip([0.5, 1.5], 2.9) == 0


def test_too_short_or_nothing() -> None:
    """A window of less than two seconds has no dip, and neither has a connection without data."""
    assert math.isnan(_dip([0.5], 1.999))
    assert math.isnan(_dip([], 5, []))
