"""A router changes packets before its queue: NAT, tunnels, fragments, filters."""

from dataclasses import replace
from ipaddress import IPv6Address

import numpy as np
from capture_analysis.columns import Keyed, Packets
from capture_analysis.flow_table import FLOW, TCP, FlowTable
from conversation import packets
from support.queue_columns import queue_of

from twoway.measure.nat_translation import join_connections
from twoway.measure.queues import passage
from twoway.measure.routers_own import in_order, made_by_router, mark_arrivals

NONE = np.zeros(3, dtype=bool)


def offered(*, seq: tuple[int, ...], flow: int = 0, flags: int = 16) -> Packets:
    """Make packets of 1000 bytes that come each ms, from 5 ms on."""
    times = [5_000_000 + 1_000_000 * n for n in range(len(seq))]
    same = {"flow": flow, "flags": flags, "frame_bytes": 1000}
    return packets(time_ns=times, seq=seq, **{k: [v] * len(seq) for k, v in same.items()})


def left(came: Packets, after_us: int) -> Packets:
    """Let packets leave some time later."""
    return replace(came, time_ns=came.time_ns + 1000 * after_us)


def test_made_packets_wait_for_nothing_known() -> None:
    """A packet that no capture saw come enters as its transmission begins."""
    came = offered(seq=(1, 2))
    made = made_by_router(queue_of(), came, left(offered(seq=(1, 2, 3)), 1500))
    assert made.seq.tolist() == [3]
    assert made.time_ns.tolist() == [7_500_000]  # 7 ms and 1.5 ms less 1000 bytes at 1 byte/us


def test_a_tunnel_is_matched_by_order() -> None:
    """Packets of a tunnel have the times of the packets that came, and their size on the link."""
    came = offered(seq=(1, 2, 3))
    outer = replace(left(offered(seq=(7, 8, 9)), 1024), frame_bytes=came.frame_bytes + 24)
    found = in_order(queue_of(), came, outer)
    assert found is not None
    assert (found.left_ns - found.packets.time_ns).tolist() == [1_024_000] * 3
    assert found.frame_bytes.tolist() == [1024] * 3
    assert found.packets.seq.tolist() == [1, 2, 3]


def test_a_full_queue_drops_within_a_tunnel() -> None:
    """A queue of two drops the third of packets that come at once, which order alone shows."""
    came = replace(offered(seq=(1, 2, 3)), time_ns=np.array([0, 0, 0]))
    outer = packets(time_ns=[1_000_000, 2_000_000], frame_bytes=[1000] * 2, seq=[7, 8])
    found = in_order(queue_of(limit_packets=2), came, outer)
    assert found is not None
    assert found.left_ns.tolist() == [1_000_000, 2_000_000, -1]


def test_order_does_not_explain_more_packets() -> None:
    """Fragments are more than the packets that came, and have no partner by order."""
    came = offered(seq=(1,))
    assert in_order(queue_of(), came, left(offered(seq=(7, 8)), 2000)) is None


def test_a_filter_stops_what_the_queue_did_not_drop() -> None:
    """A packet that did not leave a queue with room is the filter's, unless counted."""
    came = offered(seq=(1, 2, 3))
    seen = passage(queue_of(), came, left(came, 1000).where(np.array([0, 2])))
    none = came.where(NONE)
    assert mark_arrivals(queue_of(), seen, NONE, none, 0).tolist() == [True, False, True]
    assert mark_arrivals(queue_of(), seen, NONE, none, 1).all()


def flows(*ends: tuple[str, int, str, int]) -> FlowTable:
    """Make a table of TCP connections."""
    rows = np.zeros(len(ends), dtype=FLOW)
    for row, (source, port, destination, other) in zip(rows, ends, strict=True):
        for end, address in (("source", source), ("destination", destination)):
            row[end] = np.frombuffer(IPv6Address(f"::ffff:{address}").packed, dtype=np.uint8)
        row["source_port"], row["destination_port"] = port, other
        row["version"], row["protocol"] = 4, TCP
    return FlowTable(rows)


def test_nat_of_both_ends() -> None:
    """A connection to a router's address that goes on to a server has the hosts' own ends."""
    table = flows(
        ("10.0.1.2", 4001, "10.0.1.1", 80),
        ("10.0.1.2", 4002, "10.0.1.1", 80),
        ("10.0.2.1", 900, "10.0.2.2", 8080),
        ("10.0.2.1", 901, "10.0.2.2", 8080),
    )
    first, second = offered(seq=(1, 2), flow=0), offered(seq=(5,), flow=1)
    behind = [replace(left(offered(seq=(5,), flow=2), 10)), left(offered(seq=(1, 2), flow=3), 10)]
    captures = [Keyed.from_packets(each, ()) for each in (first, second, *behind)]
    number, turned, found = join_connections(
        captures,
        ((2 * each.flow).astype(np.uint32) for each in captures),
        table,
        ["10.0.1.2", "10.0.2.2"],
    )
    assert number.tolist() == [0, 1, 1, 0]
    assert not turned.any()
    assert found.name(0) == "10.0.1.2:4001 > 10.0.2.2:8080"
    assert found.name(1) == "10.0.1.2:4002 > 10.0.2.2:8080"


def test_connections_of_one_capture_stay_two() -> None:
    """Two connections with equal first packets at one place are not each other's translation."""
    table = flows(("10.0.1.2", 4001, "10.0.2.2", 80), ("10.0.1.2", 4002, "10.0.2.2", 80))
    both = packets(time_ns=[1, 2], flow=[0, 1], flags=[16, 16])
    number, _, _ = join_connections(
        [Keyed.from_packets(both, ())],
        [(2 * both.flow).astype(np.uint32)],
        table,
        ["10.0.1.2", "10.0.2.2"],
    )
    assert number.tolist() == [0, 1]
