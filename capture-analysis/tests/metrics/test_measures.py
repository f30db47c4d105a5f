"""The metrics of one capture, on captures whose answers are known by construction."""

from typing import Any

import numpy as np
import pytest
from capture_analysis.facts.facts import Evidence
from capture_analysis.metrics.utilisation import TOO_SHORT
from capture_analysis.one_capture.evidence import (
    AT_RECEIVER,
    GUESSED_ACK_RATE,
    GUESSED_RATE,
    TOO_FEW_ACKS,
)
from capture_analysis.one_capture.single import Given, Measured, measure
from measured_captures import (
    ACK_FRAME,
    ACK_NS,
    FRAME,
    MSS,
    ROUND_TRIP_NS,
    SEGMENT_NS,
    Exchange,
    arriving,
    capture_of,
    compressed,
    values,
)

CYCLES, WINDOW, BUNCH = 50, 20, 8
KNOWN = Given(rate_mbit=100, ack_rate_mbit=100)


def measured(*exchanges: Exchange, given: Given = KNOWN, handshake: bool = True) -> Measured:
    """Measure a capture of connections whose bottlenecks are known."""
    return measure(capture_of(*exchanges, handshake=handshake), given)


def of(exchange: Exchange, **settings: Any) -> Any:
    """Return all metrics of the data of a connection."""
    return values(measured(exchange, **settings), 0)


def test_acks_back_to_back_are_a_bunch() -> None:
    """ACKs that leave a queue back to back are a bunch, the others are single."""
    found = of(compressed())
    assert found.ack_bunches == CYCLES
    assert found.ack_bunch_max == found.ack_bunch_p95 == BUNCH
    # The handshake's ACK comes from the sender of the data, and does not count.
    assert found.ack_bunch_mean == WINDOW / (WINDOW - BUNCH + 1)
    assert found.acks_bunched == BUNCH / WINDOW
    assert found.ack_bunch_bytes_mean == found.ack_bunch_bytes_max == BUNCH * MSS


def test_bunch_gap() -> None:
    """Gaps of two transmission times are back to back, longer ones are not."""
    exchange = compressed(bunch=3)
    for gap_ns, bunches in ((2 * ACK_NS, CYCLES), (2 * ACK_NS + 1, 0)):
        at = exchange.ack_ns.reshape(CYCLES, WINDOW)
        at[:, -2:] = at[:, -3, None] + gap_ns * np.arange(1, 3)
        assert of(exchange).ack_bunches == bunches


def test_compression_factor() -> None:
    """The factor is the data's transmission time over the gap, bounded by the sizes of packets."""
    found = of(compressed())
    assert found.compression_factor == pytest.approx(SEGMENT_NS / ACK_NS, rel=1 / 256)
    assert found.compression_factor_bound == pytest.approx((MSS + 52) / 52)
    assert found.acks_compressed == pytest.approx(CYCLES * (BUNCH - 1) / (CYCLES * WINDOW - 1))
    assert found.acks_tied == found.acks_too_close == 0


def test_factor_of_spaced_acks() -> None:
    """Without compression the factor is undefined, with a reason."""
    found = of(compressed(bunch=1))
    assert found.acks_compressed == 0
    assert found.compression_factor == "no ACK is compressed"


def test_factor_above_bound() -> None:
    """ACKs closer than their link can send them count as artefacts of the capture."""
    exchange = compressed()
    at = exchange.ack_ns.reshape(CYCLES, WINDOW)
    at[:, -BUNCH:] = at[:, -BUNCH, None] + 100 * np.arange(BUNCH)
    found = of(exchange)
    assert found.acks_too_close == CYCLES * (BUNCH - 1)
    assert found.compression_factor > found.compression_factor_bound


def test_no_bound_without_the_rate_of_acks() -> None:
    """If the rate on the ACKs' path is unknown, the factor's bound has a reason instead."""
    measured = measure(capture_of(compressed()), KNOWN)
    measured.facts.rate_bit[1] = np.nan
    assert values(measured, 0).compression_factor_bound == "no rate for the ACKs' bottleneck"


def test_simultaneous_acks_have_no_factor() -> None:
    """Simultaneous ACKs have no factor, are counted, and count as compressed."""
    exchange = compressed()
    at = exchange.ack_ns.reshape(CYCLES, WINDOW)
    at[:, -BUNCH:] = at[:, -BUNCH, None]
    found = of(exchange)
    assert found.acks_tied == CYCLES * (BUNCH - 1)
    assert found.acks_compressed == pytest.approx(CYCLES * (BUNCH - 1) / (CYCLES * WINDOW - 1))


def test_certain_with_rate_given() -> None:
    """With a given rate, bunches of ACKs faster than it are certain events."""
    found = of(compressed())
    assert found.certain_events == CYCLES
    assert found.certain_acks == CYCLES * BUNCH
    assert found.certain_bytes == CYCLES * BUNCH * MSS
    assert found.likely_events == "the rate was given"


