"""Simulated paths with losses: the effects of a policer, CoDel, a handover and SACK."""

import numpy as np
from measured_captures import ColumnCapture
from simulated_path import Connection, Link, Simulation

WIDE = 1 << 20
SEGMENT_NS = round(8e9 * 1514 / 1e7)


def run(link: Link, **settings: float) -> tuple[ColumnCapture, Connection]:
    """Simulate a transfer in congestion avoidance over a path of 4 ms, seen at its receiver."""
    made = {"window": WIDE, "announced": WIDE, "segments": 3000, "avoids": True} | settings
    transfer = Connection(**made)  # type: ignore[arg-type]
    return Simulation((link, Link(1e9)), [transfer], "far").run().captured(), transfer


def longest_ns(capture: ColumnCapture) -> int:
    """Return the longest time from a segment's stamp to its arrival, after slow start."""
    data = capture.whole.where(capture.whole.payload_bytes > 0)
    late = data.time_ns - data.ts_value.astype(np.int64) * 1_000_000
    return int((late - late.min())[len(late) // 2 :].max())


def test_policer_delays_nothing() -> None:
    """A policer passes at most its rate, and no packet waits for it."""
    capture, transfer = run(Link(1e7, buffer_bytes=60_000, polices=True))
    spent_ns = transfer.data_ns[1] - transfer.data_ns[0]
    assert spent_ns > 0.9 * transfer.segments * SEGMENT_NS
    assert transfer.waited_ns["recovery"] > 0
    assert longest_ns(capture) < 3_000_000  # stamps are of 1 ms


def test_codel_drops_what_waits() -> None:
    """CoDel's queue is short after slow start; without CoDel a wide window fills the buffer."""
    capture, transfer = run(Link(1e7, target_ns=5_000_000))
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
    """With SACK more than one loss of a window is repaired in a round trip."""
    spent_ns = []
    for sacks in (False, True):
        capture, transfer = run(Link(1e7, 20_000_000, buffer_bytes=60_000), sacks=sacks)
        assert (capture.whole.sack_right > 0).any() == sacks
        assert transfer.acked == transfer.segments
        spent_ns.append(transfer.waited_ns["recovery"])
    assert spent_ns[1] < 0.8 * spent_ns[0]
