"""A DTM channel's slots, transmissions and estimates, computed by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from capture_analysis.errors import AnalysisError
from hypothesis import given
from hypothesis import strategies as st
from support.dtm_host import RATE
from support.queue_columns import passage_of, queue_of
from support.synthetic_run import START_NS, edit_manifest, write_run

from twoway.links.dtm import Channel
from twoway.measure.analysis import Analysis
from twoway.measure.channel import Slots, estimates, read_slots, service_error_ns
from twoway.measure.links import dtm
from twoway.measure.run_folder import Run

CHANNEL: dict[str, Any] = {
    "framed": False,
    "min_slots": 1,
    "max_slots": 8192,
    "change_s": 1,
    "signalling_ms": 0,
    "rate": RATE,
}


def slots_of(changes: list[tuple[int, int]], **options: Any) -> Slots:
    """Make a step function from (time, slots) pairs; the allocator starts with the first."""
    times, slots = np.array(changes, dtype=np.int64).T
    channel = Channel.model_validate({**CHANNEL, **options})
    return Slots(times, slots, int(times[0]), channel)


def test_slots_by_hand() -> None:
    """4 slots for 10 ns, then 8, give their integral, its inverse, the mean and the extremes."""
    slots = slots_of([(0, 4), (10, 8), (1000, 2)])
    assert slots.count_at(np.array([0, 9, 10, 999, 1000])).tolist() == [4, 4, 8, 8, 2]
    assert slots.integral(np.array([0, 10, 20])).tolist() == [0, 40, 120]
    assert slots.times_of(np.array([1, 40, 41, 120])).tolist() == [1, 10, 11, 20]
    assert slots.mean(0, 20) == 6
    assert sorted(slots.counts_within(5, 1000)) == [4, 8]
    assert slots.changes(0, 1000).tolist() == [10]


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(1, 30)), min_size=1, max_size=8),
    st.integers(0, 300),
)
def test_when_is_the_first_time_of_an_integral(pairs: list[tuple[int, int]], wanted: int) -> None:
    """The time at which slots reach an integral is exact to the nanosecond."""
    gaps, numbers = zip(*pairs, strict=True)
    times = np.cumsum((0, *gaps[:-1])).tolist()
    slots = slots_of(list(zip(times, numbers, strict=True)))
    at = int(slots.times_of(np.array([wanted]))[0])
    assert slots.integral(np.array([at]))[0] >= wanted
    assert at == 0 or slots.integral(np.array([at - 1]))[0] < wanted


def test_transmission_over_a_reallocation() -> None:
    """1024 bytes at 4 slots for 2 ms, then 8, take 3 ms; a late packet has an error of 7 ns."""
    slots = slots_of([(0, 4), (2_000_000, 8)])
    passed = passage_of([0, 5_000_000], [3_000_000, 5_015_632], frame_bytes=[1024, 8])
    assert service_error_ns(queue_of(), slots, passed).tolist() == [0, 7]


def test_back_to_back_packets_share_their_fractions() -> None:
    """Three packets of 1514 bytes at 20 slots end at k * 1182812.5 ns, rounded up."""
    slots = slots_of([(0, 20)])
    passed = passage_of([0, 0, 0], [1_182_813, 2_365_625, 3_548_438], frame_bytes=[1514] * 3)
    assert service_error_ns(queue_of(), slots, passed).tolist() == [0, 0, 0]


def test_framed_packets_end_with_cycles() -> None:
    """1514 bytes fill 190 slots, 9.5 cycles of 20, and leave at the end of the tenth cycle.

    Cycles begin at 50 ns here; the third packet leaves a cycle late.
    """
    slots = slots_of([(0, 20)], framed=True)
    left = [50 + cycles * 125_000 for cycles in (10, 20, 30)]
    passed = passage_of([77, 77, 77], left, frame_bytes=[1514] * 3)
    assert service_error_ns(queue_of(), slots, passed).tolist() == [0, 0, 125_000]


def test_framed_cycles_are_those_of_the_first_departure() -> None:
    """Cycles follow from the first departure: only the packet 7 ns after its cycle is late."""
    passed = passage_of([77, 77], [1_250_050, 2_500_057], frame_bytes=[1514] * 2)
    slots = slots_of([(0, 20)], framed=True)
    assert service_error_ns(queue_of(), slots, passed).tolist() == [0, 7]


def test_a_packet_takes_whole_slots() -> None:
    """With 20 slots of 8 bytes, 160 bytes fill a cycle, and 161 take two."""
    slots, cycles = slots_of([(0, 20)], framed=True), [125_000, 250_000]
    for sizes, late in (([160, 160], [0, 0]), ([160, 161], [0, -125_000])):
        passed = passage_of([0, 0], cycles, frame_bytes=sizes)
        assert service_error_ns(queue_of(), slots, passed).tolist() == late


def test_a_sample_ends_before_the_traffic_does() -> None:
    """A sample that ends after the traffic does not count; a gigabyte in a sample is 80 Gbit/s."""
    passed = passage_of([0], [1], frame_bytes=[10**9])
    for stop_ns, measured in ((99_999_999, []), (100_000_000, [80_000_000_000])):
        found = estimates(queue_of(), slots_of([(0, 20)]), passed, stop_ns)
        assert found.measured_bit.tolist() == measured


def test_estimates_of_a_constant_rate() -> None:
    """62500 bytes in 100 ms are 5 Mbit/s; each sample closes an eighth of the estimate's gap."""
    arrivals = [k * 100_000_000 for k in range(30)]
    passed = passage_of(arrivals, [t + 1 for t in arrivals], frame_bytes=[62_500] * 30)
    made = estimates(queue_of(), slots_of([(0, 20)]), passed, 3_000_000_000)
    assert set(made.measured_bit) == {5_000_000}
    assert made.estimate_bit[:2].tolist() == [625_000, 1_171_875]
    # 3.68 Mbit/s after a second and 4.65 after two: 7.2 and 9.1 slots, plus 1.75, rounded up.
    assert list(zip(made.change_ns.tolist(), made.slots.tolist(), strict=True)) == [
        (1_000_000_000, 9),
        (2_000_000_000, 11),
    ]


