"""The losses that end a window's cycle, and measurements between them."""

import numpy as np
import pytest
from packet_columns import packets
from support.column_run import Ends, analysis_of, queue_view
from support.queue_columns import queue_of

from twoway.measure.metrics import window
from twoway.measure.metrics.window import cycle_ends

S = 1_000_000_000


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
