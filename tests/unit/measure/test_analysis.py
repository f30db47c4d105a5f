"""The values that the analysis of a run's folder provides for metrics."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from capture_analysis.errors import AnalysisError
from conversation import packets
from support.column_run import Ends, analysis_of, queue_view
from support.queue_columns import passage_of, queue_of
from support.synthetic_run import edit_manifest, write_run

from twoway.contract.network import START_NS
from twoway.links.dtm import Channel
from twoway.links.half_duplex import Medium
from twoway.links.rate import Rate
from twoway.measure.analysis import Analysis
from twoway.measure.channel import Slots
from twoway.measure.medium import medium_of
from twoway.measure.revision import code_revision

S = 1_000_000_000


def test_a_link_has_one_rate_until_its_slots_change(tmp_path: Path) -> None:
    """A link with a constant rate has one rate; so has a channel whose slots are set only once."""
    view = Analysis(write_run(tmp_path)).queues["forward"]
    assert view.has_one_rate
    for changes, has_one in (([(0, 4)], True), ([(0, 4), (10, 8)], False)):
        times, slots = np.array(changes).T
        assert replace(view, slots=Slots(times, slots, 0, Channel())).has_one_rate is has_one


def test_a_rate_is_the_mean_between_two_times() -> None:
    """A link's rate between two times is its mean, for a schedule and for changing slots."""
    constant = queue_view(queue=queue_of(rate_bit=8_000_000))
    assert constant.rate_bit(0, 5) == 8_000_000
    halved = Rate(schedule=[(0, 8), (1, 4)]).table
    between = START_NS + S // 2, START_NS + 3 * S // 2
    assert replace(constant, table=halved).rate_bit(*between) == 6_000_000
    assert replace(constant, table=halved).rate_bit(START_NS, START_NS + 4 * S) == 5_000_000
    doubled = Slots(np.array([0, 10]), np.array([4, 8]), 0, Channel())
    assert replace(constant, slots=doubled).rate_bit(0, 20) == 6 * 512_000
    assert not replace(constant, table=halved).has_one_rate


def test_a_drop_tail_queue_is_as_long_as_its_kernel_counts(tmp_path: Path) -> None:
    """A drop-tail queue's length is the kernel's count; a managed queue's count has bounds."""
    folder = write_run(tmp_path)
    plain = Analysis(folder).queues["forward"]
    assert all(count is plain.all_packets for count in plain.kernel())
    edit_manifest(folder, lambda m: m["queues"][0].update(leaves_at_start=True))
    managed = Analysis(folder).queues["forward"]
    assert not any(count is managed.all_packets for count in managed.kernel())


def test_a_rate_that_changes_has_its_table(tmp_path: Path) -> None:
    """A queue has the table of its link's changing rate, and None if the rate is constant."""
    folder = write_run(tmp_path)
    assert Analysis(folder).queues["forward"].table is None
    rate = {"schedule": [[0, 8]], "repeat_s": None}
    link = {"directions": {"forward": {"queue_packets": 4, "rate": rate}}}
    edit_manifest(folder, lambda m: m.update(profile=link))
    assert Analysis(folder).queues["forward"].table == Rate.model_validate(rate).table


def test_captures_that_lost_packets_are_named(tmp_path: Path) -> None:
    """A packet that left a queue without entering is an error that names captures with losses."""
    folder = write_run(tmp_path)
    shutil.copy(folder / "pcap/r2-eth0.pcap", folder / "pcap/r1-eth0.pcap")
    with pytest.raises(AnalysisError, match=r"r1-eth1: .* that no capture saw enter$"):
        _ = Analysis(folder).queues
    edit_manifest(folder, lambda m: m["capture_drops"].update({"r1-eth0": 7}))
    with pytest.raises(AnalysisError, match=r"enter; captures lost packets: r1-eth0 7$"):
        _ = Analysis(folder).queues


def test_a_run_has_a_medium_if_its_profile_has_one(tmp_path: Path) -> None:
    """A run has a medium if its profile has half_duplex, and None otherwise."""
    folder = write_run(tmp_path)
    assert medium_of(Analysis(folder).run) is None
    shared = {"gap_us": 2, "turn_packets": 3}
    edit_manifest(folder, lambda m: m["profile"].update({"half_duplex": shared}))
    assert medium_of(Analysis(folder).run) == Medium(2000, 3)


def test_a_window_is_what_is_sent_and_not_acknowledged() -> None:
    """A window is the data sent and not acknowledged, in full segments; old ACKs do not count.

    Sequence numbers wrap after the first segment, and the first ACK is the handshake's.
    """
    first = (1 << 32) - 100
    sent = packets(
        time_ns=[10, 10, 30, 50], seq=[first, 0, 1, first], payload_bytes=[100, 1, 100, 100]
    )
    acks = packets(time_ns=[12, 20, 40, 45], ack=[first - 1, 0, 51, 0])
    view = analysis_of(Ends(sent=sent, acks_in=acks)).connections["0"]
    assert view.window.time_ns.tolist() == [10, 12, 20, 30, 40, 45, 50]
    assert view.window.packets.tolist() == [2, 2, 1, 2, 1, 1, 1]
    later = Ends(sent=sent, acks_in=packets(time_ns=[5], ack=[first]))
    assert analysis_of(later).connections["0"].window.packets.tolist() == [0, 2, 3, 3]


def test_no_window_without_data_and_acks() -> None:
    """A connection that has sent no data, or received no ACK, has no window at any time."""
    data, acks = packets(time_ns=[1], payload_bytes=[1]), packets(time_ns=[2], ack=[1])
    for ends in (Ends(sent=data), Ends(acks_in=acks)):
        window = analysis_of(ends).connections["0"].window
        assert len(window.time_ns) == len(window.packets) == 0


