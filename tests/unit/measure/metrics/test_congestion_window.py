"""Congestion windows in the kernel's reports: how they grow, their cycles, and epochs of drops."""

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from capture_analysis.columns import Packets
from conversation import packets
from support.column_run import Ends, analysis_of, queue_view
from support.queue_columns import passage_of, queue_of
from support.synthetic_run import START_NS, write_run

from twoway.measure.analysis import Analysis
from twoway.measure.metrics import window
from twoway.measure.metrics.congestion_epochs import epoch_losses, queue_epochs
from twoway.measure.metrics.congestion_window import congestion_window
from twoway.measure.metrics.window import cycle_ends
from twoway.measure.metrics.window_phase import MOST, growth_exponent, phase
from twoway.measure.queues import Occupancy

HEADER = "# rtt: us\ntime_ns,source_port,cwnd,ssthresh,rtt_us\n"


def _measured(folder: Path, rows: list[tuple[int, int, int]]) -> float:
    """Return first's largest window, from samples of time (ms), port and window."""
    lines = [f"{START_NS + ms * 10**6},{port},{cwnd},-1,2500\n" for ms, port, cwnd in rows]
    (write_run(folder) / "sockets/tcp-info.csv").write_text(HEADER + "".join(lines))
    analysis = Analysis(folder)
    (found,) = congestion_window.measure(analysis, analysis.connections["first"])
    return found


def test_largest_window_of_the_steady_window(tmp_path: Path) -> None:
    """Only samples of that connection from 10 to 30 ms count towards the largest window."""
    rows = [(9, 40001, 90), (10, 40001, 8), (29, 40001, 7), (29, 40002, 50), (30, 40001, 70)]
    assert _measured(tmp_path, rows) == 8


def test_undefined_without_a_sample(tmp_path: Path) -> None:
    """A steady window without a sample has no largest window."""
    assert math.isnan(_measured(tmp_path, [(9, 40001, 90), (20, 40002, 5)]))


# Congestion windows over time: how they grow.

S = 1_000_000_000


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_growth_has_its_exponent(power: float) -> None:
    """A window that grows as a power of the time since its loss has that power as exponent."""
    time_ns = np.arange(0, 2000) * S // 10
    grown = (1000 * (time_ns % (100 * S) / (100 * S)) ** power).astype(np.int64)
    losses_ns = np.array([0, 100, 200]) * S
    assert growth_exponent(Occupancy(time_ns, grown), losses_ns) == pytest.approx(power, abs=0.02)


def test_growth_from_half_is_slower() -> None:
    """Linear growth from half the peak fits an exponent of about 0.3."""
    time_ns = np.arange(0, 100) * S
    grown = (500 + 500 * time_ns / (100 * S)).astype(np.int64)
    found = growth_exponent(Occupancy(time_ns, grown), np.array([0, 100 * S]))
    assert found == pytest.approx(0.29, abs=0.03)


def test_growth_needs_a_cycle() -> None:
    """Without two losses there is no cycle, and no exponent."""
    flat = Occupancy(np.array([0]), np.array([5]))
    assert math.isnan(growth_exponent(flat, np.array([50 * S])))


def _with_window(window: list[int]) -> Ends:
    """Make a connection whose window has each of these lengths for ten seconds."""
    sent_s, acked_s = [0] * window[0], [-1]
    for at, (before, now) in enumerate(pairwise(window), start=1):
        (sent_s if now > before else acked_s).append(10 * at)
    sent = packets(
        time_ns=[at * S for at in sent_s], seq=range(len(sent_s)), payload_bytes=[1] * len(sent_s)
    )
    acks = packets(time_ns=[at * S for at in acked_s], ack=range(len(acked_s)))
    return Ends(sent=sent, acks_in=acks)


def test_pairs_of_many_windows() -> None:
    """If connections are too many, pairs of the first, the last and some between are correlated."""
    up, down = _with_window([1, 2, 1, 2]), _with_window([2, 1, 2, 1])
    few = [up] * (MOST - 1) + [down]
    correlated = (math.comb(MOST - 1, 2) - (MOST - 1)) / math.comb(MOST, 2)
    assert phase.measure(analysis_of(*few, stop_ns=40 * S))[0] == pytest.approx(correlated)
    many = [each for each in few for _ in range(2)][:-1]
    assert phase.measure(analysis_of(*many, stop_ns=40 * S))[0] == pytest.approx(correlated)


# The losses that end a window's cycle, and measurements between them.


