"""Plateaus, periods and synchronisation of queues drawn by hand, and the kernel's counts."""

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from capture_analysis.congestion_epochs import congestion_epochs
from support.column_run import analysis_of, queue_view
from support.queue_columns import passage_of
from support.synthetic_run import write_run

from twoway.contract.network import ProgramRun
from twoway.measure.analysis import Analysis
from twoway.measure.metrics.marks import marks
from twoway.measure.metrics.programs import run_time
from twoway.measure.metrics.queue_length import BINS, period_s, plateau_levels, plateaus
from twoway.measure.metrics.synchronisation import phase, synchronisation
from twoway.measure.queues import Occupancy


def square_wave(high: int, low: int, half_ns: int, cycles: int, delay_ns: int = 0) -> Occupancy:
    """Make a queue that is alternately high and low for equal times, from a time on."""
    edges = np.arange(2 * cycles) * half_ns + delay_ns
    return Occupancy(edges, np.where(np.arange(2 * cycles) % 2, low, high))


def test_plateaus_of_any_queue() -> None:
    """For any queue, plateaus equal those that a packet-by-packet walk finds."""
    random = np.random.default_rng(3)
    for _ in range(50):
        packets = np.abs(np.cumsum(random.integers(-1, 2, 200)))
        time_ns = np.cumsum(random.integers(0, 9, 200))
        heights: list[int] = []
        start = 0
        for row in range(1, 200):
            here = packets[start : row + 1]
            if here.max() - here.min() > 1:
                highest = int(packets[start:row].max())
                if time_ns[row] - time_ns[start] >= 20 and heights[-1:] != [highest]:
                    heights.append(highest)
                start = row
        assert plateaus(Occupancy(time_ns, packets), 20).tolist() == heights
    assert plateaus(Occupancy(time_ns[:0], packets[:0]), 20).tolist() == []


def _plateau_levels(steps: list[tuple[int, int]], payload: int = 1) -> tuple[float, ...]:
    """Return the metrics of a queue with these levels from 10 to 400 us."""
    us, levels = np.array(steps, dtype=np.int64).T
    view = queue_view(
        passage_of([0] * 3, [0] * 3, [payload, payload, 0], frame_bytes=[5, 10, 90]),
        all_packets=Occupancy(us * 1000, levels),
    )
    analysis = analysis_of(steady_ns=10_000, stop_ns=400_000)
    return tuple(plateau_levels.measure(analysis, view))


def test_levels_of_plateaus() -> None:
    """Plateaus of 5, 20, 8, 30, 4 and 13: those of 20 and 30 are high, those of 8 and 4 low.

    The level of 50 lasts two transmissions and is no plateau; neither are stretches cut by the
    steady window.
    """
    steps = [(0, 90), (20, 5), (50, 20), (90, 8), (130, 50), (150, 30), (200, 4), (240, 13)]
    assert _plateau_levels([*steps, (290, 9)]) == (25, 6)


def test_plateaus_without_neighbours() -> None:
    """The first and the last plateau are neither high nor low; without data no plateau exists."""
    assert np.isnan(_plateau_levels([(20, 5), (50, 20), (90, 25), (130, 50), (170, 0)])).all()
    high, low = _plateau_levels([(20, 5), (50, 20), (90, 2), (130, 7)])
    assert high == 20
    assert np.isnan(low)
    high, low = _plateau_levels([(20, 20), (50, 5), (90, 22), (130, 7)])
    assert np.isnan(high)
    assert low == 5
    steps = [(20, 20), (50, 5), (90, 22), (130, 7), (170, 9)]
    assert np.isfinite(_plateau_levels(steps)).all()
    assert np.isnan(_plateau_levels(steps, payload=0)).all()


def test_square_wave_period_to_a_bin() -> None:
    """A square wave's period is found to within a bin, and not a multiple of it."""
    wave = square_wave(20, 3, 500_000_000, 50)
    bins = round(BINS / 50)
    assert period_s(wave, 0, 50_000_000_000) == pytest.approx(bins * 50 / BINS, rel=1e-12)
    assert period_s(wave, 10_000_000_000, 14_000_000_000) == 1


def test_period_of_a_fading_wave() -> None:
    """The period of a wave that falls over six cycles is one cycle, not several."""
    wave = square_wave(20, 0, 500_000_000, 6)
    heights = wave.packets - wave.packets * np.arange(12) // 24
    fading = Occupancy(wave.time_ns, heights)
    assert period_s(fading, 0, 6_000_000_000) == pytest.approx(1, abs=12 / BINS)