def test_dropped_packets_count_as_arrivals_or_not() -> None:
    """`count: arrivals` includes dropped packets, `count: accepted` does not."""
    passed = passage_of([0, 1], [10, -1], frame_bytes=[1000, 2000])
    for count, bit in (("arrivals", 240_000), ("accepted", 80_000)):
        slots = slots_of([(0, 20)], rate={**RATE, "count": count})
        assert estimates(queue_of(), slots, passed, 100_000_000).measured_bit.tolist() == [bit]


def test_hold_on_loss_keeps_the_estimate() -> None:
    """For the hold time after a drop the estimate does not fall; then it falls."""
    rate = {**RATE, "hold_on_loss_ms": 150, "estimate_mbit": 1}
    passed = passage_of([50_000_000], [-1], frame_bytes=[1])
    made = estimates(queue_of(), slots_of([(0, 20)], rate=rate), passed, 300_000_000)
    assert made.estimate_bit.tolist() == [1_000_000, 875_000, 765_625]
    without = estimates(queue_of(), slots_of([(0, 20)], rate=rate), passage_of([], []), 100_000_000)
    assert without.estimate_bit.tolist() == [875_000]


def test_a_drop_at_the_end_of_a_sample_holds_the_next() -> None:
    """A drop at the instant of a sample's end affects the estimate one sample later."""
    rate = {**RATE, "hold_on_loss_ms": 150, "estimate_mbit": 1}
    passed = passage_of([100_000_000], [-1], frame_bytes=[1])
    made = estimates(queue_of(), slots_of([(0, 20)], rate=rate), passed, 300_000_000)
    assert made.estimate_bit.tolist() == [875_000, 875_000, 765_625]


def _recorded(folder: Path, rows: list[str]) -> Run:
    header = "# slots\ntime_ns,interface,handle,cause,from,to,wanted,estimate_bit,backlog_bytes\n"
    (folder / "qdisc/r1-reallocations.csv").write_text(header + "".join(r + "\n" for r in rows))
    edit_manifest(
        folder,
        lambda m: (
            m["queues"][0].update(reallocations="qdisc/r1-reallocations.csv"),
            m.update(profile={"directions": {"forward": {"queue_packets": 1000, "dtm": CHANNEL}}}),
        ),
    )
    return Run(folder)


