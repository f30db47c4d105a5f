"""Links: when they transmit, who shares them, clock resolutions, and gaps like those of a link."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from capture_analysis.columns import concatenate
from capture_analysis.facts.busy_series import BINS, BusySeries
from capture_analysis.facts.fact_finder import clock_resolution_ns
from capture_analysis.facts.facts import Evidence, Facts
from capture_analysis.facts.gap_modes import modes
from capture_analysis.flow_table import FlowTable
from capture_analysis.one_capture.single import measure
from hypothesis import given
from hypothesis import strategies as st
from measured_captures import ColumnCapture
from simulated_path import Connection, Link, Place, Simulation

# The time in which two links transmit, in bins of time.

BIN_NS = 1 << 17
TIMES = st.lists(st.integers(0, 3 * BINS * BIN_NS), min_size=2, max_size=30)


def series(times: list[int], link: int = 0, service_ns: int = 1000) -> BusySeries:
    """Make a series with one packet at each time."""
    made = BusySeries()
    time_ns = np.array(times, dtype=np.int64)
    made.add(np.full(len(times), link), time_ns, np.full(len(times), service_ns))
    return made


@given(TIMES, st.integers(0, 30), st.booleans())
def test_parts_merge(times: list[int], cut: int, turned: bool) -> None:
    """Two parts merge, in either order, into the series of the whole."""
    whole, parts = series(times), [series(times[:cut]), series(times[cut:])]
    one, two = parts[::-1] if turned else parts
    one.merge(two)
    expected, found = whole.shares(), one.shares()
    assert found.width_ns == expected.width_ns
    assert np.array_equal(found.busy, expected.busy)


def test_bins_are_bounded() -> None:
    """A day takes no more memory than a second."""
    assert len(series([0, 86_400_000_000_000])) <= BINS


def test_what_is_too_much_waits() -> None:
    """Packets that arrive at once keep the link busy for the sum of their transmission times."""
    made = series([0, 0, 0], service_ns=BIN_NS)
    made.add(np.zeros(1, np.int64), np.array([9 * BIN_NS]), np.array([BIN_NS // 2]))
    assert made.shares().busy[0].tolist() == [1, 1, 1, 0, 0, 0, 0, 0, 0, 0.5]


def test_pauses_are_left_out() -> None:
    """A second in which neither link transmits does not count as time of the links."""
    second = 1_000_000_000
    assert made_of_pause(second // 2) > 3000
    assert made_of_pause(2 * second) == pytest.approx(2, abs=2)


def made_of_pause(pause_ns: int) -> int:
    """Return the number of bins that count, for two packets a given time apart."""
    return int(series([0, pause_ns]).shares().busy.shape[1])


# The resolution of a clock, from its times.


@pytest.mark.parametrize("unit_ns", [1_000, 1_000_000, 10_000_000, 15_625_000])
def test_unit_found_despite_odd_times(unit_ns: int) -> None:
    """A clock's unit is found for any offset, though one time of a thousand is no multiple."""
    random = np.random.default_rng(unit_ns % 97)
    time_ns = 946_684_800_123_456_789 + np.cumsum(random.integers(0, 40, 1000)) * unit_ns
    time_ns[300] += 7
    assert clock_resolution_ns(time_ns) == unit_ns


def test_odd_times_at_the_start() -> None:
    """One step of a hundred may be no multiple of the unit, even if all of these come first."""
    time_ns = np.arange(1001) * 1_000_000
    time_ns[1:10:2] += 7
    assert clock_resolution_ns(time_ns) == 1_000_000
    time_ns[11] += 7
    assert clock_resolution_ns(time_ns) == 1


def test_fine_clock() -> None:
    """The times of a nanosecond clock have no common divisor, so its resolution is 1 ns."""
    random = np.random.default_rng(1)
    assert clock_resolution_ns(np.cumsum(random.integers(1, 10**6, 1000))) == 1


def test_pace_of_a_link_is_no_clock() -> None:
    """Segments paced at 1.5 ms, with one other step in 200, come from a nanosecond clock."""
    steps = np.tile([0, 1_500_000, 1_500_000, 3_000_000], 500)
    steps[::200] = 1_595_903
    assert clock_resolution_ns(946_684_800_000_000_257 + np.cumsum(steps)) == 1


def test_pace_on_a_coarse_clock() -> None:
    """A steady pace of 20 ms gives the clock a resolution that divides it, 10 ms."""
    assert clock_resolution_ns(np.arange(1000) * 20_000_000) == 10_000_000


def test_times_that_many_share() -> None:
    """If a thousand packets have only five times, their shortest step is the resolution."""
    time_ns = np.repeat(np.array([0, 10, 20, 40, 50]) * 1_000_000, 200)
    assert clock_resolution_ns(time_ns) == 10_000_000


def test_too_few_times() -> None:
    """A few times do not show the clock's resolution."""
    assert clock_resolution_ns(np.arange(10) * 10**7) == 1


# The frequency with which random gaps look like those of a link.

Random = np.random.Generator
GAPS = 400_000
FAMILIES: dict[str, Callable[[Random, tuple[int, int]], np.ndarray]] = {
    "exponential": lambda random, shape: random.exponential(1, shape),
    "uniform": lambda random, shape: random.uniform(0, 2, shape),
    "lognormal, sigma 2": lambda random, shape: random.lognormal(0, 2, shape),
    "lognormal, sigma 0.5": lambda random, shape: random.lognormal(0, 0.5, shape),
    "lognormal, sigma 0.2": lambda random, shape: random.lognormal(0, 0.2, shape),
    "Pareto": lambda random, shape: random.pareto(1.5, shape),
}


