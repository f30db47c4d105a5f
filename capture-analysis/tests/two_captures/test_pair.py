"""Two captures of a fully known path: what is measured, what was lost, and what was missed."""

from typing import Any

import numpy as np
import pytest
from capture_analysis.tracking import Kind
from capture_analysis.two_captures import rough_offset
from capture_analysis.two_captures.holes import Holes
from capture_analysis.two_captures.match_rows import Rows
from capture_analysis.two_captures.matching import FOREVER
from capture_analysis.two_captures.packets_between import (
    A_TO_B,
    ABSENT,
    B_TO_A,
    CROSSING,
    Crossings,
)
from capture_analysis.two_captures.pair import PairOfCaptures
from capture_analysis.two_captures.pair_document import document
from measured_captures import ColumnCapture
from two_vantage import (
    ACK_NS,
    ACKS,
    BURST,
    CYCLE_NS,
    CYCLES,
    DATA_NS,
    MSS,
    PROPAGATION_NS,
    TwoWayPath,
)

# Two captures of a fully known path, and everything measured from them.

HOUR_NS = 3_600_000_000_000
PATH = TwoWayPath()


def measured(a: ColumnCapture, b: ColumnCapture, **options: Any) -> dict[str, Any]:
    """Return the document of two captures."""
    pair = PairOfCaptures(("a", "b"), lambda: a, lambda: b)
    return document(pair.measure(**options))


def value(document: dict[str, Any], name: str, flow: int = 0, way: str = "forward") -> Any:
    """Return the value of a metric of a direction."""
    (found,) = (each for each in document["flows"] if each["id"] == flow)
    return found[way][name]["value"]


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    """Return the document of two complete captures with one clock."""
    return measured(PATH.capture("a"), PATH.capture("b"))


def test_an_estimator_returns_its_own_quantities() -> None:
    """Each estimator from two captures returns exactly the quantities that it declares."""
    pair = PairOfCaptures(("a", "b"), lambda: PATH.capture("a"), lambda: PATH.capture("b"))
    for each in pair.measure().estimators:
        assert set(each.of_pair()) == set(each.per_pair)
        for scope in ("direction", "path_direction"):
            assert set(getattr(each, f"of_{scope}")(0)) == set(getattr(each, f"per_{scope}"))


def test_every_packet_is_matched(plain: dict[str, Any]) -> None:
    """All packets of both captures are pairs, and none counts as lost or missed."""
    assert plain["matched"]["packets"] == len(PATH.packets)
    for flow in (0, 1):
        for name in ("data_lost", "data_missed", "data_missed_first", "acks_lost"):
            assert value(plain, name, flow) == 0
    assert plain["warnings"] == []


def test_compression_events_are_counted(plain: dict[str, Any]) -> None:
    """One connection has forty events of twelve ACKs, by Paxson's xi, and the other has none."""
    assert value(plain, "compression_events") == CYCLES
    assert value(plain, "compression_acks") == CYCLES * ACKS
    assert value(plain, "compression_bytes") == CYCLES * ACKS * MSS - MSS
    xi = ((ACKS - 1) * ACK_NS + 1) / ((ACKS - 1) * DATA_NS - 1)
    assert value(plain, "compression_xi_median") == pytest.approx(xi, abs=1e-3)
    assert value(plain, "compression_duplicate_share") == 0
    assert value(plain, "compression_events", 1) == 0
    gaps = value(plain, "ack_gaps") - value(plain, "ack_gaps_undefined")
    assert value(plain, "acks_compressed") == CYCLES * (ACKS - 1) / gaps


def test_the_factor_is_the_ratio_of_sizes(plain: dict[str, Any]) -> None:
    """Fully compressed ACKs have a factor of data size over ACK size, which is the bound."""
    assert value(plain, "compression_factor_max") == pytest.approx(DATA_NS / ACK_NS, rel=1e-4)
    assert value(plain, "compression_factor_bound") == pytest.approx(DATA_NS / ACK_NS)
    assert value(plain, "factors") == CYCLES * (ACKS - 1)
    assert value(plain, "factors_above_bound") == 0


