"""On a real clock, bounds follow from the run's own measurements."""

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.dtm_host import EVENTS, arrivals, channel_run, host
from support.synthetic_run import (
    DELAY_US,
    FORWARD,
    KERNEL_READ_NS,
    REVERSE,
    START_NS,
    Crossing,
    Table,
    edit_json,
    edit_manifest,
    moved,
    write_run,
)

from twoway.contract.judge import Verdict
from twoway.contract.metrics import FidelityRow
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute
from twoway.measure.fidelity import fidelity
from twoway.measure.real_time import ClockError, departure_error_ns, quantile
from twoway.measure.registry import all_estimators, host_errors


def real_time(tmp_path: Path, **tables: Any) -> Path:
    """Make the run by hand as on a machine with a real clock."""
    folder = write_run(tmp_path, **tables)
    edit_manifest(folder, lambda m: m.update(clock_source="host"))
    return folder


def late_by(us: int) -> Table:
    """Return the forward packets with the last single segment late."""
    return moved(FORWARD, "data", 11, left_us=27_500 + us)


def delay_hosts(folder: Path, late_ns: int, queue: int = 0) -> None:
    """Let the packets of a queue reach their hosts late."""
    delay_ns = DELAY_US * 1000 - late_ns
    edit_manifest(folder, lambda m: m["queues"][queue].update(delay_ns=delay_ns))


def row_of(folder: Path, check: str) -> FidelityRow:
    """Return the one check whose name has these words."""
    (row,) = (row for row in fidelity(Analysis(folder)) if check in row.check)
    return row


DEPARTURES, KERNEL_QUEUE = "forward: departures", "forward: captures' queue"
REALLOCATIONS = "reallocations against figure 1 fed with the captures"
LARGEST_FACTOR = "first: largest compression factor"


def test_measured_errors_are_rows(tmp_path: Path) -> None:
    """The lateness of timers and the machine's added delay each have a row with a unit."""
    rows = {row.check: row for row in fidelity(Analysis(real_time(tmp_path)))}
    timers = rows["timers and samples late in 99 %, ns"]
    assert timers.value == KERNEL_READ_NS
    assert timers.verdict is Verdict.PASS
    assert rows["host delay in 99 %, ns"].value == 0
    assert rows["first: ack spacing off in 99 %, ns"].value == 0


def read_for(folder: Path, ns: int) -> None:
    """Let the observer take a given time for each sample."""
    path = folder / "sockets/queues.csv"
    head, columns, *rows = path.read_text().splitlines()
    cells = [row.split(",") for row in rows]
    rows = [",".join([at, str(int(at) + ns), *rest]) for at, _, *rest in cells]
    path.write_text("\n".join([head, columns, *rows, ""]))


@pytest.mark.parametrize(("read_ns", "verdict"), [(1000, Verdict.PASS), (999, Verdict.FAIL)])
def test_departures_are_held_against_the_timers(
    tmp_path: Path, read_ns: int, verdict: Verdict
) -> None:
    """A departure may be as late as the measured timers, and the row gives that reason."""
    folder = real_time(tmp_path, forward=late_by(1))
    read_for(folder, read_ns)
    row = row_of(folder, DEPARTURES)
    assert row.value == departure_error_ns(Analysis(folder).queues["forward"]) == 1000
    assert row.bound == f"real time: at most {read_ns}, as timers are late"
    assert row.verdict is verdict


@pytest.mark.parametrize(
    ("late_us", "read_ns", "verdict"),
    [
        (250, 1_000_000, Verdict.PASS),
        (251, 1_000_000, Verdict.CANNOT_TELL),
        (251, 1_000, Verdict.FAIL),
        (100_000, 10**9, Verdict.CANNOT_TELL),
    ],
)
def test_timers_do_not_set_the_bound_alone(
    tmp_path: Path, late_us: int, read_ns: int, verdict: Verdict
) -> None:
    """However late timers are, departures off by more than half a segment, 250 us, fail."""
    folder = real_time(tmp_path, forward=late_by(late_us))
    read_for(folder, read_ns)
    row = row_of(folder, DEPARTURES)
    assert row.verdict is verdict
    said = f"; {row.value} is more than 250000, half of a segment's transmission time"
    assert row.bound.endswith(said) == (late_us > 250)


