"""Clusters of data among the packets that leave a queue, by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
from packet_columns import packets
from support.column_run import Ends, analysis_of, queue_view
from support.queue_columns import passage_of

from twoway.measure.metrics.clustering import clusters


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
