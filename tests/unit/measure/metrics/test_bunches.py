"""Clusters of data, bunches of ACKs and compressed ACKs among the packets that leave a queue."""

import math
from dataclasses import replace

import numpy as np
import pytest
from conversation import packets
from support.column_run import Ends, analysis_of, queue_view
from support.queue_columns import passage_of

from twoway.measure.metrics.acks import bunches_of_queue, spacing
from twoway.measure.metrics.clustering import clusters
from twoway.measure.queues import Passage


def _measured(order: str, window: int = 2) -> tuple[float, ...]:
    """Return the metrics of packets in order: `a` of a connection, its FIN `f`, `x` of others."""
    rows = range(len(order))
    payload = [int(name != "f") for name in order]
    passed = passage_of(rows, rows, payload)
    passed = replace(passed, packets=replace(passed.packets, flow=np.array([*order]) == "x"))
    # A segment and a window are sent at the start; the segment is acknowledged at once.
    number = window + 1
    sent = packets(time_ns=[0] * number, seq=range(number), payload_bytes=[1] * number)
    mine = Ends(sent=sent, acks_in=packets(time_ns=[0], ack=[1]))
    views = {"forward": queue_view(passed)}
    analysis = analysis_of(mine, Ends(), queues=views)
    return tuple(clusters.measure(analysis, analysis.connections["0"]))


def test_clusters_by_hand() -> None:
    """In xaaxaaax three of five a's follow an a; the two clusters have 2.5 packets on average."""
    assert _measured("xaaxaaax") == pytest.approx((3 / 5, 5 / 2, 2 / (5 / 2)), rel=1e-12)
    assert _measured("xaaxaaax", window=5)[2] == pytest.approx(2)
    assert _measured("xaaxaaax", window=0)[2] == pytest.approx(2 / 5)


def test_what_leaves_first_has_nothing_before_it() -> None:
    """The steady window's first packet does not count, because its predecessor is not in it."""
    assert _measured("aaxa")[:2] == (1 / 2, 2)
    assert np.isnan(_measured("a")).all()
    assert np.isnan(_measured("xx")).all()
    share, size, _ = _measured("aaa")
    assert share == 1
    assert math.isnan(size)


def test_only_data_make_clusters() -> None:
    """A FIN between two clusters separates them, and belongs to neither."""
    assert _measured("xafa")[:2] == (0, 1)


# Bunches of ACKs that leave a queue.


def _largest(passed: Passage, steady_ns: int = 0, stop_ns: int = 100_000) -> float:
    analysis = analysis_of(steady_ns=steady_ns, stop_ns=stop_ns)
    (found,) = bunches_of_queue.measure(analysis, queue_view(passed))
    return found


# A frame of 1 byte takes 1 us: three ACKs back to back, data, and two ACKs 2 us apart.
LEFT_NS = [1_000, 2_000, 3_000, 9_000, 20_000, 22_000, 25_000]
PAYLOAD = [0, 0, 0, 9, 0, 0, 0]


def test_largest_bunch_of_a_queue() -> None:
    """ACKs at most two ACK times apart are one bunch, which data ends."""
    assert _largest(passage_of([0] * 7, LEFT_NS, payload_bytes=PAYLOAD)) == 3


def test_bunches_are_those_of_the_steady_window() -> None:
    """ACKs that left before the steady window, or at its end, do not count."""
    passed = passage_of([0] * 7, LEFT_NS, payload_bytes=PAYLOAD)
    assert _largest(passed, steady_ns=2_000, stop_ns=20_000) == 2
    assert _largest(passed, stop_ns=3_000) == 2
    assert _largest(passed, steady_ns=3_000) == 2


def test_the_smallest_ack_sets_the_distance() -> None:
    """The smallest ACK sets a bunch's spacing: if it takes 1 us, ACKs 2 us apart are a bunch."""
    left_ns, sizes = [1_000, 3_000, 6_000], [1, 1, 3]
    assert _largest(passage_of([0] * 3, left_ns, [0] * 3, sizes)) == 2


def test_no_acks_no_bunch() -> None:
    """A queue with data only has a largest bunch of 0."""
    assert _largest(passage_of([0], [1_000])) == 0


# Compressed ACKs at the limits of the definition.


def test_compressed_is_below_three_quarters() -> None:
    """Gaps of 74 and 0 ns on arrival, from 100 ns, are compressed; 75, 100 and -1 are not."""
    arrived_ns = np.cumsum([1000, 74, 75, 0, 100, -1]).tolist()
    sent = packets(time_ns=range(0, 600, 100), ack=range(6))
    analysis = analysis_of(Ends(acks_out=sent, acks_in=packets(time_ns=arrived_ns, ack=range(6))))
    assert spacing.measure(analysis, analysis.connections["0"]) == (0.74, 2 / 5)
