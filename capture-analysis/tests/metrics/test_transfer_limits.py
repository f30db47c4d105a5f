"""The limits of a transfer, on simulated paths with a known limit."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from capture_analysis.flow_table import Seen
from capture_analysis.metrics import transfer_limits
from capture_analysis.metrics.transfer_limits import NO_SCALE_SEEN
from capture_analysis.one_capture import single
from capture_analysis.one_capture.limit import limit_of
from capture_analysis.one_capture.single import measure
from capture_analysis.tracking import Kind, Tracker
from measured_captures import ColumnCapture, values
from simulated_path import Connection, Link, Place, Simulation

NAMES = [each.name for each in transfer_limits.TransferLimits.per_direction]
SHARES = [name for name in NAMES if name.startswith("limited_")]


def captured(place: Place = "near", loss: float = 0, **settings: Any) -> ColumnCapture:
    """Simulate a transfer over 10 Mbit/s whose window fills the link several times."""
    links = Link(1e7, loss=loss), Link(1e7)
    return Simulation(links, [Connection(**{"window": 20} | settings)], place).run().captured()


def two_way(tick_ns: int = 1000, loss: float = 0) -> Simulation:
    """Simulate two opposite transfers that share a link: ACKs queue behind the other's data."""
    links = Link(1e7, loss=loss), Link(1e7, loss=loss)
    transfers = [
        Connection(window=20, tick_ns=tick_ns),
        Connection(sender=1, window=30, begin_ns=3_000_000, tick_ns=tick_ns),
    ]
    return Simulation(links, transfers, "near").run()


def limits(capture: ColumnCapture) -> SimpleNamespace:
    """Return the shares of time of the transfer's data, by cause."""
    return values(measure(capture), 0)


def test_missed_acks_make_the_least_scale_too_large() -> None:
    """Without a SYN and with holes a full window may be either one: no cause is named."""
    links = Link(1e8, 5_000_000, 5_000_000), Link(1e8, 5_000_000, 5_000_000)
    transfer = Connection(segments=800, window=12, announced=12)
    capture = Simulation(links, [transfer], "near").run().captured()
    capture.flows.rows["seen"] &= ~np.uint8(Seen.SYN)  # of the data's sender
    missed = np.arange(5, len(capture.whole), 10)
    capture.whole = capture.whole.where(np.delete(np.arange(len(capture.whole)), missed))
    found = values(measure(capture), 0)
    assert found.limited_congestion_window == found.limited_receive_window == NO_SCALE_SEEN
    assert limit_of(vars(found)).cause == "cannot tell"


def test_congestion_window() -> None:
    """If data waits for ACKs while the announced window is open, congestion control limits."""
    assert limits(captured()).limited_congestion_window > 0.95


def test_receive_window() -> None:
    """If data fills the announced window, the receiver's window limits."""
    capture = captured()
    capture.whole.window[:] = 20 * 1448
    assert limits(capture).limited_receive_window > 0.95
    capture.whole.window[:] = 20 * 1448 // 4
    capture.flows.rows["window_scale"][:] = 2
    assert limits(capture).limited_receive_window > 0.95
    capture.flows.rows["window_scale"][:] = 4
    assert limits(capture).limited_receive_window == 0


def test_nothing_outstanding() -> None:
    """With nothing outstanding, the application pauses, unless the window is shut."""
    capture = captured(segments=200)
    data = capture.whole.payload_bytes > 0
    last = int(np.flatnonzero(data)[-1])
    # All is acknowledged; after a minute a window update comes, and data right behind it.
    rows = np.append(np.arange(len(capture.whole)), [len(capture.whole) - 1, last])
    capture.whole = whole = capture.whole.where(rows)
    whole.time_ns[-2:] += 60 * 10**9 - (whole.time_ns[-2:] - whole.time_ns[-3])
    whole.seq[-1] += 1448
    whole.ip_id[-2:] += 1000
    whole.window[-2] = 50_000
    whole.ts_value[-2] += 60_000
    found = limits(capture)
    assert found.limited_pause > 0.98
    assert found.limited_application < 0.01
    whole.window[-3] = 0
    found = limits(capture)
    assert found.limited_zero_window > 0.98
    assert found.limited_pause == 0


def test_sparse_writer_is_limited_by_application() -> None:
    """The application limits a sender that writes four segments now and then."""
    found = limits(captured(write_ns=50_000_000, write=4))
    assert found.limited_application > 0.85


def refilled(every: int) -> ColumnCapture:
    """Simulate a sender that has new data every few ACKs, with the last of it pushed."""
    capture = captured()
    whole = capture.whole
    ack_ns = whole.time_ns[whole.payload_bytes == 0][3:]  # without the handshake's
    rows = np.flatnonzero(whole.payload_bytes > 0)[20:]
    at = np.searchsorted(ack_ns, whole.time_ns[rows], "right") - 1
    kept = at + every < len(ack_ns)
    rows, batch = rows[kept], at[kept] // every
    whole.time_ns[rows] = ack_ns[(batch + 1) * every - 1] + 1
    whole.flags[rows[np.flatnonzero(np.diff(batch, append=-1))]] |= 8
    capture.whole = whole.where(np.argsort(whole.time_ns, kind="stable"))
    return capture


def test_send_buffer() -> None:
    """Pushed data and ACKs that release nothing mean an empty send buffer."""
    capture = refilled(every=4)
    assert limits(capture).limited_send_buffer > 0.9
    assert limits(refilled(every=2)).limited_send_buffer == 0
    capture.whole.flags[:] &= ~np.uint16(8)
    found = limits(capture)
    assert found.limited_send_buffer == 0
    assert found.limited_congestion_window > 0.9