@pytest.mark.parametrize(
    ("read_ns", "verdict"), [(0, Verdict.PASS), (500_000, Verdict.CANNOT_TELL)]
)
def test_timers_must_resolve_a_segment(tmp_path: Path, read_ns: int, verdict: Verdict) -> None:
    """If timers are as late as a segment's transmission, the verdict is left open."""
    folder = real_time(tmp_path)
    read_for(folder, read_ns)
    row = row_of(folder, "timers and samples")
    assert (row.value, row.verdict) == (read_ns, verdict)
    assert row.bound.endswith(", so it is not resolved") == (verdict is Verdict.CANNOT_TELL)


@pytest.mark.parametrize(("times", "off"), [(1, 1), (100, 0)])
def test_kernel_counts_otherwise(tmp_path: Path, times: int, off: int) -> None:
    """The check fails if more than 1 % of the kernel's samples are off by a packet."""
    folder = real_time(tmp_path)
    path = folder / "sockets/queues.csv"
    head, columns, *rows = path.read_text().splitlines(keepends=True)
    wrong = [row.replace("r1-eth1,4\n", "r1-eth1,3\n") for row in rows]
    path.write_text("".join([head, columns, *rows * (times - 1), *wrong]))
    row = row_of(folder, KERNEL_QUEUE)
    assert (row.value, row.verdict) == (off, Verdict.FAIL if off else Verdict.PASS)
    assert row.bound == "real time: 0 in 99 %, within 0 ns"


TOO_MUCH = "is more than 250000, half of a segment's transmission time"


@pytest.mark.parametrize(
    ("late_ns", "count", "verdict", "words"),
    [
        (0, 1, Verdict.FAIL, "within 0 ns"),
        (24_749, 1, Verdict.FAIL, "within 49498 ns"),
        (24_750, 1, Verdict.PASS, "within 49500 ns"),
        (125_000, 1, Verdict.PASS, "within 250000 ns"),
        (125_001, 1, Verdict.CANNOT_TELL, f"within 250002 ns; 250002 {TOO_MUCH}"),
        (250_000, 9, Verdict.FAIL, f"within 500000 ns; 500000 {TOO_MUCH}"),
    ],
)
def test_kernel_counts_while_the_machine_works(
    tmp_path: Path, late_ns: int, count: int, verdict: Verdict, words: str
) -> None:
    """A sample may have any length that the queue had within the host delay of it.

    The queue of 2 falls to 1 within 49.5 us of a sample's end; the host delay is twice the measured
    one. If the host delay exceeds half a segment, the verdict is left open.
    """
    folder = real_time(tmp_path)
    path = folder / "sockets/queues.csv"
    path.write_text(path.read_text().replace("r1-eth1,2\n", f"r1-eth1,{count}\n"))
    delay_hosts(folder, late_ns)
    row = row_of(folder, KERNEL_QUEUE)
    assert (row.verdict, row.bound) == (verdict, f"real time: 0 in 99 %, {words}")


@pytest.mark.parametrize(("late_ns", "verdict"), [(25_000, Verdict.PASS), (24_999, Verdict.FAIL)])
def test_kernel_counts_what_was(tmp_path: Path, late_ns: int, verdict: Verdict) -> None:
    """A sample 50 us after the queue fell to 1 may still count 2 within the host delay."""
    folder = real_time(tmp_path)
    path = folder / "sockets/queues.csv"
    old, new = (f"{START_NS + at_us * 1000}," for at_us in (11_450, 11_550))
    path.write_text(path.read_text().replace(old, new))
    delay_hosts(folder, late_ns)
    assert row_of(folder, KERNEL_QUEUE).verdict is verdict


