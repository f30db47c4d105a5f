"""ACK compression: pairs of ACKs, ratios, bunches and factors; and epochs of drops."""

from itertools import pairwise

import numpy as np
import pytest
from capture_analysis.ack_compression import (
    AckTimes,
    ack_spacing_ratio,
    bunch_sizes,
    compression_factors,
    factor_bound,
    match_acks,
)
from capture_analysis.columns import FLAG_ACK, FLAG_FIN, FLAG_RST, FLAG_SYN
from capture_analysis.congestion_epochs import SEVERAL, CongestionEpochs, congestion_epochs
from capture_analysis.errors import AnalysisError
from conversation import packets
from hypothesis import given
from hypothesis import strategies as st

# ACK compression: pairs of ACKs, ratios, bunches and factors.

TIMES = st.lists(st.integers(0, 1000)).map(sorted)


def acks(sent_ns: list[int], arrived_ns: list[int]) -> AckTimes:
    """Make ACKs of 54 bytes."""
    sent, arrived = np.array(sent_ns), np.array(arrived_ns)
    return AckTimes(sent, arrived, np.full(len(sent), 54))


def test_match_pairs_acks() -> None:
    """ACKs pair by their identifying fields, in order of sending; missing ones are counted."""
    sent = packets(time_ns=[10, 20, 30, 40], ip_id=[1, 2, 3, 4], ack=[5, 5, 5, 9])
    arrived = packets(time_ns=[110, 130, 140], ip_id=[1, 3, 4], ack=[5, 5, 9])
    times, lost = match_acks(sent, arrived)
    assert times.sent_ns.tolist() == [10, 30, 40]
    assert times.arrived_ns.tolist() == [110, 130, 140]
    assert lost == 1


def test_match_keeps_pure_acks() -> None:
    """The spacing of data, SYN, FIN and RST does not count."""
    columns = {
        "ip_id": [1, 2, 3, 4, 5],
        "payload_bytes": [0, 100, 0, 0, 0],
        "flags": [FLAG_ACK, FLAG_ACK, FLAG_SYN | FLAG_ACK, FLAG_FIN | FLAG_ACK, FLAG_RST],
    }
    sent = packets(time_ns=[1, 2, 3, 4, 5], frame_bytes=[54, 154, 54, 54, 54], **columns)
    times, lost = match_acks(sent, packets(time_ns=[11, 12, 13, 14, 15], **columns))
    assert times.sent_ns.tolist() == [1]
    assert times.arrived_ns.tolist() == [11]
    assert times.frame_bytes.tolist() == [54]
    assert lost == 0


def test_match_ignores_earlier_arrivals() -> None:
    """Arrivals of ACKs from before the window are neither paired nor lost."""
    sent = packets(time_ns=[30], ip_id=[3])
    times, lost = match_acks(sent, packets(time_ns=[21, 32], ip_id=[2, 3]))
    assert times.arrived_ns.tolist() == [32]
    assert lost == 0


def test_ratio_by_hand() -> None:
    """Kept spacing has ratio 1, compressed below 1, stretched above 1, reordered below 0."""
    ratio = ack_spacing_ratio(np.array([0, 10, 20, 30, 40]), np.array([100, 110, 111, 131, 126]))
    assert ratio.tolist() == [1.0, 0.1, 2.0, -0.5]


def test_ratio_of_a_tie_is_undefined() -> None:
    """ACKs sent at the same instant have no ratio; their neighbours keep theirs."""
    ratio = ack_spacing_ratio(np.array([0, 10, 10, 20]), np.array([5, 10, 12, 32]))
    assert np.isnan(ratio).tolist() == [False, True, False]
    assert ratio[[0, 2]].tolist() == [0.5, 2.0]


@pytest.mark.parametrize("count", [0, 1])
def test_ratio_needs_two(count: int) -> None:
    """Fewer than two ACKs have no spacing."""
    times = np.arange(count)
    assert ack_spacing_ratio(times, times).tolist() == []


def test_ratio_of_unequal_lengths() -> None:
    """Columns of different lengths are an error that names the longer one."""
    with pytest.raises(AnalysisError, match="3 sent ACKs but 2 arrived"):
        ack_spacing_ratio(np.arange(3), np.arange(2))


def test_ratio_of_unsorted() -> None:
    """ACKs out of time order are an error, not a negative spacing."""
    with pytest.raises(AnalysisError, match="not in time order"):
        ack_spacing_ratio(np.array([0, 2, 1]), np.arange(3))


def test_bunches_by_hand() -> None:
    """A gap of exactly two ACK times is within a bunch; one ns more ends it."""
    arrived = np.array([0, 50, 150, 251, 1000, 1001])
    assert bunch_sizes(arrived, 50.0).tolist() == [3, 1, 2]


@given(TIMES, st.integers(0, 50))
def test_bunches_by_walking(arrived: list[int], service: int) -> None:
    """Bunches equal those that a walk over the gaps finds, and add up to all ACKs."""
    sizes: list[int] = [1] if arrived else []
    for before, after in pairwise(arrived):
        if after - before <= 2 * service:
            sizes[-1] += 1
        else:
            sizes.append(1)
    got = bunch_sizes(np.array(arrived, dtype=np.int64), service).tolist()
    assert got == sizes
    assert sum(got) == len(arrived)