def by_hand(capture: ColumnCapture) -> list[float]:
    """Compute the first direction's shares at the sender, packet by packet."""
    packets = capture.whole
    tracked = Tracker().track(packets, capture.flows)
    facts = measure(capture).facts
    delta_ns = max(facts.round_trip_ns[0] / 10, 1e6)
    spent, waits, full = dict.fromkeys(("app", "loss", "receiver", "sender"), 0), 0, 0
    flight, acked, sent, point, window, last_ns = 0, -1, -1, -1, -1, None
    for row in range(len(packets)):
        data = packets.payload_bytes[row] > 0
        if tracked.kind[row] in (Kind.COPY, Kind.CONTROL) or packets.half[row] == data:
            continue  # the handshake's last ACK is of the other direction
        time_ns = int(packets.time_ns[row])
        wait_ns = 0 if last_ns is None else time_ns - last_ns
        again = tracked.kind[row] in (Kind.RETRANSMISSION, Kind.LATE_DATA)
        if acked < point:
            spent["loss"] += wait_ns
        elif 0 <= window < flight + facts.segment_bytes[0]:
            full += wait_ns
        elif flight == 0:
            spent["app"] += wait_ns
        else:
            waits += wait_ns
        if data:
            spent["loss" if again else "sender" if wait_ns <= delta_ns else "app"] += waits
            spent["loss" if again else "receiver"] += full
            waits = full = 0
            sent = max(sent, int(tracked.seq_bytes[row]) + int(packets.payload_bytes[row]))
            point = max(point, sent) if again else point
        else:
            acked = max(acked, int(tracked.ack_bytes[row]))
            window = int(packets.window[row])
        flight, last_ns = int(tracked.in_flight_bytes[row]), time_ns
    spent["app"] += waits
    spent["receiver"] += full
    return [each / sum(spent.values()) for each in spent.values()]


def test_limits_equal_a_count_by_packet() -> None:
    """With losses the shares equal a count by packet, and some time is recovery."""
    for window in (60_000, 12 * 1448):
        capture = captured(loss=0.02)
        capture.whole.window[:] = window
        found = limits(capture)
        shares = [getattr(found, name) for name in SHARES]
        assert shares == pytest.approx([*by_hand(capture), 0, 0, 0, 0, 0])
        assert found.limited_recovery > 0.1
    assert limits(captured()).limited_recovery == 0


@pytest.mark.parametrize("tick_ns", [1000, 1_000_000, 4_000_000])
def test_ack_compression(tick_ns: int) -> None:
    """The time that ACKs wait in a queue is found within two ticks of time stamps per wait."""
    simulation = two_way(tick_ns)
    capture, truth = simulation.captured(), simulation.truth(0)
    longer = np.diff(truth.seen_ns) - np.diff(truth.sent_ns)
    held, lasted = longer[longer > 0], capture.whole.time_ns[-1] - capture.whole.time_ns[0]
    share = held.sum() / lasted
    assert share > 0.4
    found = limits(capture)
    # Each wait may lose two ticks: one is subtracted, and one is lost if stamps round the gap up.
    assert share - 2 * tick_ns * len(held) / lasted < found.limited_ack_compression < share + 0.02
    assert found.limited_congestion_window > 0.4
    assert limits(captured()).limited_ack_compression == 0


def test_ack_compression_without_time_stamps() -> None:
    """Without time stamps the time of waiting ACKs counts as the window's."""
    found = limits(two_way(tick_ns=0).captured())
    assert found.limited_ack_compression == transfer_limits.NO_STAMPS
    assert found.limited_congestion_window > 0.9


def test_repeat_after_silence_is_a_timeout() -> None:
    """A retransmission after a second of silence counts as a time-out."""
    capture = captured(segments=40)
    whole = capture.whole
    last = np.flatnonzero(whole.payload_bytes > 0)[-1]
    rows = np.append(np.arange(last + 1), last)
    capture.whole = whole.where(rows)
    capture.whole.time_ns[-1] += 10**9
    capture.whole.ts_value[-1] += 10**6
    capture.whole.ip_id[-1] += 1
    assert limits(capture).timeouts == 1
    assert limits(captured()).timeouts == 0


def test_wait_for_a_timeout_is_recovery() -> None:
    """If the window is too small for three duplicate ACKs, the wait for the timer is recovery."""
    found = limits(captured(loss=0.05, announced=2))
    assert found.limited_recovery > 0.8
    assert limits(captured(announced=2)).limited_receive_window > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("packets", [1, 7, 100])
@pytest.mark.parametrize(
    "least",
    [{"limited_recovery": 0.01, "limited_ack_compression": 0.1}, {"limited_send_buffer": 0.8}],
)
def test_blocks_do_not_matter(
    least: dict[str, float], packets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shares do not depend on where blocks end."""
    of_buffer = "limited_send_buffer" in least
    capture = refilled(every=4) if of_buffer else two_way(loss=0.01).captured()
    capture.whole = capture.whole.where(slice(300 if of_buffer else 2500))
    expected = limits(capture)
    monkeypatch.setattr(single, "BLOCK_PACKETS", packets)
    found = limits(capture)
    assert all(getattr(expected, name) > share for name, share in least.items())
    assert [getattr(found, n) for n in SHARES] == [getattr(expected, n) for n in SHARES]


def test_elsewhere_it_cannot_be_told() -> None:
    """Far from the sender, or without the window scale, the shares have a reason instead."""
    assert limits(captured("far")).limited_application == transfer_limits.NOT_NEAR
    unscaled = captured()
    unscaled.flows.rows["seen"] &= np.uint8(3 * Seen.HALF)
    found = limits(unscaled)
    assert found.limited_receive_window == transfer_limits.NO_SCALE_SEEN
    assert found.limited_application < 0.05