@pytest.mark.parametrize(
    ("loss_s", "ends_s"),
    [
        ([50, 150, 250], [150, 250]),  # each loss ends a cycle
        ([50, 150, 155, 250, 255], [150, 250]),  # losses at 155 and 255 belong to slow start
        ([55, 105, 155, 255, 305], [155, 255, 305]),  # cycles of 50 s count, as half of the longest
        ([150, 205, 300], [150, 300]),  # a cycle of 55 s does not: half of the longest is 72.5 s
        ([110, 210, 400], [110, 210]),  # the window includes its start, not its end
        ([120], [120]),
        ([], []),
    ],
)
def test_losses_after_the_longest_intervals_end_cycles(
    loss_s: list[int], ends_s: list[int]
) -> None:
    """A loss ends a cycle if its interval is at least half the longest; losses from 110 s count."""
    loss_ns = np.array(loss_s, dtype=np.int64) * S
    assert cycle_ends(loss_ns, 0, (110 * S, 400 * S)).tolist() == [at * S for at in ends_s]


def _sawtooth(
    monkeypatch: pytest.MonkeyPatch, loss_s: list[int], peak: int | None
) -> tuple[float, ...]:
    """Return the metrics of one segment per second, on a link that takes half a second for it."""
    frame_bytes = 500
    arrived = packets(
        time_ns=[at * S for at in range(100)],
        seq=[at * 400 for at in range(100)],
        payload_bytes=[400] * 100,
        frame_bytes=[frame_bytes] * 100,
    )
    monkeypatch.setattr(window, "cycle_losses_ns", lambda *_: np.array(loss_s) * S)
    monkeypatch.setattr(window, "most_in_flight", lambda *_: peak)
    link = queue_view(queue=queue_of(rate_bit=2 * frame_bytes * 8))
    views = {"forward": link}
    analysis = analysis_of(Ends(arrived=arrived), queues=views)
    return tuple(window.sawtooth.measure(analysis, analysis.connections["0"]))


def test_whole_cycles_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Losses at 10, 30 and 60 s make two cycles of 25 s on average, with half of the link used."""
    assert _sawtooth(monkeypatch, [10, 30, 60], 7) == pytest.approx((25, 0.5, 7), rel=1e-12)
    assert _sawtooth(monkeypatch, [10, 30], 7) == pytest.approx((20, 0.5, 7), rel=1e-12)


def test_one_loss_is_no_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer than two losses give no period and no efficiency, and no data gives no peak."""
    period, efficiency, peak = _sawtooth(monkeypatch, [10], 7)
    assert np.isnan([period, efficiency]).all()
    assert peak == 7
    assert np.isnan(_sawtooth(monkeypatch, [], None)).all()


# Epochs of drops: their number, size and spacing, and a connection's part.

# Drop times in ns, two of them of ACKs: with a round trip of 10 ns, epochs of 3, 2 and 1.
DROPS = packets(time_ns=[0, 4, 10, 30, 36, 100], payload_bytes=[9, 0, 9, 9, 0, 9])


def _analysis(drops: Packets) -> Analysis:
    """Make a run with these drops, whose longest round trip is 10 ns."""
    dropped = replace(passage_of([], []), packets=drops, left_ns=np.full(len(drops), -1))
    view = queue_view(dropped, queue_of(delay_ns=10, limit_packets=0))
    return analysis_of(Ends(), queues={"forward": view})


def test_epochs_of_a_queue() -> None:
    """Three epochs have 2 drops and 2/3 of an ACK on average; half the gap makes five epochs."""
    analysis = _analysis(DROPS)
    found = queue_epochs.measure(analysis, analysis.queues["forward"])
    assert found == pytest.approx((3, 2, 2 / 3, 6 / 5, 50e-9), rel=1e-12)


def test_losses_in_an_epoch() -> None:
    """Four lost data packets in three epochs are 4/3 per epoch."""
    analysis = _analysis(DROPS)
    found = epoch_losses.measure(analysis, analysis.connections["0"])
    assert found == pytest.approx((4 / 3,), rel=1e-12)


def test_no_drops_no_epochs() -> None:
    """Without drops there are no epochs, and the other metrics are undefined."""
    nothing = _analysis(packets(time_ns=[]))
    count, *others = queue_epochs.measure(nothing, nothing.queues["forward"])
    assert count == 0
    assert np.isnan(others).all()
    assert np.isnan(epoch_losses.measure(nothing, nothing.connections["0"])).all()
