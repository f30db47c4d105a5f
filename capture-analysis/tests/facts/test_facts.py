"""Facts of connections from the head of a capture."""

import numpy as np
import pytest
from capture_analysis.facts.directions import Block
from capture_analysis.facts.facts import Evidence, Facts, RateSource
from capture_analysis.facts.vantage import locate_tap
from capture_analysis.flow_table import FLOW, FlowTable
from capture_analysis.one_capture import single
from capture_analysis.one_capture.single import NOTHING, Given, measure
from capture_analysis.tracking import Tracker
from conversation import Conversation, columns
from measured_captures import (
    ACK_FRAME,
    FRAME,
    MSS,
    RATE_BIT,
    ROUND_TRIP_NS,
    SEGMENT_NS,
    Exchange,
    arriving,
    capture_of,
    compressed,
)
from scripted import Script
from simulated_path import Connection, Link, Simulation


def facts_of(*exchanges: Exchange, given: Given = NOTHING) -> Facts:
    """Return the facts of a capture of these connections."""
    return measure(capture_of(*exchanges), given).facts


def test_sizes_of_segment_and_ack() -> None:
    """Facts have the largest segment, the smallest ACK, and b, the segments per ACK."""
    facts = facts_of(compressed())
    assert facts.segment_bytes.tolist() == [MSS, 0]
    assert facts.segment_frame_bytes.tolist() == [FRAME, 0]
    assert facts.ack_frame_bytes.tolist() == [ACK_FRAME, ACK_FRAME]  # backward from the handshake
    assert facts.header_bytes[0] == 52
    assert facts.segments_per_ack[0] == 1


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_tap_place_is_share_of_round_trip(share: float) -> None:
    """The tap's place is the share of the round trip that lies between it and the sender."""
    exchange = compressed(to_receiver_ns=round((1 - share) * ROUND_TRIP_NS), sends=False)
    exchange.data_ns = exchange.data_ns[:1]
    exchange.first = exchange.first[:1]
    exchange.ack_ns = exchange.data_ns + ROUND_TRIP_NS
    exchange.acked, exchange.stamp = exchange.acked[:1], None
    facts = facts_of(exchange)
    assert facts.tap_at[0] == pytest.approx(share)
    assert facts.tap_at[1] == pytest.approx(1 - share)
    assert facts.round_trip_ns[0] == ROUND_TRIP_NS


def test_tap_unknown() -> None:
    """Without a handshake, time stamps or data in both directions the place is unknown."""
    exchange = arriving()
    facts = measure(capture_of(exchange, handshake=False)).facts
    assert np.isnan(facts.tap_at[0])
    assert facts.tap_agreement[0] == 0


def test_rate_before_queue() -> None:
    """Near the sender the rate is the pace of ACKs, even if some are compressed."""
    facts = facts_of(compressed())
    assert facts.rate_bit[0] == pytest.approx(RATE_BIT, rel=1e-3)
    assert facts.rate_source[0] == RateSource.ACKS
    assert facts.rate_source[1] == RateSource.OPPOSITE
    assert facts.rate_bit[1] == facts.rate_bit[0]


def test_rate_behind_queue() -> None:
    """Near the receiver the rate is the pace of data, with which most gaps agree."""
    facts = facts_of(arriving())
    assert facts.rate_bit[0] == pytest.approx(RATE_BIT, rel=1e-9)
    assert facts.rate_source[0] == RateSource.DATA
    assert facts.rate_share[0] == pytest.approx(50 * 11 / 599)
    assert facts.rate_gaps[0] == 599


def test_rate_of_data_alone() -> None:
    """If the tap's place is unknown, data that compressed ACKs released gives no rate."""
    released = compressed()
    released.ack_ns, released.acked, released.stamp = released.ack_ns[:0], released.acked[:0], None
    facts = measure(capture_of(released, handshake=False)).facts
    assert facts.rate_source[0] == RateSource.DATA
    assert facts.rate_bit[0] == pytest.approx(RATE_BIT, rel=1e-3)


