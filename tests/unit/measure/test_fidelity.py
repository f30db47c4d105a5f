"""Each check of the testbed holds on an honest run, and fails on what it is there for."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from capture_analysis.errors import AnalysisError
from synthetic_run import FORWARD, PAYLOAD_BYTES, REVERSE, SEGMENTS, Table, edit_json, write_run

from twoway.measure.analysis import Analysis
from twoway.measure.fidelity import fidelity

SERVICE_US = {"data": 500, "ack": 50, "fin": 50}
SENT_BYTES = SEGMENTS["first"] * PAYLOAD_BYTES


def failing(folder: Path) -> dict[str, float]:
    """The checks that do not hold, with their values."""
    checks = fidelity(Analysis(folder))
    return {row.check: row.value or 0 for row in checks if not row.pass_}


def replaced(table: Table, number: int, **changes: int) -> Table:
    """A timetable with one row changed."""
    row = dataclasses.replace(table[number], **changes)  # type: ignore[arg-type] # only times
    return [*table[:number], row, *table[number + 1 :]]


def test_honest_run(tmp_path: Path) -> None:
    """A run whose files agree passes every check, and the checks are these."""
    rows = fidelity(Analysis(write_run(tmp_path)))
    assert [(row.check, row.value, row.bound) for row in rows] == [
        ("largest captured frame, bytes", 504, "at most 504"),
        ("packets dropped by the capture", 0, "0"),
        ("forward: worst departure error, ns", 0, "at most 1"),
        ("forward: captures' queue against 4 kernel samples, packets", 0, "0"),
        ("forward: drops in the captures less the kernel's 1", 0, "0"),
        ("reverse: worst departure error, ns", 0, "at most 1"),
        ("reverse: captures' queue against 4 kernel samples, packets", 0, "0"),
        ("reverse: drops in the captures less the kernel's 1", 0, "0"),
        ("first: payload in the capture less the sink's 5850, bytes", 0, "0"),
        ("first: acks less data segments", 0, "-1..1"),
        ("first: largest compression factor", 10.0, "at most 10.50"),
        ("second: payload in the capture less the sink's 3600, bytes", 0, "0"),
        ("second: acks less data segments", 0, "-1..1"),
    ]
    assert all(row.pass_ is True for row in rows)


EDITS: list[tuple[str, Callable[[Any], object], dict[str, float]]] = [
    (
        "manifest.json",
        lambda m: m["experiment"]["stack"].update(mtu_bytes=489),
        {"largest captured frame, bytes": 504},
    ),
    (
        "manifest.json",
        lambda m: m["capture_drops"].update({"r1-eth0": 2, "r2-eth0": 1}),
        {"packets dropped by the capture": 3},
    ),
    (
        "qdisc/r1-after.json",
        lambda qdiscs: qdiscs[1].update(drops=3),
        {"forward: drops in the captures less the kernel's 3": -2},
    ),
    (
        "qdisc/r2-before.json",
        lambda qdiscs: qdiscs[1].update(drops=1),
        {"reverse: drops in the captures less the kernel's 0": 1},
    ),
    (
        "traffic/first-sink.json",
        lambda said: said.update(bytes_received=5851),
        {"first: payload in the capture less the sink's 5851, bytes": -1},
    ),
]


@pytest.mark.parametrize(("name", "change", "expected"), EDITS)
def test_disagreement(
    tmp_path: Path, name: str, change: Callable[[Any], object], expected: dict[str, float]
) -> None:
    """What one file claims against the captures fails its check, and that one alone."""
    folder = write_run(tmp_path)
    edit_json(folder / name, change)
    assert failing(folder) == expected


@pytest.mark.parametrize(("count", "off"), [(3, 1), (6, 2)])
def test_kernel_counts_otherwise(tmp_path: Path, count: int, off: int) -> None:
    """A kernel sample that the captures' queue of 4 did not have fails by how far it is off."""
    folder = write_run(tmp_path)
    path = folder / "sockets/queues.csv"
    path.write_text(path.read_text().replace("r1-eth1,4\n", f"r1-eth1,{count}\n"))
    assert failing(folder) == {"forward: captures' queue against 4 kernel samples, packets": off}


def test_queue_that_hands_over_at_the_start(tmp_path: Path) -> None:
    """Captured as transmissions begin, the queue is as exact, and the kernel's is one less."""
    begun = [
        c if c.left_us is None else dataclasses.replace(c, left_us=c.left_us - SERVICE_US[c.kind])
        for c in FORWARD
    ]
    folder = write_run(tmp_path, forward=begun)
    edit_json(folder / "manifest.json", lambda m: m["queues"][0].update(leaves_at_start=True))
    path = folder / "sockets/queues.csv"
    path.write_text(
        path.read_text().replace("r1-eth1,4\n", "r1-eth1,3\n").replace("r1-eth1,2\n", "r1-eth1,1\n")
    )
    assert failing(folder) == {}
    assert Analysis(folder).queues["forward"].all_packets.packets.max() == 4