def test_delays_are_exact(plain: dict[str, Any]) -> None:
    """The shortest delay is that of an empty queue, the longest that of the full one."""
    assert value(plain, "data_delay_min") == DATA_NS + PROPAGATION_NS
    assert value(plain, "data_delay_max") == ACKS * DATA_NS + PROPAGATION_NS
    delay = np.where(PATH.way == 0, PATH.b_ns - PATH.a_ns, PATH.a_ns - PATH.b_ns)
    acks = (PATH.packets.flow == 0) & (PATH.packets.half == 1) & (PATH.packets.flags == 16)
    assert value(plain, "ack_delay_min") == delay[acks].min()
    assert value(plain, "ack_delay_max") == delay[acks].max()
    assert value(plain, "ack_delay_median") == pytest.approx(
        np.quantile(delay[acks], 0.5, method="inverted_cdf"), rel=1 / 256
    )


def test_the_bottleneck_is_found(plain: dict[str, Any]) -> None:
    """Transmission and propagation times between the taps are exact."""
    facts = plain["ways"]["b_to_a"]["facts"]
    assert facts["data_transmission_ns"] == DATA_NS
    assert facts["ack_transmission_ns"] == ACK_NS
    assert facts["propagation_ns"] == PROPAGATION_NS
    busy_ns = CYCLES * (BURST * DATA_NS + ACKS * ACK_NS) + 2 * ACK_NS
    queue = PATH.way == 1
    span = (PATH.a_ns[queue] - PROPAGATION_NS).max() - PATH.b_ns[queue].min()
    found = plain["ways"]["b_to_a"]["utilisation"]["value"]
    assert found == pytest.approx(busy_ns / span, rel=1e-9)


def test_busy_periods_and_queue_repeat_each_cycle(plain: dict[str, Any]) -> None:
    """Busy periods are the bursts; they and the queue's level repeat every cycle."""
    found = plain["ways"]["b_to_a"]
    assert found["busy_periods"]["value"] == CYCLES
    assert found["busy_period_max"]["value"] == BURST
    assert found["busy_period_cycle"]["value"] == CYCLE_NS / 1e9
    assert found["busy_period_cycle_median"]["value"] == pytest.approx(CYCLE_NS / 1e9, rel=1 / 256)
    assert found["oscillation_period"]["value"] == pytest.approx(CYCLE_NS / 1e9, rel=0.02)
    # The first ACK comes during the first segment's transmission.
    assert found["queue_peak"]["value"] == BURST + 1


def test_the_pendulum_is_counted(plain: dict[str, Any]) -> None:
    """Shares and correlation of the queues' busy times agree with those on a fine grid."""
    grid = np.linspace(PATH.a_ns[4:].min() + 1e6, PATH.a_ns.max() - 2e7, 400_001).astype(np.int64)
    levels = []
    for way, (first, second) in enumerate(((PATH.a_ns, PATH.b_ns), (PATH.b_ns, PATH.a_ns))):
        rows = way == PATH.way
        entered = np.searchsorted(np.sort(first[rows]), grid, side="right")
        left = np.searchsorted(np.sort(second[rows] - PROPAGATION_NS), grid, side="right")
        levels.append(entered - left > 0)
    metrics = plain["metrics"]
    index = np.asarray(np.corrcoef(np.array(levels, dtype=np.float64)))[0, 1]
    assert metrics["pendulum_index"]["value"] == pytest.approx(index, abs=0.05)
    neither = (~levels[0] & ~levels[1]).mean()
    assert metrics["neither_busy"]["value"] == pytest.approx(neither, abs=0.05)