def test_queue_of_acks_is_held_against_segments(tmp_path: Path) -> None:
    """A queue of ACKs only may be off by half a full segment's time, not half an ACK's."""
    acks = [c for c in REVERSE if c.connection == "first" and c.left_us is not None]
    alone = [dataclasses.replace(c, left_us=c.entered_us + 50) for c in acks]
    folder = real_time(tmp_path, reverse=alone)
    path = folder / "sockets/queues.csv"
    path.write_text("".join(line for line in path.open() if not re.search("r2-eth1,[45]", line)))
    delay_hosts(folder, 100_000, queue=1)
    edit_manifest(folder, lambda m: m["connections"].pop())
    row = row_of(folder, "reverse: captures' queue")
    assert (row.bound, row.verdict) == ("real time: 0 in 99 %, within 200000 ns", Verdict.PASS)


@pytest.fixture(scope="module")
def channel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run with a DTM channel on a host that counts packets up to 0.2 ms late."""
    came = arrivals()
    late = np.random.default_rng(1).integers(0, 200_000, len(came)).tolist()
    made = host(came, late, start_ns=START_NS)
    folder = channel_run(tmp_path_factory.mktemp("channel"), made)
    edit_manifest(folder, lambda m: m.update(clock_source="host"))
    return folder


def test_decisions_on_a_clock_that_goes_on(channel: Path) -> None:
    """Decisions that are possible pass on a real clock, though virtual time would refuse them."""
    row = row_of(channel, REALLOCATIONS)
    assert (row.value, row.verdict) == (0, Verdict.PASS)
    assert row.bound.startswith("real time: 0 impossible or missing, estimates known to ")


@pytest.mark.parametrize(
    "changed", [{"shift_up": 2}, {"shift_down": 2}, {"rounding": "up"}, {"margin_slots": 1.25}]
)
def test_other_decisions_fail(channel: Path, changed: dict[str, Any]) -> None:
    """Decisions that follow another profile fail on a real clock as well."""
    path = channel / "manifest.json"
    honest = path.read_text(encoding="utf-8")
    try:
        edit_json(
            path, lambda m: m["profile"]["directions"]["forward"]["dtm"]["rate"].update(changed)
        )
        row = row_of(channel, REALLOCATIONS)
    finally:
        path.write_text(honest, encoding="utf-8")
    assert (row.value or 0) > 0
    assert row.verdict is Verdict.FAIL


def test_decisions_of_a_very_late_host(tmp_path: Path) -> None:
    """If the estimate is uncertain by more than a slot, right decisions are left open."""
    came = arrivals()
    late = [60_000_000 * (n == 1) for n in range(len(came))]
    folder = channel_run(tmp_path, host(came, late, start_ns=START_NS, max_slots=4))
    edit_manifest(folder, lambda m: m.update(clock_source="host"))
    row = row_of(folder, REALLOCATIONS)
    assert (row.value, row.verdict, row.needed) == (0, Verdict.CANNOT_TELL, True)
    assert row.bound.endswith(" is more than 512000, a slot")
    rows = (folder / EVENTS).read_text(encoding="utf-8").splitlines()
    (folder / EVENTS).write_text("\n".join([*rows[:3], ""]), encoding="utf-8")
    assert row_of(folder, REALLOCATIONS).verdict is Verdict.FAIL


ACKS = {c.left_us: c for c in REVERSE if (c.connection, c.kind) == ("first", "ack")}


def delayed_acks(folder: Path, late: Sequence[Crossing], us: int) -> Path:
    """Make a run on a real clock; some of its ACKs are late on the way."""
    acks = [dataclasses.replace(c, delayed_us=us * (c in late)) for c in REVERSE]
    return real_time(folder, reverse=acks)


def test_acks_delayed_on_the_way(tmp_path: Path) -> None:
    """The bound of ACK compression allows for the difference of the ACKs' delays on the path."""
    followed = next(ack for left_us, ack in ACKS.items() if left_us and left_us + 50 in ACKS)
    for us, value, bound in ((0, 10, "10.50"), (25, 20, "21.00")):
        row = row_of(delayed_acks(tmp_path / str(us), [followed], us), LARGEST_FACTOR)
        found = (row.value, row.bound, row.verdict)
        assert found == (value, f"real time: at most {bound}", Verdict.PASS)