def test_no_kernel_samples(tmp_path: Path) -> None:
    """A check that found nothing to compare with does not hold."""
    folder = write_run(tmp_path)
    path = folder / "sockets/queues.csv"
    path.write_text("".join(line for line in path.open() if "r2-eth1" not in line))
    assert failing(folder) == {"reverse: captures' queue against 0 kernel samples, packets": 0}


def test_late_departure(tmp_path: Path) -> None:
    """A segment on its own that leaves a microsecond late is an error of 1000 ns."""
    late = FORWARD.index(next(c for c in FORWARD if c.number == 11))
    folder = write_run(tmp_path, forward=replaced(FORWARD, late, left_us=27_501))
    assert failing(folder) == {"forward: worst departure error, ns": 1000}


@pytest.mark.parametrize(("left_us", "holds"), [(27_499, True), (27_498, False), (27_501, False)])
def test_departure_on_credit(tmp_path: Path, left_us: int, holds: bool) -> None:
    """With 1000 ns of credit a segment may leave so much too early, and no later than others."""
    number = FORWARD.index(next(c for c in FORWARD if c.number == 11))
    folder = write_run(tmp_path, forward=replaced(FORWARD, number, left_us=left_us))
    edit_json(folder / "manifest.json", lambda m: m["queues"][0].update(credit_ns=1000))
    assert ("forward: worst departure error, ns" not in failing(folder)) is holds


def test_acks_too_close(tmp_path: Path) -> None:
    """ACKs that arrive closer than the link could bring them break the bound, and its timing."""
    number = REVERSE.index(next(c for c in REVERSE if c.number == 4 and c.kind == "ack"))
    folder = write_run(tmp_path, reverse=replaced(REVERSE, number, left_us=13_990))
    assert failing(folder) == {
        "reverse: worst departure error, ns": 10_000,
        "first: largest compression factor": 12.5,
    }


def test_missing_acks(tmp_path: Path) -> None:
    """Segments without their ACKs fail where every segment is to have one."""
    rows = [c for c in REVERSE if c.entered_us not in (16_450, 16_950)]
    folder = write_run(tmp_path, reverse=rows)
    assert failing(folder) == {"first: acks less data segments": -2}


def test_delayed_acks_need_not_match(tmp_path: Path) -> None:
    """Where ACKs may be delayed their number is not checked."""
    rows = [c for c in REVERSE if c.entered_us not in (16_450, 16_950)]
    folder = write_run(tmp_path, reverse=rows)
    edit_json(folder / "manifest.json", lambda m: m["experiment"]["stack"].update(acks="delayed"))
    assert failing(folder) == {}


def test_no_data(tmp_path: Path) -> None:
    """A connection of which no payload was captured fails."""
    rows = [c for c in FORWARD if c.connection == "second"]
    checks = failing(write_run(tmp_path, forward=rows))
    assert checks["first: payload captured, bytes"] == 0


def test_hole_is_not_received(tmp_path: Path) -> None:
    """Bytes behind one that never arrived are not what the sink's program can have received."""
    rows = [c for c in FORWARD if c.entered_us != 18_500]
    got = failing(write_run(tmp_path, forward=rows))
    assert got["first: payload in the capture less the sink's 5850, bytes"] == -8 * PAYLOAD_BYTES


@pytest.mark.parametrize(
    ("received", "sent", "off"),
    [
        (SENT_BYTES, SENT_BYTES, None),
        (SENT_BYTES - 37, SENT_BYTES - 37, None),  # its cookie
        (SENT_BYTES - 500, SENT_BYTES - 37, None),  # and what was on its way at the end
        (SENT_BYTES - 38, SENT_BYTES - 38, 38),
        (SENT_BYTES + 1, SENT_BYTES + 1, -1),
    ],
)
def test_iperf3_stops_counting_early(
    tmp_path: Path, received: int, sent: int, off: int | None
) -> None:
    """iperf3 may leave out its cookie and what was on its way at the end, and nothing else."""
    folder = write_run(tmp_path)
    edit_json(folder / "manifest.json", lambda m: m["connections"][0].update(generator="iperf3"))
    report = {"end": {"sum_received": {"bytes": received}, "sum_sent": {"bytes": sent}}}
    (folder / "traffic/first-source.json").write_text(json.dumps(report))
    check = f"first: payload in the capture less the sink's {received}, bytes"
    assert failing(folder) == ({} if off is None else {check: off})


def test_garbled_kernel_counters(tmp_path: Path) -> None:
    """A counter file that is not JSON is an error that names it."""
    folder = write_run(tmp_path)
    broken = next(iter(sorted((folder / "qdisc").glob("*.json"))))
    broken.write_text("{")
    with pytest.raises(AnalysisError, match=broken.name):
        fidelity(Analysis(folder))