def alarms(gaps: np.ndarray) -> float:
    """Return the share of samples (rows of gaps) whose mode counts as a link's."""
    samples, count = gaps.shape
    gap_ns = np.maximum(1e6 * gaps, 1).astype(np.int64).ravel()
    group = np.repeat(np.arange(samples), count)
    return float(modes(group, np.full(len(gap_ns), 12_000.0), gap_ns, samples, 0.5).true.mean())


@pytest.mark.parametrize("count", [20, 50, 200, 2000])
@pytest.mark.parametrize("family", FAMILIES)
def test_random_gaps_are_no_link(family: str, count: int) -> None:
    """At most one in 500 samples of random gaps counts as having a mode."""
    random = np.random.default_rng(len(family) + count)
    samples = max(GAPS // count, 1000)
    assert alarms(FAMILIES[family](random, (samples, count))) <= 0.002


@pytest.mark.parametrize("count", [50, 200, 2000])
def test_a_link_among_random_gaps(count: int) -> None:
    """If half of the gaps are a link's, within 2 %, nearly every sample has a mode."""
    random = np.random.default_rng(count)
    gaps = random.exponential(4, (100, count))
    gaps[:, ::2] = random.normal(1, 0.01, gaps[:, ::2].shape)
    assert alarms(gaps) >= 0.95


# Connections that share a link, and those that do not, in captures of simulated paths.


def download(
    rate_bit: float, place: Place, *hosts: int, begin_ns: int = 0, window: int = 60
) -> ColumnCapture:
    """Simulate transfers to hosts behind one link."""
    links = Link(rate_bit, 5_000_000, 5_000_000), Link(rate_bit, 5_000_000, 5_000_000)
    transfers = [
        Connection(
            hosts=host, window=window, segments=800, begin_ns=begin_ns + 700_000 * number, every=2
        )
        for number, host in enumerate(hosts)
    ]
    return Simulation(links, transfers, place).run().captured()


def merged(*captures: ColumnCapture) -> ColumnCapture:
    """Merge captures of different hosts into one."""
    rows, tables, flows = [], [], 0
    for each in captures:
        rows.append(replace(each.whole, flow=each.whole.flow + np.uint32(flows)))
        tables.append(each.flows.rows)
        flows += len(each.flows)
    whole = concatenate(rows)
    order = np.argsort(whole.time_ns, kind="stable")
    return ColumnCapture(whole.where(order), FlowTable(np.concatenate(tables)))


def facts(capture: ColumnCapture) -> Facts:
    """Return the facts of a capture."""
    return measure(capture).facts


@pytest.mark.parametrize("place", ["near", "middle", "far"])
def test_clients_of_one_server_have_rates_of_their_own(place: Place) -> None:
    """Two clients behind links of 7 and 40 Mbit/s have the rates that each has alone."""
    slow, fast = download(7e6, place, 1), download(40e6, place, 2, begin_ns=1_234_567)
    found = facts(merged(slow, fast))
    alone = [facts(slow), facts(fast)]
    assert [each.rate_bit[0] for each in alone] == pytest.approx([7e6, 40e6], rel=0.01)
    assert found.rate_bit[::2].tolist() == pytest.approx([7e6, 40e6], rel=0.01)
    # The slow path's pace of ACKs may be a share of the fast one's link.
    assert found.rate_evidence[2] == alone[1].rate_evidence[0]
    assert Evidence.GUESSED <= found.rate_evidence[0] <= alone[0].rate_evidence[0]
    assert found.link[[0, 2]].tolist() == [-1, -1]


@pytest.mark.parametrize("place", ["near", "far"])
def test_a_link_to_several_hosts_is_shared(place: Place) -> None:
    """Transfers to different hosts that follow each other at one pace share a link."""
    found = facts(download(20e6, place, 1, 2, 3))
    assert found.link[::2].tolist() == [0, 0, 0]
    assert found.rate_bit[::2].tolist() == pytest.approx([20e6] * 3, rel=0.01)


def test_one_of_three_paths_has_another_link() -> None:
    """Two of three clients share a link, and the third has a rate of its own."""
    capture = merged(download(20e6, "far", 1, 2), download(3e6, "far", 3, begin_ns=1_234_567))
    found = facts(capture)
    assert found.rate_bit[::2].tolist() == pytest.approx([20e6, 20e6, 3e6], rel=0.01)


def test_connections_of_a_path_share_its_link() -> None:
    """Connections between two hosts have a number, whatever others the capture has."""
    found = facts(merged(download(20e6, "far", 1, 1), download(3e6, "far", 3, begin_ns=1_234_567)))
    assert found.link[0] == found.link[2] >= 2
    assert found.link[4] == -1
    assert found.rate_bit[[0, 2, 4]].tolist() == pytest.approx([20e6, 20e6, 3e6], rel=0.01)


def test_a_train_that_the_path_spreads_measures_its_link() -> None:
    """Data sent together whose ACKs keep a pace measure a link, though nothing ever pauses."""
    assert facts(download(8e6, "near", 1, window=30)).rate_evidence[0] == Evidence.MEASURED