def test_rate_needs_gaps() -> None:
    """A few gaps give no rate."""
    facts = facts_of(arriving(bursts=1, segments=10))
    assert np.isnan(facts.rate_bit).all()
    assert facts.rate_source.tolist() == [RateSource.UNKNOWN, RateSource.UNKNOWN]


def test_rate_of_shared_link() -> None:
    """If segments of two connections alternate, only both together show the link's rate."""
    one, two = arriving(segments=20), arriving(segments=20, port=40001)
    times = one.data_ns[0] + np.arange(2 * len(one.data_ns)) * SEGMENT_NS
    for turn, each in enumerate((one, two)):
        each.data_ns = times[turn::2]
        each.ack_ns = each.data_ns + 1000
    facts = facts_of(one, two)
    assert facts.rate_bit[[0, 2]] == pytest.approx(RATE_BIT, rel=1e-9)
    assert facts.rate_source[0] == RateSource.LINK_DATA


def test_rate_of_later_packets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rate from the capture's head is dropped if later packets are faster than it allows."""
    monkeypatch.setattr(single, "HEAD_PACKETS", 1000)
    slow = arriving()
    fast = np.arange(20_000) * SEGMENT_NS // 3 + slow.ack_ns[-1] + SEGMENT_NS
    slow.data_ns = np.concatenate((slow.data_ns, fast))
    slow.ack_ns = slow.data_ns + 1000
    slow.first = 1 + MSS * np.arange(len(slow.data_ns))
    slow.acked = slow.first + MSS
    facts = measure(capture_of(slow)).facts
    assert np.isnan(facts.rate_bit[0])
    assert facts.rate_evidence[0] == Evidence.NONE
    assert facts.delivered_bit[0] == pytest.approx(3 * RATE_BIT, rel=0.02)


def test_rate_given_that_cannot_be() -> None:
    """A rate from the user is kept, even if the link delivered more."""
    steady = arriving(cycle_ns=12 * SEGMENT_NS, bursts=200)
    facts = facts_of(steady, given=Given(rate_mbit=90))
    assert facts.rate_evidence[0] == Evidence.GIVEN
    assert facts.delivered_bit[0] > 1.05 * 90e6