def test_recording_is_read_from_before_the_start(tmp_path: Path) -> None:
    """Slots are known from set-up on; the last start event is when the allocator starts."""
    run = _recorded(
        write_run(tmp_path),
        [
            f"{START_NS - 50},r1-eth1,1:,allocator,20,2,2,0,0",
            f"{START_NS - 40},r1-eth0,1:,allocator,1,2,2,0,0",
            f"{START_NS + 10},r1-eth1,1:,operator,2,20,20,0,0",
            f"{START_NS + 10},r1-eth1,1:,start,20,20,20,0,0",
            f"{START_NS + 99},r1-eth1,1:,allocator,20,9,9,0,0",
        ],
    )
    slots = read_slots(run, run.queues[0])
    assert slots.start_ns == START_NS + 10
    assert slots.options == Channel.model_validate(CHANNEL)
    hour_ns = 3_600_000_000_000
    times = START_NS + np.array([-hour_ns, -60, -50, 10, 99])
    assert slots.count_at(times).tolist() == [20, 20, 2, 20, 9]
    assert slots.changes(slots.start_ns, START_NS + 1000).tolist() == [START_NS + 99]


def test_what_was_wanted_is_apart_from_what_was_given(tmp_path: Path) -> None:
    """A channel's decisions are kept apart from what its pool grants, denies or takes back."""
    run = _recorded(
        write_run(tmp_path),
        [
            f"{START_NS},r1-eth1,1:,start,4,4,4,0,0",
            f"{START_NS + 10},r1-eth1,1:,denied,4,6,9,0,0",
            f"{START_NS + 20},r1-eth1,1:,granted,6,9,9,0,0",
            f"{START_NS + 30},r1-eth1,1:,reclaimed,9,3,9,0,0",
            f"{START_NS + 40},r1-eth1,1:,allocator,3,3,3,0,0",
        ],
    )
    slots = read_slots(run, run.queues[0])
    times = START_NS + np.array([5, 10, 20, 30, 40])
    assert slots.count_at(times).tolist() == [4, 6, 9, 3, 3]
    assert slots.wanted.count_at(times).tolist() == [4, 9, 9, 9, 3]
    decided = slots.wanted.changes(START_NS, START_NS + 100) - START_NS
    assert decided.tolist() == [10, 40]


def test_recording_without_a_start_is_refused(tmp_path: Path) -> None:
    """A recording without the allocator's start is an error that names the file."""
    run = _recorded(write_run(tmp_path), [])
    with pytest.raises(AnalysisError, match=r"r1-reallocations\.csv: no start of r1-eth1"):
        read_slots(run, run.queues[0])


def test_a_start_outside_of_the_run_is_refused(tmp_path: Path) -> None:
    """A recording whose allocator starts years before the run, with samples since, is refused."""
    run = _recorded(write_run(tmp_path), ["5,r1-eth1,1:,start,3,3,3,0,0"])
    with pytest.raises(AnalysisError, match="r1-eth1 started outside of the run"):
        read_slots(run, run.queues[0])


def test_goodput_of_what_passes_over_capacity(tmp_path: Path) -> None:
    """Only data of the forward connection counts: 1.98 Mbit/s over the 2.048 Mbit/s of 4 slots."""
    analysis = Analysis(write_run(tmp_path))
    slots = slots_of([(START_NS, 4)])
    (found,) = dtm.capacity_goodput.measure(analysis, analysis.queues["forward"], slots)
    assert found == pytest.approx(1.98 / 2.048)


def test_slots_of_the_steady_window(tmp_path: Path) -> None:
    """From 10 to 30 ms the channel has 4, 8 and 6 slots for 5, 10 and 5 ms.

    The first change was at 2 ms. 6.5 slots are 3.328 Mbit/s; the channel transmits for 5850 of
    20000 us.
    """
    analysis = Analysis(write_run(tmp_path))
    ms = [(0, 20), (2, 4), (15, 8), (25, 6), (30, 1)]
    steps = [(START_NS + at * 1_000_000, slots) for at, slots in ms]
    found = dtm.slots.measure(analysis, analysis.queues["forward"], slots_of(steps))
    capacity = 6.5 * 0.512
    expected = (6.5, 4, 8, capacity, capacity * (1 - 5850 / 20000), 2, 0.002)
    assert tuple(found) == pytest.approx(expected, rel=1e-12)


def test_slots_that_never_change(tmp_path: Path) -> None:
    """A channel that keeps its slots has no first change."""
    analysis = Analysis(write_run(tmp_path))
    steps = slots_of([(START_NS, 4)])
    *_, changes, first = dtm.slots.measure(analysis, analysis.queues["forward"], steps)
    assert changes == 0
    assert np.isnan(first)