CLOCKS: dict[str, dict[str, Any]] = {
    "ahead": {"offset_ns": 3 * HOUR_NS + 17},
    "behind": {"offset_ns": -2 * HOUR_NS, "drift": 40e-6},
    "slow": {"offset_ns": 250_000_000, "drift": -90e-6},
}


@pytest.mark.parametrize("clock", CLOCKS)
def test_clocks_do_not_matter(plain: dict[str, Any], clock: str) -> None:
    """If one clock has offset and drift, every metric stays within the clock's resolution."""
    found = measured(PATH.capture("a"), PATH.capture("b", **CLOCKS[clock]))
    drift_ppm = CLOCKS[clock].get("drift", 0.0) * 1e6
    assert found["clock"]["drift_ppm"] == pytest.approx(drift_ppm, abs=0.2)
    assert found["clock"]["uncertainty_ns"] == pytest.approx(PROPAGATION_NS + ACK_NS, rel=1e-3)
    for flow in (0, 1):
        for name in ("compression_events", "compression_acks", "data_lost", "acks_lost"):
            assert value(found, name, flow) == value(plain, name, flow)
        for name in ("data_delay_min", "ack_delay_max"):
            assert value(found, name, flow) == pytest.approx(value(plain, name, flow), abs=1000)
    for way in ("a_to_b", "b_to_a"):
        assert found["ways"][way]["queue_peak"] == plain["ways"][way]["queue_peak"]


@pytest.mark.parametrize("chunk", [13, 100, 1001])
def test_chunks_do_not_matter(plain: dict[str, Any], chunk: int) -> None:
    """The document does not depend on how the captures are cut into chunks."""
    found = measured(PATH.capture("a", chunk=chunk), PATH.capture("b", chunk=2 * chunk))
    assert found == plain


def test_swapped_captures_swap_the_directions(plain: dict[str, Any]) -> None:
    """If captures are given in the other order, the order of taps is still found."""
    found = measured(PATH.capture("b"), PATH.capture("a"))
    assert found["flows"][0]["forward"]["data_go"] != plain["flows"][0]["forward"]["data_go"]
    for name in ("compression_events", "compression_bytes", "data_delay_min"):
        assert value(found, name) == value(plain, name)
    for name in ("queue_peak", "queue_mean", "utilisation"):
        assert found["ways"]["a_to_b"][name] == plain["ways"]["b_to_a"][name]


def test_without_identification() -> None:
    """IPv6 packets, without identification, match by numbers and order."""
    path = TwoWayPath(version=6)
    found = measured(path.capture("a"), path.capture("b"))
    assert found["matched"]["packets"] == len(path.packets)
    assert value(found, "compression_events") == CYCLES


def test_rewritten_identification(plain: dict[str, Any]) -> None:
    """If the path rewrites IP identifications, packets match without them, with a warning."""
    b = PATH.capture("b")
    b.whole.ip_id[:] = np.arange(len(b.whole)) % 60_000
    found = measured(PATH.capture("a"), b)
    assert found["matched"]["by"] == "addresses and ports"
    assert any("identifications" in text for text in found["warnings"])
    assert value(found, "compression_events") == value(plain, "compression_events")


def test_translated_addresses(plain: dict[str, Any]) -> None:
    """Behind a NAT packets match by their TCP headers, with a warning."""
    b = PATH.capture("b")
    b.flows.rows["source"][:, 15] += 77
    b.flows.rows["source_port"] += 1000
    found = measured(PATH.capture("a"), b)
    assert found["matched"]["packets"] == len(PATH.packets)
    assert any("translated" in text for text in found["warnings"])
    assert value(found, "compression_events", 1) == value(plain, "compression_events", 1)


def test_fourfold_captures(plain: dict[str, Any]) -> None:
    """A packet that one tap captured four times counts once."""
    found = measured(PATH.capture("a", copies=4), PATH.capture("b"))
    assert found["captures"][0]["copies"] == 3 * len(PATH.packets)
    for name in ("compression_events", "data_offered", "data_lost", "acks_lost"):
        assert value(found, name) == value(plain, name)