def test_half_a_wave_has_no_period() -> None:
    """A queue that rises once within the window correlates at no lag above zero."""
    once = Occupancy(np.array([0, 500_000_000]), np.array([0, 9]))
    assert np.isnan(period_s(once, 0, 1_000_000_000))


def test_constant_has_no_period() -> None:
    """A queue that never changes has no period."""
    still = Occupancy(np.array([0]), np.array([4]))
    assert np.isnan(period_s(still, 0, 1_000_000_000))


@pytest.mark.parametrize(("delay_ns", "index"), [(0, 1), (500, -1), (250, 0)])
def test_synchronisation_in_phase_is_one(delay_ns: int, index: int) -> None:
    """The index is 1 in phase, -1 half a cycle later and 0 a quarter later, each with error 0."""
    first = square_wave(9, 1, 500, 200)
    second = square_wave(30, 20, 500, 201, delay_ns - 1000)
    found, error = synchronisation(first, second, 0, 100_000)
    assert found == pytest.approx(index, abs=1e-9)
    assert error == pytest.approx(0, abs=1e-9)


def test_synchronisation_error() -> None:
    """A queue in phase for half of the time, then out of phase, has index 0, with error 1/3."""
    first = square_wave(9, 1, 500, 100)
    turned = np.where(first.time_ns < 50_000, first.packets, 10 - first.packets)
    found, error = synchronisation(first, Occupancy(first.time_ns, turned), 0, 100_000)
    assert found == pytest.approx(0, abs=1e-9)
    assert error == pytest.approx(1 / 3)  # a deviation of sqrt(10/9), divided by sqrt(10)


def test_two_queues_are_compared() -> None:
    """Metrics of phase and of joint use exist only for two queues."""
    wave = queue_view(all_packets=square_wave(9, 0, 500, 200))
    for number in (1, 2, 3):
        queues = {str(at): wave for at in range(number)}
        analysis = analysis_of(queues=queues, stop_ns=100_000)
        found = phase.measure(analysis)
        if number == 2:
            assert found == pytest.approx([1, 1, 1, 0, 1, 0.5, 0.5], abs=1e-9)
        else:
            assert len(found) == 7
            assert np.isnan(found).all()


def test_epoch_period() -> None:
    """The period is the mean time from the first drop of an epoch to that of the next."""
    time_ns = np.array([0, 1, 2, 10, 30, 31]) * 1_000_000_000
    epochs = congestion_epochs(time_ns, np.zeros(6, dtype=np.int64), 2_000_000_000)
    assert epochs.drops.tolist() == [3, 1, 2]
    assert epochs.period_s() == 15
    assert [b - a for a, b in pairwise(epochs.start_ns // 1_000_000_000)] == [10, 20]


# Metrics from the kernel's counts, and from a program's times: marks and run times.


def _marked(folder: Path, before: Any, after: Any) -> float:
    """Return the marks of forward's queue from counts of its qdiscs before and after traffic."""
    write_run(folder)
    for when, counts in (("before", before), ("after", after)):
        (folder / f"qdisc/r1-{when}.json").write_text(json.dumps(counts))
    analysis = Analysis(folder)
    (found,) = marks.measure(analysis, analysis.queues["forward"])
    return found


def test_marks_are_added_over_parts_of_a_qdisc(tmp_path: Path) -> None:
    """Marks count from the start of traffic, as the sum over a qdisc's parts."""
    dev = {"dev": "r1-eth1"}
    before = [{**dev, "marked": 2}, {**dev, "ecn_mark": 0}]
    after = [
        {**dev, "marked": 5, "early": 70},
        {**dev, "tins": [{"ecn_mark": 10}, {"ecn_mark": 3, "drops": 9}], "ecn_mark": 1},
        {"dev": "r1-eth0", "marked": 1000},
    ]
    assert _marked(tmp_path, before, after) == 5 - 2 + 10 + 3 + 1


def test_a_queue_without_such_a_count_has_no_marks(tmp_path: Path) -> None:
    """A drop-tail queue has no count of marks; the metric is undefined, not 0."""
    assert np.isnan(_marked(tmp_path, [{"dev": "r1-eth1"}], [{"dev": "r1-eth1", "drops": 3}]))


def test_a_program_runs_from_its_start_to_its_end() -> None:
    """A program that ends by itself has a run time; others have none."""
    program = ProgramRun(
        name="a",
        host="h1",
        command=("true",),
        start_ns=2_000_000_000,
        by_itself=True,
        end_ns=2_500_000_001,
        exit_status=0,
    )
    analysis = analysis_of()
    assert run_time.measure(analysis, program) == pytest.approx((0.500000001,), rel=1e-12)
    asked = program.model_copy(update={"by_itself": False})
    assert math.isnan(run_time.measure(analysis, asked)[0])