def test_likely_with_rate_estimated() -> None:
    """With an estimated rate, the same events are likely, and not certain."""
    estimated = measured(compressed(), given=Given())
    estimated.facts.rate_evidence[0] = Evidence.MEASURED
    found = values(estimated, 0)
    assert found.likely_events == CYCLES
    assert found.certain_events == "the rate is an estimate"


def test_paxson_events() -> None:
    """With a fine tick, time stamps show each bunch as a compression event, with all its ACKs."""
    found = of(compressed())
    assert found.compression_events == CYCLES
    assert found.compression_acks == CYCLES * BUNCH
    assert found.compression_bytes == CYCLES * BUNCH * MSS
    assert found.compression_duplicate_events == 0
    assert found.compression_undefined == 0


def test_paxson_events_of_coarse_ticks() -> None:
    """With a tick above the spacing, only bunches sent over more than two ticks are events."""
    few, many = (
        of(compressed(tick_ns=1_000_000)),
        of(compressed(tick_ns=1_000_000, window=40, bunch=36)),
    )
    assert few.compression_events == 0  # 7 * 121 us are less than two ticks
    assert many.compression_events == CYCLES
    assert many.compression_acks == CYCLES * 36


def test_no_time_stamps() -> None:
    """Without time stamps send times are undefined, with the reason."""
    exchange = compressed()
    exchange.stamp = None
    found = of(exchange)
    assert found.compression_events == found.bunches_held
    assert str(found.compression_events).startswith("no time stamps")


def test_held_acks() -> None:
    """ACKs sent faster than their data arrived were held by the receiver, and are no events."""
    held, queued = of(compressed(held=True)), of(compressed())
    assert (held.bunches_held, held.bunches_compressed, held.bunches_undecided) == (CYCLES, 0, 0)
    assert held.compression_events == 0
    assert (queued.bunches_held, queued.bunches_compressed) == (0, CYCLES)


def test_held_undecided() -> None:
    """A tick above the transmission time of a bunch's data leaves the bunch undecided."""
    found = of(compressed(tick_ns=1_000_000))
    assert found.bunches_undecided == CYCLES


def test_time_stamps_wrap() -> None:
    """Time stamps that wrap within a bunch change nothing."""
    exchange = compressed()
    assert exchange.stamp is not None
    amid = exchange.stamp[10 * WINDOW - 3]
    exchange.stamp = exchange.stamp - amid + (1 << 32)
    found = of(exchange)
    assert found.compression_events == found.bunches_compressed == CYCLES


def test_sequence_wrap() -> None:
    """Sequence numbers that wrap change nothing."""
    plain, wrapped = of(compressed()), of(compressed(isn=(1 << 32) - 5 * MSS))
    assert vars(plain) == vars(wrapped)