def test_largest_segment_and_smallest_ack_set_transmission_times() -> None:
    """At 1 us per byte the largest segment, 154 bytes, takes 154 us, the smallest ACK 54 us.

    Without packets both times are 0.
    """
    arrived = packets(time_ns=[1, 2, 3], payload_bytes=[0, 100, 50], frame_bytes=[199, 154, 104])
    acks = packets(time_ns=[4, 5, 6], ack=[1, 2, 3], frame_bytes=[66, 54, 78])
    ends = Ends(arrived=arrived, acks_out=acks, acks_in=acks)
    view, without = analysis_of(ends, Ends()).connections.values()
    assert (view.data_service_ns, view.ack_service_ns) == (154_000, 54_000)
    assert (view.segment_frame_bytes, view.ack_frame_bytes) == (154, 54)
    assert (without.segment_frame_bytes, without.ack_frame_bytes) == (0, 0)
    assert (without.data_service_ns, without.ack_service_ns) == (0, 0)


def test_a_connections_data_in_its_queue() -> None:
    """A connection's data in a queue count, but not its FIN or another's data."""
    passed = passage_of([0, 0, 5, 5], [10, 20, 30, 40], [1, 1, 0, 1])
    passed = replace(passed, packets=replace(passed.packets, flow=np.array([0, 0, 0, 1])))
    views = {"forward": queue_view(passed)}
    queued = analysis_of(Ends(), Ends(), queues=views).connections["0"].queued
    assert queued.time_ns.tolist() == [0, 0, 10, 20]
    assert queued.packets.tolist() == [1, 2, 1, 0]


def test_a_packet_departs_before_the_window_ends() -> None:
    """A packet that leaves at the steady window's start counts, one at its end does not."""
    passed = passage_of([0] * 4, [9, 10, 19, 20], [1, 0, 1, 1])
    analysis = analysis_of(steady_ns=10, stop_ns=20)
    departed = analysis.list_departed(queue_view(passed))
    assert departed.rows.tolist() == [1, 2]


def test_packets_travel_from_their_last_queue() -> None:
    """A packet travels from its last queue on; if it is due at the end, it is still under way."""
    behind = packets(time_ns=[0, 10, 20, 20], seq=range(4))
    arrived = packets(time_ns=[50, 70], seq=[0, 2])
    order = {"directions": ["first", "middle", "last"], "direction": "first"}
    queue = queue_of(delay_ns=50).model_copy(update={"interface": "r3-eth1"})
    ends = Ends(behind=behind, arrived=arrived, fields=order)
    analysis = analysis_of(ends, queues={"last": queue_view(queue=queue)})
    travel = analysis.travel(analysis.run.connections[0])
    assert travel.came_ns.tolist() == [50, -1, 70, -1]
    assert travel.lost.tolist() == [False, True, False, False]
    assert travel.arrivals == 2


def test_the_longest_round_trip_fills_all_queues() -> None:
    """Queues of 3 packets of 5 us and 4 of 2 us and a delay of 7 us make a round trip of 30 us."""
    first = queue_of(limit_packets=3, delay_ns=3000), [5, 1]
    second = queue_of(limit_packets=4, delay_ns=4000), [1, 2]
    queues = {
        name: queue_view(passage_of([0, 0], [0, 0], frame_bytes=sizes), queue)
        for name, (queue, sizes) in (("forward", first), ("reverse", second))
    }
    assert analysis_of(queues=queues).longest_round_trip_ns == 30_000


def test_acks_keep_their_spacing_on_plain_links() -> None:
    """ACKs keep their spacing unless a queue on their path has a changing delay or impairments."""
    passes = Ends(fields={"ack_directions": ["near", "far"], "ack_direction": "far"})
    delay: dict[str, Any] = {"delay": {"schedule": [[0, 1]]}}
    impairments: dict[str, Any] = {"impairments": {"jitter_ms": 1}}
    for links, keeps in (
        ({}, True),
        ({"near": {}, "far": {}}, True),
        ({"near": {}, "far": delay}, False),
        ({"near": impairments, "far": {}}, False),
        ({"forward": impairments}, True),
    ):
        analysis = analysis_of(passes, links=links)
        assert analysis.keeps_spacing(analysis.run.connections[0]) is keeps


def test_epochs_are_of_all_connections_in_order_of_time() -> None:
    """Alternating drops of two connections, more than a round trip apart, are one epoch each.

    A dropped ACK belongs to none.
    """
    passed = passage_of([10, 20, 25, 30], [-1] * 4, [1, 1, 0, 1])
    passed = replace(passed, packets=replace(passed.packets, flow=np.array([0, 1, 0, 0])))
    views = {"forward": queue_view(passed, queue_of(delay_ns=5, limit_packets=0))}
    epochs = analysis_of(Ends(), Ends(), queues=views).congestion_epochs
    assert epochs.start_ns.tolist() == [10, 20, 30]
    assert epochs.alternating_share() == 1


# The identity of the code that measures.


def _revision(*folders: Path) -> str:
    for folder, text in zip(folders, ("first", "second"), strict=True):
        folder.mkdir(parents=True)
        (folder / "code.py").write_text(text)
    return code_revision(*folders)


def test_code_that_lies_elsewhere_is_the_same(tmp_path: Path) -> None:
    """A revision of two folders does not depend on the order of their paths."""
    checkout = _revision(tmp_path / "a/capture", tmp_path / "a/twoway")
    assert _revision(tmp_path / "b/z-environment", tmp_path / "b/checkout") == checkout
    assert _revision(tmp_path / "c/twoway", tmp_path / "c/capture") == checkout
