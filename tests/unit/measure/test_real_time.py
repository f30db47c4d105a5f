"""On a clock that goes on while the machine works, bounds come from what the run measured."""

import dataclasses
import html
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import twoway
from synthetic_run import (
    DELAY_US,
    FORWARD,
    KERNEL_READ_NS,
    REVERSE,
    START_NS,
    bounds,
    edit_json,
    expectation,
    write_run,
)

from twoway.contract.metrics import FidelityRow
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute
from twoway.measure.fidelity import fidelity
from twoway.measure.real_time import ClockError, departure_error_ns, quantile


def real_time(tmp_path: Path, **tables: Any) -> Path:
    """The run by hand, as if on a machine whose clock went on."""
    folder = write_run(tmp_path, **tables)
    edit_json(folder / "manifest.json", lambda m: m.update(clock_source="host"))
    return folder


def late_by(us: int) -> list[Any]:
    """The forward timetable with the last lone segment late."""
    number = FORWARD.index(next(c for c in FORWARD if c.number == 11))
    late = dataclasses.replace(FORWARD[number], left_us=(FORWARD[number].left_us or 0) + us)
    return [*FORWARD[:number], late, *FORWARD[number + 1 :]]


def test_measured_errors_are_rows(tmp_path: Path) -> None:
    """What timers are late and what the machine adds are rows of their own, each with a unit."""
    rows = {row.check: row for row in fidelity(Analysis(real_time(tmp_path)))}
    timers = rows["timers and samples late in 99 %, ns"]
    assert timers.value == KERNEL_READ_NS
    assert timers.supported
    assert rows["host delay in 99 %, ns"].value == 0
    assert rows["first: ack spacing off in 99 %, ns"].value == 0


def test_departures_are_held_against_the_timers(tmp_path: Path) -> None:
    """A departure may be as late as timers were measured to be, and the bound says why."""
    folder = real_time(tmp_path, forward=late_by(1))
    analysis = Analysis(folder)
    row = next(r for r in fidelity(analysis) if r.check.startswith("forward: departures"))
    assert row.value == departure_error_ns(analysis.queues["forward"])
    assert row.bound == f"real time: at most {KERNEL_READ_NS}, as timers are late"
    assert row.pass_ == ((row.value or 0) <= KERNEL_READ_NS)


def test_departures_later_than_timers_fail(tmp_path: Path) -> None:
    """Departures that are later than timers explain are a fault of the testbed."""
    folder = real_time(tmp_path, forward=late_by(10_000))
    row = next(r for r in fidelity(Analysis(folder)) if r.check.startswith("forward: dep"))
    assert (row.value or 0) > KERNEL_READ_NS
    assert not row.pass_


def kernel_queue(folder: Path) -> FidelityRow:
    """The check of the captures' queue forward against the kernel's."""
    rows = fidelity(Analysis(folder))
    return next(row for row in rows if row.check.startswith("forward: captures' queue"))


@pytest.mark.parametrize(("times", "off"), [(1, 1), (100, 0)])
def test_kernel_counts_otherwise(tmp_path: Path, times: int, off: int) -> None:
    """A kernel sample that is off by one counts unless it is one in a hundred."""
    folder = real_time(tmp_path)
    path = folder / "sockets/queues.csv"
    head, columns, *rows = path.read_text().splitlines(keepends=True)
    wrong = [row.replace("r1-eth1,4\n", "r1-eth1,3\n") for row in rows]
    path.write_text("".join([head, columns, *rows * (times - 1), *wrong]))
    row = kernel_queue(folder)
    assert (row.value, row.pass_) == (off, off == 0)
    assert row.bound == "real time: 0 in 99 %, within 0 ns"


def test_kernel_counts_while_the_machine_works(tmp_path: Path) -> None:
    """A sample may have what the queue had within the host delay."""
    folder = real_time(tmp_path)
    path = folder / "sockets/queues.csv"
    path.write_text(path.read_text().replace("r1-eth1,4\n", "r1-eth1,3\n"))
    assert not kernel_queue(folder).pass_
    # Packets that arrive half a service time later than the link says.
    edit_json(
        folder / "manifest.json",
        lambda m: m["queues"][0].update(delay_ns=DELAY_US * 1000 - 250_000),
    )
    row = kernel_queue(folder)
    assert row.pass_
    assert row.bound == "real time: 0 in 99 %, within 500000 ns"


def largest_factor(folder: Path) -> tuple[float, str]:
    """The largest compression factor of the first connection, and its bound."""
    rows = fidelity(Analysis(folder))
    (row,) = (r for r in rows if r.check == "first: largest compression factor")
    assert row.pass_
    return row.value or 0, row.bound