def test_induced_bursts() -> None:
    """Near the sender, a bunch of ACKs releases a burst of as many segments."""
    found = of(compressed())
    assert found.induced_burst_max == found.induced_burst_mean == BUNCH * MSS
    assert of(compressed(sends=False)).induced_burst_max == 0
    far = compressed(to_receiver_ns=ROUND_TRIP_NS // 2, sends=False)
    far.data_ns, far.first = far.data_ns + 3_000_000, far.first
    assert of(far).induced_burst_max == "the tap is not near the data's sender"


def test_bursts_at_full_rate_are_trains() -> None:
    """Bursts at the bottleneck's rate are busy periods, and come once a cycle."""
    found = of(arriving())
    assert found.trains == 50
    assert found.train_segments == found.train_max == 12
    assert found.train_cycle == pytest.approx(0.005, rel=1 / 256)
    assert found.train_regularity == 1


def test_irregular_trains() -> None:
    """Cycles more than 5 % away from their median are irregular."""
    exchange = arriving()
    late = np.repeat(np.arange(50) % 5 == 4, 12) * 1_000_000
    exchange.data_ns, exchange.ack_ns = exchange.data_ns + late, exchange.ack_ns + late
    assert of(exchange).train_regularity == pytest.approx(30 / 49)


def test_goodput_and_link_share() -> None:
    """Goodput excludes headers and the first segment; the link's share includes all frames."""
    found = of(arriving())
    seconds = (49 * 5_000_000 + 11 * SEGMENT_NS) / 1e9
    assert found.goodput == pytest.approx(599 * MSS * 8 / seconds / 1e6)
    assert found.throughput == pytest.approx(600 * FRAME * 8 / seconds / 1e6)
    sent_bytes = 600 * FRAME + ACK_FRAME  # with the handshake's ACK
    assert found.link_share == pytest.approx(sent_bytes * 8 / seconds / 100e6)
    assert found.efficiency == pytest.approx(found.goodput / (100 * MSS / FRAME))
    assert found.payload == 600 * MSS


def test_chunks_with_pauses_have_no_rate_of_their_bursts() -> None:
    """Goodput, throughput and their sum of chunks that pauses part count the pauses, too."""
    exchange = arriving()
    apart = np.repeat(np.arange(50), 12) * 2_000_000_000
    exchange.data_ns, exchange.ack_ns = exchange.data_ns + apart, exchange.ack_ns + apart
    found = values(measured(exchange, given=Given()), 0)
    assert found.pauses == pytest.approx(49 * 2.005, rel=0.01)
    assert found.goodput == pytest.approx(599 * MSS * 8e-6 / (49 * 2.005), rel=0.001)
    assert found.throughput == pytest.approx(600 * FRAME * 8e-6 / (49 * 2.005), rel=0.001)
    assert _of_capture(exchange)["goodput_total"] == pytest.approx(found.goodput)


def test_idle_second_is_a_pause() -> None:
    """A second with nothing outstanding is the application's pause, and no time of data."""
    exchange = arriving()
    before = of(exchange)
    later = np.repeat(np.arange(50) >= 25, 12) * 7_000_000_000
    exchange.data_ns, exchange.ack_ns = exchange.data_ns + later, exchange.ack_ns + later
    found = of(exchange)
    assert found.pauses == pytest.approx(7.005 - 11 * SEGMENT_NS / 1e9)
    assert found.data_time == pytest.approx(before.data_time - 0.005 + 11 * SEGMENT_NS / 1e9)


def test_round_trip_time_from_the_tap() -> None:
    """Each ACK gives the round trip from the tap, for the newest segment it acknowledges."""
    found = of(arriving())
    assert found.rtt_min == 0.001
    assert found.rtt_median == found.rtt_p95 == pytest.approx(0.001, rel=1 / 128)
    assert found.rtt_samples == 601  # with the SYN's


def test_in_flight() -> None:
    """The flight is the data sent and not acknowledged, sampled after each segment."""
    found = of(compressed())
    assert found.in_flight_max == WINDOW * MSS
    # The first window fills up; then an ACK releases each segment at the ACK's time.
    assert found.in_flight_mean < WINDOW * MSS


def test_burst_into_a_queue() -> None:
    """Data sent into a queue in one burst has no share of a link, and a goodput below its rate."""
    burst = compressed(cycles=1, window=40, bunch=0, sends=False)
    burst.data_ns = burst.data_ns[0] + np.arange(len(burst.data_ns)) * 1000
    found = of(burst)
    assert found.link_share == found.efficiency == TOO_SHORT
    assert found.goodput < 100


def test_handshake_sent_again() -> None:
    """A SYN that was sent twice counts as a retry; one captured twice does not."""
    assert of(arriving()).syns_again == 0
    capture = capture_of(arriving())
    capture.whole = capture.whole.where(np.append(0, np.arange(len(capture.whole))))
    assert values(measure(capture), 0).syns_again == 0
    capture.whole.time_ns[0] -= 10**9
    assert values(measure(capture), 0).syns_again == 1


def test_retransmissions_and_late_data() -> None:
    """Payload seen before is a retransmission; payload that fills a hole is late."""
    exchange = arriving()
    again, late = exchange.first.copy(), exchange.first.copy()
    again[100] = again[99]
    late[[200, 201]] = late[[201, 200]]
    exchange.first = again
    exchange.acked = again + MSS
    found = of(exchange)
    assert (found.retransmissions, found.late_segments) == (1, 0)
    exchange.first = late
    exchange.acked = exchange.first + MSS
    found = of(exchange)
    assert (found.retransmissions, found.late_segments) == (0, 1)
    assert found.late == 1 / 600


def test_ack_kinds() -> None:
    """A repeated ACK is a duplicate; the ratio of ACKs to segments counts all ACKs."""
    exchange = arriving()
    exchange.acked = exchange.acked.copy()
    exchange.acked[13] = exchange.acked[12]
    exchange.ack_ns = exchange.ack_ns.copy()
    found = of(exchange)
    assert found.acks == 600
    assert found.acks_duplicate == 1
    assert found.ack_to_data == 1


def test_copies_count_once() -> None:
    """Packets captured twice change no metric except the count of packets."""
    plain = capture_of(compressed())
    doubled = plain.whole.where(np.repeat(np.arange(len(plain.whole)), 2))
    once = values(measure(plain, KNOWN), 0)
    plain.whole = doubled
    assert vars(values(measure(plain, KNOWN), 0)) == vars(once)


def test_fairness_is_jains_index() -> None:
    """Jain's index of two equal shares is 1; if one is twice the other, 0.9."""
    one, two = arriving(), arriving(port=40001)
    assert _of_capture(one, two)["jain_index"] == pytest.approx(1)
    for name in ("data_ns", "first", "ack_ns", "acked"):
        setattr(two, name, np.delete(getattr(two, name), slice(1, -1, 2)))
    two.first = 1 + MSS * np.arange(len(two.first))
    two.acked = two.first + MSS
    rates = [599 * MSS, (len(two.first) - 1) * MSS]
    assert _of_capture(one, two)["jain_index"] == pytest.approx(
        sum(rates) ** 2 / (2 * sum(r * r for r in rates)), rel=1e-3
    )


@pytest.mark.parametrize(("offset_ns", "index"), [(0, 1), (2_500_000, -1)])
def test_pendulum_index_of_two_links(offset_ns: int, index: float) -> None:
    """The index is positive for links that transmit at once, negative for alternating ones."""
    one = arriving(cycle_ns=5_000_000, segments=20)
    two = arriving(cycle_ns=5_000_000, segments=20, port=40001, turned=True)
    two.data_ns, two.ack_ns = two.data_ns + offset_ns, two.ack_ns + offset_ns
    found = _of_capture(one, two, handshake=False)
    assert found["tap_pendulum_index"] == pytest.approx(index, abs=0.1)
    assert found["tap_both_busy"] == pytest.approx(0.5 if index > 0 else 0, abs=0.03)
    assert found["utilisation"] == pytest.approx(0.5, abs=0.03)
    assert found["tap_neither_busy"] == pytest.approx(0.5 if index > 0 else 0.02, abs=0.03)


@pytest.mark.parametrize(("shift", "index"), [(0, 1), (25, 0)])
def test_recovery_synchronisation(shift: int, index: float) -> None:
    """Connections that lose at once are synchronised; alternating ones are not."""
    one, two = arriving(cycle_ns=500_000_000), arriving(port=40001, cycle_ns=500_000_000)
    for each, first in ((one, 0), (two, shift)):
        lost = 12 * (first + np.arange(5) * 3) + 6
        each.first[lost] = each.first[lost - 1]
        each.acked = each.first + MSS
    found = _of_capture(one, two)
    assert found["recoveries"] == (5 if index else 10)
    assert found["recovery_synchronisation"] == index


def _of_capture(*exchanges: Exchange, handshake: bool = True) -> dict[str, Any]:
    result = measured(*exchanges, handshake=handshake)
    found: dict[str, Any] = {}
    for each in result.estimators:
        values = each.of_capture(result.tally, result.facts)
        found |= {definition.name: value for definition, value in values.items()}
    return found


def test_no_acks() -> None:
    """Data alone gives goodput; metrics that need ACKs are undefined, with a reason."""
    exchange = arriving()
    exchange.ack_ns, exchange.acked = exchange.ack_ns[:0], exchange.acked[:0]
    found = values(measure(capture_of(exchange, handshake=False)), 0)
    assert found.goodput > 0
    assert found.ack_bunch_max == "no pure ACKs"
    assert isinstance(found.rtt_min, str)


def test_compression_needs_the_evidence_of_a_verdict() -> None:
    """If ACKs cannot be judged, their compression has a reason instead of a number."""
    judged = (
        "acks_compressed",
        "acks_faster",
        "acks_shrunk",
        "compression_factor",
        "compression_factor_bound",
        "compression_factor_p95",
    )
    few, receiver = compressed(cycles=2, window=15), compressed(to_receiver_ns=0)
    guessed = measured(compressed())
    guessed.facts.rate_evidence[0] = Evidence.GUESSED
    for found, why in (
        (of(few), TOO_FEW_ACKS),
        (of(receiver), AT_RECEIVER),
        (values(guessed, 0), GUESSED_RATE),
    ):
        said = {name: getattr(found, name) for name in judged}
        if why == GUESSED_RATE:
            assert said.pop("acks_shrunk") > 0  # this metric needs no rate
        assert said == dict.fromkeys(said, why)


def test_a_guessed_rate_has_no_numbers() -> None:
    """With a guessed rate utilisation, efficiency, trains and likely events are undefined."""
    guessed = measured(compressed(), given=Given())
    guessed.facts.rate_evidence[0] = Evidence.GUESSED
    found = values(guessed, 0)
    for name in ("bottleneck_rate", "link_share", "efficiency", "trains", "likely_events"):
        assert getattr(found, name) == GUESSED_RATE


def test_a_guessed_rate_of_acks_has_no_bunches() -> None:
    """If the rate of the ACKs' bottleneck is a guess, bunches and bursts are undefined."""
    guessed = measured(compressed(), given=Given(rate_mbit=100))
    assert guessed.facts.rate_evidence[1] == Evidence.GUESSED
    found = values(guessed, 0)
    for name in ("ack_bunches", "ack_bunch_max", "acks_bunched", "induced_burst_max"):
        assert getattr(found, name) == GUESSED_ACK_RATE