@pytest.mark.parametrize(("mean_ns", "source"), [(SEGMENT_NS // 2, 0), (4 * SEGMENT_NS, 6)])
def test_opposite_rate_is_tested(mean_ns: int, source: int) -> None:
    """The opposite direction's rate is a guess for this one, unless this one delivered more."""
    back = arriving(turned=True, port=40001, bursts=4000, segments=1)
    gaps = np.random.default_rng(1).lognormal(0, 2, len(back.data_ns))  # no mode
    back.data_ns = back.data_ns[0] + np.cumsum(mean_ns * gaps / gaps.mean()).astype(np.int64)
    back.ack_ns = back.data_ns + 1000
    facts = facts_of(arriving(), back)
    assert facts.rate_source.tolist()[2] == source


def test_pace_of_an_application() -> None:
    """A pace without pauses is a guess, because the application may set it."""
    paced = facts_of(arriving(bursts=600, segments=1, cycle_ns=SEGMENT_NS))
    assert paced.rate_evidence[0] == Evidence.GUESSED
    assert facts_of(arriving()).rate_evidence[0] == Evidence.MEASURED


def test_rate_on_a_coarse_clock() -> None:
    """A rate is measured if a segment lasts at least ten ticks of the clock, else a guess."""
    for tick_ns, evidence in ((10_000, Evidence.MEASURED), (100_000, Evidence.GUESSED)):
        coarse = arriving()
        coarse.data_ns = coarse.data_ns // tick_ns * tick_ns
        coarse.ack_ns = coarse.data_ns + tick_ns
        facts = facts_of(coarse)
        assert facts.clock_ns[0] == tick_ns
        assert facts.rate_evidence[0] == evidence


def test_tap_of_two_minds() -> None:
    """If handshake and data give different places of the tap, its place is unknown."""
    torn = Conversation().handshake()  # 20 us to the sender, 10 to the receiver
    torn.send(0, 100, 1, payload=10, ack=1)
    torn.send(1, 1100, 1, ack=11)
    torn.send(1, 2000, 1, payload=10, ack=11)
    torn.send(0, 2001, 11, ack=11)
    packets = columns(torn.packets)
    packets.time_ns[:] *= 100  # hosts are as quick as on a path of 1.1 ms, which is no LAN
    flows = FlowTable(np.zeros(1, FLOW))
    found = locate_tap(Block(packets, Tracker().track(packets, flows), Facts.without_knowledge(2)))
    assert np.isnan(found.at).all()
    assert found.agreement[0] == pytest.approx(
        1 - (2 / 3 - 1 / 11)
    )  # the SYN's 10 us are the shortest
    assert found.handshake_ns.tolist() == [3_000_000, 3_000_000]


def test_rate_given() -> None:
    """A given rate is that of the direction with most data; the other keeps its own."""
    facts = facts_of(arriving(), given=Given(rate_mbit=50, ack_rate_mbit=2))
    assert facts.rate_bit.tolist() == [50e6, 2e6]
    assert facts.rate_source.tolist() == [RateSource.GIVEN, RateSource.GIVEN]


@pytest.mark.parametrize("tick_ns", [1_000, 1_000_000, 4_000_000, 10_000_000])
def test_tick_found_from_time_stamps(tick_ns: int) -> None:
    """The tick of TCP time stamps is found from their progress over capture time."""
    facts = facts_of(compressed(tick_ns=tick_ns))
    assert facts.tick_ns[0] == tick_ns
    assert np.isnan(facts.tick_ns[1])


def _queue_grows(exchange: Exchange, share: float) -> Exchange:
    """Let each ACK wait longer than the one before, by a share of the time since the first."""
    exchange.ack_ns = exchange.ack_ns + (share * (exchange.ack_ns - exchange.ack_ns[0])).astype(int)
    return exchange


def test_tick_found_though_a_queue_grows() -> None:
    """The tick is found if the ACKs' delay grows by a third of the time in which they were sent."""
    facts = facts_of(_queue_grows(compressed(tick_ns=1_000_000, sends=False), 1 / 3))
    assert facts.tick_ns[0] == 1_000_000


def test_tick_unknown_where_two_agree() -> None:
    """No tick is found if a growing queue lets two agree, 4 and 5 ms."""
    facts = facts_of(_queue_grows(compressed(tick_ns=4_000_000, sends=False), 1 / 4))
    assert np.isnan(facts.tick_ns[0])


def test_data_found_whoever_opens_the_connection() -> None:
    """Whichever end opens a connection, its data has the right direction."""
    facts = facts_of(arriving(), arriving(turned=True, port=40001))
    assert facts.side.tolist() == [0, 1, 1, 0]


def test_later_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that begins after the head gets the facts of one between the same hosts."""
    monkeypatch.setattr(single, "HEAD_PACKETS", 100)
    later = arriving(port=40001)
    other = arriving(port=40002, host=9)
    for each in (later, other):
        each.data_ns, each.ack_ns = each.data_ns + 10**10, each.ack_ns + 10**10
    capture = capture_of(arriving(), later, other)
    whole = capture.flows
    capture.flows = type(whole)(whole.rows[:1])
    chunks = capture.chunks

    def growing(packets: int = 0):  # type: ignore[no-untyped-def] # noqa: ANN202
        for chunk in chunks(packets):
            known = max(len(capture.flows), int(chunk.flow.max()) + 1)
            capture.flows = type(whole)(whole.rows[:known])
            yield chunk

    monkeypatch.setattr(capture, "chunks", growing)
    facts = measure(capture).facts
    assert facts.rate_bit[[0, 2]] == pytest.approx(RATE_BIT, rel=1e-9)
    assert facts.segment_bytes[2] == MSS
    assert np.isnan(facts.rate_bit[4])


def test_acks_of_two_connections_back_to_back_are_no_pace() -> None:
    """ACKs that alternate back to back on their own link of 10 Mbit/s give no rate of data."""
    links = Link(1e8, 5_000_000, 5_000_000), Link(1e7, 5_000_000, 5_000_000)
    there = [Connection(window=60), Connection(window=120, begin_ns=1000)]
    back = Connection(sender=1, window=40, begin_ns=2000)
    simulation = Simulation(links, [*there, back], "near", 1)
    simulation.run(9000)
    rates = measure(simulation.captured(1, 1)).facts.rate_bit
    assert rates[[1, 3, 4]].tolist() == [1e7] * 3
    assert np.isnan(rates[[0, 2, 5]]).all()


def test_rate_survives_recoveries_and_long_queues() -> None:
    """Near its sender, a download that keeps a drop-tail queue full shows its link's rate."""
    links = Link(8e6, buffer_bytes=50 * 1514), Link(1e8)
    download = Connection(window=56, segments=6000)
    facts = measure(Simulation(links, [download], "near").run().captured()).facts
    assert facts.rate_bit[0] == pytest.approx(8e6, rel=0.01)
    assert facts.rate_evidence[0] == Evidence.MEASURED
    assert facts.delivered_bit[0] < 1.05 * 8e6


def test_pace_within_aggregates_is_no_rate() -> None:
    """ACKs a hundred times closer than the delivery, as in an aggregate, give no rate."""
    links = Link(2e9, burst=20, wait_ns=20_000_000), Link(1e10)
    upload = Connection(window=100, segments=4000)
    facts = measure(Simulation(links, [upload], "near").run().captured(clock_ns=1)).facts
    assert np.isnan(facts.rate_bit[0])
    assert facts.rate_evidence[0] == Evidence.NONE


def test_measured_rates_are_no_slower_than_their_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If a later, short connection exceeds a measured rate, that rate is a guess for it."""
    monkeypatch.setattr(single, "HEAD_PACKETS", 1000)
    first, later = arriving(), arriving(bursts=1, segments=100, port=40001)
    later.data_ns = first.data_ns[-1] + SEGMENT_NS + np.arange(100) * SEGMENT_NS // 3
    later.ack_ns = later.data_ns + 1000
    facts = measure(capture_of(first, later)).facts
    assert facts.rate_bit[[0, 2]] == pytest.approx(RATE_BIT)
    assert facts.rate_evidence[[0, 2]].tolist() == [Evidence.MEASURED, Evidence.GUESSED]


def talk(sizes: list[int], gap_us: int | None = None) -> Facts:
    """Return the facts at the receiver of writes, at one gap or as a link of 10 Mbit/s spaces."""
    script, now = Script(500, 500), 10_000
    for number, size in enumerate(sizes):
        now += gap_us or round((size + 54) * 0.8)
        now += 50_000 * (number % 12 == 0)
        script.data(1, now, size)
        script.hears(0)
        script.ack(0, now + 20)
    return measure(script.captured()).facts


def test_gaps_that_do_not_grow_with_the_packet_are_no_links() -> None:
    """Small and large writes at one gap give no rate, and at their transmission times they do."""
    sizes = [1460, 1460, 40, 1460] * 60
    found = talk(sizes, gap_us=10_000)
    assert np.isnan(found.rate_bit[1])
    found = talk(sizes)
    assert found.rate_bit[1] == pytest.approx(10e6, rel=0.02)
    assert found.rate_evidence[1] == Evidence.MEASURED


def test_writes_of_one_size_at_one_gap_measure_no_link() -> None:
    """Full segments that an application pushes one by one, all acknowledged, are a guess."""
    assert talk([1460] * 240, gap_us=10_000).rate_evidence[1] <= Evidence.GUESSED