def _data_rows(flow: int, numbers: list[int]) -> np.ndarray[Any, Any]:
    rows = np.flatnonzero((PATH.packets.flow == flow) & (PATH.packets.payload_bytes > 0))
    return rows[numbers]


def test_what_a_capture_missed_is_not_lost() -> None:
    """Data that B's capture lacks and the receiver acknowledges counts as missed, not as lost."""
    keep = np.ones(len(PATH.packets), dtype=np.bool_)
    keep[_data_rows(0, [5, 100, 101, 102, 300])] = False
    found = measured(PATH.capture("a"), PATH.capture("b", keep))
    assert value(found, "data_missed") == 5
    assert value(found, "data_lost") == 0
    found = measured(PATH.capture("a", keep), PATH.capture("b"))
    assert value(found, "data_missed_first") == 5
    assert value(found, "data_lost") == 0


def test_lost_acks_are_counted() -> None:
    """ACKs that B's host sent and A did not see are lost, and make no congestion epoch."""
    keep = np.ones(len(PATH.packets), dtype=np.bool_)
    acks = np.flatnonzero((PATH.packets.flow == 0) & (PATH.packets.half == 1))
    keep[acks[20:25]] = False
    found = measured(PATH.capture("a", keep), PATH.capture("b"))
    assert value(found, "acks_lost") == 5
    assert found["metrics"]["congestion_epochs"]["value"] == 0
    assert found["metrics"]["drops_per_epoch"]["value"] is None


def test_only_the_common_time_counts() -> None:
    """Captures that overlap only in the middle lose nothing at their ends."""
    early, late = PATH.a_ns < PATH.a_ns.max() - 20 * CYCLE_NS, PATH.b_ns > PATH.a_ns.min() + 10**9
    found = measured(PATH.capture("a", early), PATH.capture("b", late, offset_ns=HOUR_NS))
    for flow in (0, 1):
        for name in ("data_lost", "acks_lost", "data_missed", "data_missed_first"):
            assert value(found, name, flow) == 0
    outside = [each["outside_common_time"] for each in found["captures"]]
    assert outside[0] > 0
    assert outside[1] > 0