@pytest.mark.parametrize(
    ("delayed_us", "verdict", "bound"),
    [
        (49, Verdict.PASS, "at most 525.00"),
        (50, Verdict.CANNOT_TELL, "none, acks are up to 50000 ns closer than one ACK takes, 50000"),
    ],
)
def test_acks_that_may_come_at_once(
    tmp_path: Path, delayed_us: int, verdict: Verdict, bound: str
) -> None:
    """If ACKs may be off by an ACK's whole transmission time, compression has no bound."""
    alone = next(ack for left_us, ack in ACKS.items() if left_us and left_us > 20_000)
    row = row_of(delayed_acks(tmp_path, [alone], delayed_us), LARGEST_FACTOR)
    assert (row.value, row.verdict, row.bound) == (10, verdict, f"real time: {bound}")


def test_acks_closer_than_the_machine_explains(tmp_path: Path) -> None:
    """An ACK that leaves after 5 us instead of 50, without waiting, fails its check."""
    acks: dict[float, Crossing] = {c.entered_us: c for c in ACKS.values()}
    times_us = {12_000: (13_500, 13_950), 12_500: (13_960, 13_965), 13_000: (13_990, 14_050)}
    closer = {
        id(acks[at]): dataclasses.replace(acks[at], entered_us=entered_us, left_us=left_us)
        for at, (entered_us, left_us) in times_us.items()
    }
    reverse = [closer.get(id(c), c) for c in REVERSE]
    row = row_of(real_time(tmp_path, reverse=reverse), LARGEST_FACTOR)
    assert (row.value, row.verdict) == (30.67, Verdict.FAIL)


def errors(folder: Path) -> dict[str, float | None]:
    """Return the clock's error for each metric."""
    return {name: row.error for name, row in compute(Analysis(folder)).metrics.items()}


def slow_machine(tmp_path: Path) -> Path:
    """Make a run whose packets reach their hosts 0.5 ms, one transmission, late."""
    folder = real_time(tmp_path)
    for queue in (0, 1):
        delay_hosts(folder, 500_000, queue)
    return folder


def test_errors_of_a_fast_machine(tmp_path: Path) -> None:
    """A machine that adds no delay has an error of one in counts, and none in times and shares."""
    found = errors(real_time(tmp_path))
    assert found["queue_peak.forward"] == 1
    assert found["drops_data.forward"] == 1
    assert found["queue_mean.forward"] == 0
    assert found["goodput.first"] == 0
    assert found["busy_period_cycle.forward"] == 0
    assert found["compression_factor.second"] == 0  # this metric has no value


def test_errors_of_a_slow_machine(tmp_path: Path) -> None:
    """A host delay of 2 ms gives a queue an error of four segments of 0.5 ms."""
    found = errors(slow_machine(tmp_path))
    # A cycle of 6.5 ms has 4.2 round trips of 1.55 ms.
    assert found["busy_period_cycle.forward"] == pytest.approx(0.002 * 6500 / 1550)
    assert found["queue_peak.forward"] == 4
    assert found["queue_mean.forward"] == 4
    assert found["goodput.first"] == pytest.approx(1.98 * 2000 / 1550)


def test_virtual_time_has_no_errors(tmp_path: Path) -> None:
    """In virtual time no metric has an error, even if packets are late."""
    folder = slow_machine(tmp_path)
    edit_manifest(folder, lambda m: m.update(clock_source="virtual"))
    assert set(errors(folder).values()) == {0}


