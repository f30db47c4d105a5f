"""Simulated paths with losses behave like policers, AQMs, handovers, SACK, CUBIC and BBR."""

from typing import Any

import numpy as np
import pytest
from capture_analysis.metrics.standing_queue import NO_STAMPS, TOO_FEW
from capture_analysis.one_capture.evidence import ONE_SIDED
from capture_analysis.one_capture.single import measure
from measured_captures import ColumnCapture, values
from simulated_controls import Bbr, Cubic
from simulated_path import Connection, Link, Place, Simulation
from simulated_queues import Codel, FairQueues

WIDE = 1 << 20
SEGMENT_NS = round(8e9 * 1514 / 1e7)


def run(link: Link, **settings: Any) -> tuple[ColumnCapture, Connection]:
    """Simulate a transfer in congestion avoidance over 4 ms, captured at its receiver."""
    made: dict[str, Any] = {"window": WIDE, "announced": WIDE, "segments": 3000, "avoids": True}
    transfer = Connection(**(made | settings))
    return Simulation((link, Link(1e9)), [transfer], "far").run().captured(), transfer


def longest_ns(capture: ColumnCapture) -> int:
    """Return the longest time from a segment's time stamp to its arrival, after slow start."""
    data = capture.whole.where(capture.whole.payload_bytes > 0)
    late = data.time_ns - data.ts_value.astype(np.int64) * 1_000_000
    return int((late - late.min())[len(late) // 2 :].max())


def test_policer_delays_nothing() -> None:
    """A policer passes at most its rate, and no packet waits for it."""
    capture, transfer = run(Link(1e7, buffer_bytes=60_000, polices=True))
    spent_ns = transfer.data_ns[1] - transfer.data_ns[0]
    assert spent_ns > 0.9 * transfer.segments * SEGMENT_NS
    assert transfer.waited_ns["recovery"] > 0
    assert longest_ns(capture) < 3_000_000  # time stamps have ticks of 1 ms


def test_codel_drops_what_waits() -> None:
    """CoDel keeps its queue short after slow start; without it a wide window fills the buffer."""
    capture, transfer = run(Link(1e7, codel=Codel(5_000_000)))
    assert transfer.waited_ns["recovery"] > 0
    assert longest_ns(capture) < 100_000_000
    assert longest_ns(run(Link(1e7))[0]) > 1_000_000_000


def test_handover_changes_rate_and_delay() -> None:
    """After a handover a link has another rate and a longer delay, and reorders nothing."""
    changed = Link(1e7, change_ns=10**9, changed_bit=2e6, changed_ns=30_000_000)
    capture, transfer = run(changed, window=4)
    assert changed.rate_bit == 2e6
    assert transfer.data_ns[1] - transfer.data_ns[0] > 2 * 10**9
    data = capture.whole.where(capture.whole.payload_bytes > 0)
    assert (np.diff(data.seq.astype(np.int64)) > 0).all()


def test_sack_repairs_sooner() -> None:
    """With SACK, recovery takes less than 0.8 of the time that it takes without SACK."""
    spent_ns = []
    for sacks in (False, True):
        capture, transfer = run(Link(1e7, 20_000_000, buffer_bytes=60_000), sacks=sacks)
        assert (capture.whole.sack_right > 0).any() == sacks
        assert transfer.acked == transfer.segments
        spent_ns.append(transfer.waited_ns["recovery"])
    assert spent_ns[1] < 0.8 * spent_ns[0]


def test_fair_queues_keep_a_small_window_from_waiting() -> None:
    """With FQ-CoDel a window of one segment hardly waits beside a transfer that fills the link.

    In a FIFO of the same size it waits for the whole queue.
    """
    longest = []
    for link in (Link(1e7, fair=FairQueues(5_000_000)), Link(1e7, buffer_bytes=150_000)):
        wide = Connection(window=WIDE, announced=WIDE, segments=3000, avoids=True, hidden=True)
        small = Connection(announced=1, segments=200)
        simulation = Simulation((link, Link(1e9)), [small, wide], "far").run()
        longest.append(longest_ns(simulation.captured()))
        assert {row[1] for row in simulation.rows} == {0}  # the other connection is hidden
        assert small.acked == small.segments
    assert longest[0] < 5_000_000  # a segment of each connection, and a tick
    assert longest[1] > 50_000_000


def test_cubic_returns_to_its_window_after_a_loss() -> None:
    """CUBIC falls to 0.7 of W and returns to W after K = (0.3 W / 0.4)^(1/3) seconds."""
    cubic = Cubic()
    window = cubic.lost(100.0, 0)
    assert window == 70
    back_ns = round((0.3 * 100 / 0.4) ** (1 / 3) * 1e9)
    for time_ns in range(0, back_ns, 4_000_000):
        window = cubic.grown(window, 1, time_ns)
    assert 97 < window < 103


def test_bbr_fills_the_link_with_a_short_queue() -> None:
    """BBR keeps the link busy with under 60 ms of delay, where Reno fills a buffer of 300 ms."""
    links = Link(1e7, 20_000_000, buffer_bytes=600_000)
    capture, transfer = run(links, bbr=Bbr())
    spent_ns = transfer.data_ns[1] - transfer.data_ns[0]
    assert sum(end - begin for begin, end in links.busy_ns) > 0.95 * spent_ns
    assert longest_ns(capture) < 60_000_000
    reno = run(Link(1e7, 20_000_000, buffer_bytes=600_000))[0]
    assert longest_ns(reno) > 300_000_000


# 8 Mbit/s and 4 ms hold 3 segments.
PIPE = 3


def captured(place: Place, *others: Connection, **settings: Any) -> ColumnCapture:
    """Simulate a transfer over 8 Mbit/s, whose first round trips find an idle link."""
    links = Link(8e6), Link(1e8)
    transfer = Connection(**{"window": 30, "segments": 2000} | settings)
    return Simulation(links, [transfer, *others], place).run().captured()


def standing(capture: ColumnCapture) -> Any:
    """Return the share of time with a standing queue, or the reason for having none."""
    return values(measure(capture), 0).standing_queue


@pytest.mark.parametrize("place", ["near", "middle", "far"])
def test_window_beyond_the_pipe(place: Place) -> None:
    """At any tap a window of ten pipes shows a standing queue; one of one pipe does not."""
    assert standing(captured(place)) > 0.95
    assert standing(captured(place, announced=PIPE)) == 0


def test_queue_of_others() -> None:
    """A queue that another transfer fills also counts for a transfer with a small window."""
    other = Connection(window=60, segments=20_000, begin_ns=500_000_000)
    assert standing(captured("near", other, announced=2)) > 0.8
    assert standing(captured("near", announced=2)) == 0


def test_receiver_that_waits_is_no_queue() -> None:
    """Delays of a receiver that reads only now and then do not count as a queue."""
    assert standing(captured("near", announced=PIPE, held_ns=3_000_000)) < 0.2


def test_silence_is_no_queue() -> None:
    """In a silence at most one round trip counts as time with a queue."""
    assert 0.05 < standing(captured("near", write_ns=800_000_000, write=100)) < 0.4
    assert standing(captured("near", write_ns=160_000_000, write=100)) > 0.8
    other = Connection(window=60, segments=20_000)
    seldom = standing(captured("near", other, write_ns=800_000_000, write=10, segments=200))
    assert 0.05 < seldom < 0.6


def test_jitter_is_no_queue() -> None:
    """On a path of a few ms, delays that vary by less than 1 ms are no queue."""
    links = Link(8e6, jitter_ns=600_000), Link(1e8, jitter_ns=300_000)
    transfer = Connection(announced=PIPE, segments=2000)
    assert standing(Simulation(links, [transfer], "near").run().captured()) == 0


def test_clocks_that_drift_make_no_queue() -> None:
    """With time stamps a drift of 50 ppm gives no queue, even after a hundred seconds."""
    capture = captured("far", write_ns=100_000_000, write=2)
    capture.whole.time_ns[:] += (capture.whole.time_ns - capture.whole.time_ns[0]) // 20_000
    assert standing(capture) == 0


def test_what_cannot_be_told() -> None:
    """Without time stamps, the ACKs or enough round trips the share has a reason instead."""
    assert standing(captured("far", tick_ns=0)) == NO_STAMPS
    assert standing(captured("near", segments=20)) == TOO_FEW
    alone = captured("far")
    alone.whole = alone.whole.data()
    assert standing(alone) == ONE_SIDED