def test_factors_by_hand() -> None:
    """Each compressed gap between ACKs of back-to-back data has a factor; no other gap has."""
    sent = [0, 500, 1000, 1500, 2025, 2551, 3051]
    arrived = [0, 50, 550, 924, 974, 1024, 1024]
    # In order: 500/50; kept; 500/374, a ratio of 0.748; 525/50, 5 % over; 526 is a pause; a tie.
    factors = compression_factors(acks(sent, arrived), 500.0)
    assert factors.tolist() == [1 / 0.1, 1 / 0.748, 1 / (50 / 525)]


def test_threshold_is_not_compressed() -> None:
    """A gap that shrinks to exactly 0.75 is not compressed: clocks and jitter may cause it."""
    assert compression_factors(acks([0, 500], [0, 375]), 500.0).tolist() == []


def test_no_acks_no_factors() -> None:
    """Without ACKs there are no factors, no bunches and no error."""
    nothing = acks([], [])
    assert compression_factors(nothing, 500.0).tolist() == []
    assert bunch_sizes(nothing.arrived_ns, 50.0).tolist() == []


@given(st.lists(st.integers(500, 900), min_size=1), st.data())
def test_factors_respect_the_bound(sent_gaps: list[int], data: st.DataObject) -> None:
    """If ACKs and segments are at least a transmission time apart, factors keep the bound."""
    gaps = [data.draw(st.integers(50, gap)) for gap in sent_gaps]
    times = acks(np.cumsum([0, *sent_gaps]).tolist(), np.cumsum([0, *gaps]).tolist())
    factors = compression_factors(times, 500.0)
    assert factors.max(initial=0) <= 1.05 * factor_bound(500.0, 50.0)


def test_bound_is_a_ratio_of_times() -> None:
    """The bound is a segment's transmission time over an ACK's, each on its own bottleneck."""
    assert factor_bound(500.0, 50.0) == 10.0


# Congestion epochs, from the times of drops and their victims.

GAP_NS = 10


def epochs(*drops: tuple[int, int]) -> CongestionEpochs:
    """Return the epochs of drops given as (time, victim), with a gap of 10 ns."""
    time_ns, victim = np.array(drops, dtype=np.int64).reshape(-1, 2).T
    return congestion_epochs(time_ns, victim, GAP_NS)


def as_rows(found: CongestionEpochs) -> list[tuple[int, int, int]]:
    """Return start, number of drops and victim of each epoch."""
    columns = (found.start_ns.tolist(), found.drops.tolist(), found.victim.tolist())
    return list(zip(*columns, strict=True))


def test_gap_separates() -> None:
    """Drops exactly the gap apart are one epoch; a nanosecond more makes two."""
    assert as_rows(epochs((5, 0), (15, 0))) == [(5, 2, 0)]
    assert as_rows(epochs((5, 0), (16, 0))) == [(5, 1, 0), (16, 1, 0)]


def test_epoch_has_one_victim_or_several() -> None:
    """An epoch has the victim of all its drops, or "several"."""
    found = epochs((0, 1), (1, 1), (20, 0), (21, 1), (22, 0), (50, 2))
    assert as_rows(found) == [(0, 2, 1), (20, 3, SEVERAL), (50, 1, 2)]
    assert found.single_victim_share() == pytest.approx(2 / 3)


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 2)), min_size=1, max_size=30))
def test_by_walking(drops: list[tuple[int, int]]) -> None:
    """Epochs equal those found by walking from drop to drop."""
    drops.sort()
    clusters = [[drops[0]]]
    for before, drop in pairwise(drops):
        if drop[0] - before[0] > GAP_NS:
            clusters.append([])
        clusters[-1].append(drop)
    expected = [
        (
            cluster[0][0],
            len(cluster),
            cluster[0][1] if len({victim for _, victim in cluster}) == 1 else SEVERAL,
        )
        for cluster in clusters
    ]
    assert as_rows(epochs(*drops)) == expected


@pytest.mark.parametrize(
    ("victims", "share"), [([0, 1, 0, 1], 1), ([0, 0, 1], 0.5), ([0, 0], 0), ([0, SEVERAL, 1], 0)]
)
def test_epochs_with_different_victims_alternate(victims: list[int], share: float) -> None:
    """Two successive epochs alternate if each has one victim, and these differ."""
    columns = np.arange(len(victims)), np.ones(len(victims), dtype=np.int64)
    assert CongestionEpochs(*columns, np.array(victims)).alternating_share() == share


def test_window_takes_starts() -> None:
    """An epoch, with all its drops, belongs to the window in which it starts."""
    found = epochs((5, 0), (14, 1), (40, 0), (45, 0)).select_window(6, 41)
    assert as_rows(found) == [(40, 2, 0)]


def test_without_drops() -> None:
    """Without drops there is no epoch and no share; a single epoch cannot alternate."""
    none = epochs()
    assert as_rows(none) == []
    assert np.isnan(none.single_victim_share())
    assert np.isnan(none.alternating_share())
    assert np.isnan(epochs((0, 0)).alternating_share())