def test_acks_delayed_on_the_way(tmp_path: Path) -> None:
    """Acks may arrive as much closer as one of them was later than another on its way."""
    assert largest_factor(real_time(tmp_path / "a")) == (10, "real time: at most 10.50")
    acks = {c.left_us: c for c in REVERSE if (c.connection, c.kind) == ("first", "ack")}
    followed = next(ack for left_us, ack in acks.items() if left_us and left_us + 50 in acks)
    delayed = [dataclasses.replace(c, delayed_us=25 * (c is followed)) for c in REVERSE]
    late = real_time(tmp_path / "b", reverse=delayed)
    assert largest_factor(late) == (20, "real time: at most 21.00")


@pytest.mark.parametrize(
    ("unit", "metric", "needed"),
    [("s", "busy_period_cycle.forward", 0), ("packets", "queue_peak.forward", 1)],
)
def test_least_tolerances(tmp_path: Path, unit: str, metric: str, needed: float) -> None:
    """A machine that adds nothing moves no time, but decides who of two comes first."""
    assert ClockError(Analysis(real_time(tmp_path))).of(metric, 10, unit) == needed


def judged(folder: Path, *expect: dict[str, Any]) -> dict[str, Any]:
    """The document of a run with other expectations."""
    edit_json(folder / "manifest.json", lambda m: m["experiment"].update(expect=list(expect)))
    return compute(Analysis(folder)).model_dump()


def slow_machine(tmp_path: Path) -> Path:
    """A run whose packets reach their hosts 0.5 ms, a transmission, later than links say."""
    folder = real_time(tmp_path)

    def shorten(manifest: dict[str, Any]) -> None:
        for queue in manifest["queues"]:
            queue["delay_ns"] = DELAY_US * 1000 - 500_000

    edit_json(folder / "manifest.json", shorten)
    return folder


def test_miss_beyond_tolerance_and_error_fails(tmp_path: Path) -> None:
    """A peak of 4 that may be off by 1 fails where 6 is expected to the packet."""
    document = judged(real_time(tmp_path), expectation("queue_peak.forward", 6, 0))
    (row,) = document["expect"]
    assert (row["pass"], row["supported"]) == (False, True)
    assert row["limit"] == "real time: off by up to 1 by itself"
    assert not document["pass"]


def test_miss_within_tolerance_and_error_cannot_be_told(tmp_path: Path) -> None:
    """A peak of 4 that may be off by 1 says nothing where 5 is expected to the packet."""
    told = expectation("drops_data.forward", 1, 2)
    document = judged(real_time(tmp_path), told, expectation("queue_peak.forward", 5, 0))
    _, row = document["expect"]
    assert (row["pass"], row["supported"]) == (False, False)
    assert row["limit"] == "real time: off by up to 1 by itself"
    assert document["pass"]


def test_hit_with_an_error_above_the_tolerance_cannot_be_told(tmp_path: Path) -> None:
    """A peak of 4 that may be off by 1 does not prove a 4 that is expected to the packet."""
    (row,) = judged(real_time(tmp_path), expectation("queue_peak.forward", 4, 0))["expect"]
    assert (row["pass"], row["supported"]) == (False, False)


def test_hit_with_an_error_within_the_tolerance_passes(tmp_path: Path) -> None:
    """A peak of 4 that may be off by 1 meets 5 +- 1, and the row states no limit."""
    document = judged(real_time(tmp_path), expectation("queue_peak.forward", 5, 1))
    (row,) = document["expect"]
    assert (row["pass"], row["supported"]) == (True, True)
    assert row["limit"] is None
    assert document["pass"]


@pytest.mark.parametrize(
    ("at_least", "at_most", "outcome"),
    [
        (3, None, (True, True)),
        (4, None, (False, False)),
        (5, None, (False, False)),
        (6, None, (False, True)),
        (None, 5, (True, True)),
        (None, 3, (False, False)),
        (None, 2, (False, True)),
        (3, 5, (True, True)),
        (4, 5, (False, False)),
    ],
)
def test_bounds_on_a_real_clock(
    tmp_path: Path, at_least: float | None, at_most: float | None, outcome: tuple[bool, bool]
) -> None:
    """A peak of 3 to 5 is beyond a bound, within it, or the bound lies between."""
    (row,) = judged(real_time(tmp_path), bounds("queue_peak.forward", at_least, at_most))["expect"]
    assert (row["pass"], row["supported"]) == outcome


def test_undefined_fails_on_any_clock(tmp_path: Path) -> None:
    """A metric without a value is no measurement that a clock could have put wrong."""
    (row,) = judged(real_time(tmp_path), expectation("compression_factor.second", 1, 9))["expect"]
    assert (row["measured"], row["pass"], row["supported"]) == (None, False, True)