def queue_errors(folder: Path) -> tuple[int, float, float]:
    """Return how far connections may shift, and the errors of a peak and of drops."""
    error = ClockError(Analysis(folder))
    peak, drops = (
        error.bound_error(f"{name}.forward", 4, "packets") for name in ("queue_peak", "drops_data")
    )
    return error.phase_ns, peak, drops


def test_a_metrics_name_decides_no_error(tmp_path: Path) -> None:
    """A metric that is not declared a level or a mean has the error of its unit, for any name."""
    folder = real_time(tmp_path)
    start_ns = START_NS + 1_000_000
    edit_manifest(folder, lambda m: m["connections"][0].update(start_ns=start_ns))
    error = ClockError(Analysis(folder))
    for name in ("queue_peak_x", "plateau_x", "ack_bunch_x", "x_mean", "x"):
        assert error.bound_error(f"{name}.forward", 4, "packets") == 1
    assert error.bound_error("queue_mean.forward", 4, "packets") == 0
    assert error.bound_error("compression_factor_x.forward", 4, "1") == 0


def test_errors_are_declared_of_a_metrics_own_quantities() -> None:
    """An estimator declares errors of quantities that it returns, and only of those."""
    estimators = all_estimators()
    assert all(each.host_errors.keys() <= set(each.definitions) for each in estimators)
    assert sum(len(each.host_errors) for each in estimators) == len(host_errors()) > 0


def test_late_start_moves_queues(tmp_path: Path) -> None:
    """A start that is 1 ms late, two transmissions, gives a peak an error of two packets."""
    folder = real_time(tmp_path)
    assert queue_errors(folder) == (0, 1, 1)
    edit_manifest(
        folder,
        lambda m: m["connections"][0].update(start_ns=START_NS + 1_000_000),
    )
    assert queue_errors(folder) == (1_000_000, 2, 1)


def test_uneven_round_trips_move_queues(tmp_path: Path) -> None:
    """Uneven round trips shift connections like a random walk, with the root of their number.

    Every other ACK of the first connection is 20 us late, a deviation of 10 us.
    """
    folder = delayed_acks(tmp_path, [*ACKS.values()][::2], 20)
    moved_ns, _, _ = queue_errors(folder)
    # 30 ms have 11.8 round trips of 2.55 ms.
    assert moved_ns == pytest.approx(2.81 * np.sqrt(2 * 30 / 2.55) * 10_000, rel=0.05)


def test_one_connection_alone_has_no_phase(tmp_path: Path) -> None:
    """A single connection has no phase that could shift."""
    folder = real_time(tmp_path)
    edit_manifest(folder, lambda m: m["connections"].pop())
    assert queue_errors(folder)[0] == 0


@pytest.mark.parametrize(("later_us", "told"), [(50, True), (60, False)])
def test_bunches_need_spacing(tmp_path: Path, later_us: int, told: bool) -> None:
    """Verdicts on bunches are open if ACKs are off by more than an ACK's time, 50 us."""
    reverse = [
        dataclasses.replace(c, left_us=14_050 + later_us) if c.left_us == 14_050 else c
        for c in REVERSE
    ]
    folder = real_time(tmp_path, reverse=reverse)
    assert errors(folder)["ack_bunch_max.first"] == (1 if told else None)


def test_offset_of_the_clock(tmp_path: Path) -> None:
    """Times from another machine's clock are converted to the plan's clock."""
    folder = write_run(tmp_path)
    before = Analysis(folder).run.whole_capture("h1-eth0").time_ns
    edit_manifest(folder, lambda m: m.update(clock_offset_ns=START_NS))
    assert (Analysis(folder).run.whole_capture("h1-eth0").time_ns == before - START_NS).all()


def test_quantile_of_nothing() -> None:
    """The quantile of no measurements is 0."""
    assert quantile(np.array([], dtype=np.int64)) == 0