@pytest.mark.parametrize("early", ["a", "b"])
def test_beginnings_that_do_not_overlap(early: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If one capture begins later, its first packets are found further on in the other."""
    monkeypatch.setattr(rough_offset, "HEAD_PACKETS", 40)
    late = PATH.a_ns > PATH.a_ns.min() + 10**9
    keep = {"a": late, "b": late} | {early: np.ones_like(late)}
    a = PATH.capture("a", keep["a"], chunk=20)
    b = PATH.capture("b", keep["b"], chunk=20, offset_ns=HOUR_NS)
    found = measured(a, b)
    assert found["matched"]["packets"] == late.sum()
    clock = found["clock"]
    assert abs(clock["offset_ns"] - HOUR_NS) < clock["uncertainty_ns"]
    assert value(found, "data_lost") == 0


def test_one_direction_only(plain: dict[str, Any]) -> None:
    """With taps of one direction each, and one clock, the queue is still known."""
    keep = PATH.way == 0
    found = measured(PATH.capture("a", keep), PATH.capture("b", keep), one_clock=True)
    assert any("nearer their senders" in text for text in found["warnings"])
    assert found["ways"]["a_to_b"]["queue_peak"] == plain["ways"]["a_to_b"]["queue_peak"]
    assert found["metrics"]["pendulum_index"]["value"] is None


# Packets lost on the path or missed by a capture, by evidence of ACKs and retransmissions.

WRAP = 1 << 32


def crossing(first_ns: int, second_ns: int, seq: int, **values: int) -> Rows:
    """Make a data packet, by default of 100 bytes."""
    row = np.zeros(1, dtype=CROSSING)
    row["first_ns"], row["second_ns"], row["seq"] = first_ns, second_ns, seq % WRAP
    row["payload_bytes"], row["kind"], row["flags"] = 100, Kind.NEW_DATA, 16
    for name, value in values.items():
        row[name] = value
    return row


def ack(time_ns: int, number: int, flow: int = 0) -> Rows:
    """Make a pure ACK of the other half that passes the receiver's tap at a time."""
    return crossing(
        time_ns,
        time_ns + 10,
        1,
        ack=number % WRAP,
        payload_bytes=0,
        kind=Kind.ACK,
        half=1,
        flow=flow,
    )


def decided(forward: list[Rows], backward: list[Rows]) -> tuple[int, int]:
    """Return how many data packets count as lost and as missed, for any steps of input."""
    nothing = np.zeros(0, dtype=CROSSING)
    lost = missed = 0
    holes = Holes()
    for ahead, back in zip(
        [*forward, nothing], [*backward, *[nothing] * len(forward)], strict=False
    ):
        arrived = ahead[ahead["second_ns"] != ABSENT]
        found = holes.add(
            Crossings(A_TO_B, ahead, arrived, FOREVER), Crossings(B_TO_A, back, back, FOREVER)
        )
        lost, missed = lost + len(found[0]), missed + len(found[1])
    return lost + len(holes.finish()), missed


def together(*rows: Rows) -> Rows:
    """Join several packets."""
    return np.concatenate(rows)


NOTHING = np.zeros(0, dtype=CROSSING)


@pytest.mark.parametrize("base", [1000, WRAP - 150])
def test_data_sent_again_were_lost(base: int) -> None:
    """If the second tap sees the bytes later, before any ACK, the first packet was lost."""
    first = together(crossing(0, ABSENT, base), crossing(1, 11, base + 100))
    again = together(crossing(50, 60, base, kind=Kind.RETRANSMISSION))
    assert decided([first, again], [NOTHING, ack(61, base + 200)]) == (1, 0)


@pytest.mark.parametrize("base", [1000, WRAP - 150])
def test_acknowledged_unseen_data_were_missed(base: int) -> None:
    """If an ACK covers bytes that the second tap never saw, its capture missed them."""
    data = together(
        crossing(0, 10, base - 100), crossing(1, ABSENT, base), crossing(2, 12, base + 100)
    )
    assert decided([data], [ack(20, base + 200)]) == (0, 1)
    assert decided([data, NOTHING], [NOTHING, ack(20, base + 200)]) == (0, 1)


def test_what_comes_first_decides() -> None:
    """A spurious retransmission after the ACK leaves a missed packet missed."""
    data = crossing(0, ABSENT, 1000)
    again = crossing(30, 40, 1000, kind=Kind.RETRANSMISSION)
    assert decided([together(data, again)], [ack(20, 1100)]) == (0, 1)
    assert decided([together(data, again)], [ack(50, 1100)]) == (1, 0)


def test_without_evidence_it_is_lost() -> None:
    """Data neither sent again nor fully acknowledged counts as lost."""
    assert decided([crossing(0, ABSENT, 1000)], [NOTHING]) == (1, 0)
    assert decided([crossing(0, ABSENT, 1000)], [ack(20, 1099)]) == (1, 0)


def test_connections_are_apart() -> None:
    """ACKs and data of another connection with equal numbers are no evidence."""
    data = together(crossing(0, ABSENT, 1000), crossing(5, 15, 1000, flow=1))
    assert decided([data], [ack(20, 1100, flow=1)]) == (1, 0)


def test_a_merged_retransmission_covers_several() -> None:
    """A retransmission of two packets' data as one shows both as lost."""
    data = together(crossing(0, ABSENT, 1000), crossing(1, ABSENT, 1100), crossing(2, 12, 1200))
    again = crossing(50, 60, 1000, payload_bytes=200, kind=Kind.RETRANSMISSION)
    assert decided([data, again], [NOTHING, ack(61, 1300)]) == (2, 0)