def test_absurd_expectations_fail(tmp_path: Path) -> None:
    """Values several times off fail on a machine that delays packets by a transmission."""
    absurd = [
        expectation("queue_peak.forward", 99, 1),
        expectation("goodput.first", 50, 0.02),
        expectation("busy_period_cycle.forward", 1, 1e-7),
        bounds("efficiency.first", at_least=0.99),
        expectation("drops_data.forward", 40, 0),
    ]
    document = judged(slow_machine(tmp_path), *absurd)
    outcomes = [(row["metric"], row["pass"], row["supported"]) for row in document["expect"]]
    assert outcomes == [(row["metric"], False, True) for row in absurd]
    assert not document["pass"]


def test_run_that_tells_nothing_fails(tmp_path: Path) -> None:
    """A run on whose clock no expectation can be told does not pass."""
    document = judged(real_time(tmp_path), expectation("queue_peak.forward", 5, 0))
    assert all(row["pass"] for row in document["fidelity"])
    assert not any(row["supported"] for row in document["expect"])
    assert not document["pass"]


def test_run_without_expectations_passes(tmp_path: Path) -> None:
    """A run of which nothing was expected passes with its fidelity checks, on any clock."""
    assert judged(real_time(tmp_path))["pass"]


@pytest.mark.slow
def test_report_of_a_run_that_tells_nothing(tmp_path: Path) -> None:
    """The command says that nothing could be told, and exits with 1."""
    folder = real_time(tmp_path)
    judged(folder, expectation("queue_peak.forward", 5, 0))
    done = twoway("report", folder)
    assert done.returncode == 1
    assert "FAIL no expectation can be told on this run's clock" in done.stderr
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "no expectation can be told on this run's clock" in html.unescape(page)


def queue_errors(folder: Path) -> tuple[int, float, float]:
    """How far connections may have moved against one another; a peak's and a drop's error."""
    error = ClockError(Analysis(folder))
    peak, drops = (
        error.of(f"{name}.forward", 4, "packets") for name in ("queue_peak", "drops_data")
    )
    return error.phase_ns, peak, drops


def test_late_start_moves_queues(tmp_path: Path) -> None:
    """A connection 1 ms later than another, two transmissions, moves a peak by two packets."""
    folder = real_time(tmp_path)
    assert queue_errors(folder) == (0, 1, 1)
    edit_json(
        folder / "manifest.json",
        lambda m: m["connections"][0].update(start_ns=START_NS + 1_000_000),
    )
    assert queue_errors(folder) == (1_000_000, 2, 1)


def test_uneven_round_trips_move_queues(tmp_path: Path) -> None:
    """Round trips that are not alike carry connections apart, as a walk does: with the root of n.

    Every other ack of the first connection is 20 us late, a deviation of 10 us.
    """
    acks = [c for c in REVERSE if (c.connection, c.kind) == ("first", "ack")]
    late = acks[::2]
    reverse = [dataclasses.replace(c, delayed_us=20 * (c in late)) for c in REVERSE]
    folder = real_time(tmp_path, reverse=reverse)
    moved_ns, _, _ = queue_errors(folder)
    # Within 30 ms there are 11.8 round trips of 2.55 ms.
    assert moved_ns == pytest.approx(2.81 * np.sqrt(2 * 30 / 2.55) * 10_000, rel=0.05)


def test_one_connection_alone_has_no_phase(tmp_path: Path) -> None:
    """Where there is one connection none can have moved against another."""
    folder = real_time(tmp_path)
    edit_json(folder / "manifest.json", lambda m: m["connections"].pop())
    assert queue_errors(folder)[0] == 0


@pytest.mark.parametrize(("later_us", "told"), [(50, True), (60, False)])
def test_bunches_need_spacing(tmp_path: Path, later_us: int, told: bool) -> None:
    """Bunches cannot be told where acks are off by more than an ack's transmission of 50 us."""
    reverse = [
        dataclasses.replace(c, left_us=14_050 + later_us) if c.left_us == 14_050 else c
        for c in REVERSE
    ]
    folder = real_time(tmp_path, reverse=reverse)
    (row,) = judged(folder, expectation("ack_bunch_max.first", 9, 0))["expect"]
    assert row["supported"] == told
    if not told:
        assert row["limit"] == "real time: not to be measured on this clock"


def test_offset_of_the_clock(tmp_path: Path) -> None:
    """Packets that a machine stamped by another clock are where the plan's clock has them."""
    folder = write_run(tmp_path)
    before = Analysis(folder).run.capture("h1-eth0").time_ns
    edit_json(folder / "manifest.json", lambda m: m.update(clock_offset_ns=START_NS))
    assert (Analysis(folder).run.capture("h1-eth0").time_ns == before - START_NS).all()


def test_quantile_of_nothing() -> None:
    """Where nothing was measured nothing is late."""
    assert quantile(np.array([], dtype=np.int64)) == 0
