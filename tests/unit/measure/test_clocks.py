"""Runs of several machines: each clock's offset and drift are removed, and nothing else."""

import csv
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.synthetic_run import START_NS, edit_manifest, write_run

from twoway.contract.judge import Verdict
from twoway.measure.analysis import Analysis
from twoway.measure.clocks import Clock
from twoway.measure.document import compute
from twoway.measure.real_time import ClockError

RECORD = struct.Struct("<IIII")
# A clock a tenth of a second behind and 40 ppm fast; the programs assume 30 us less.
OFFSET_NS, DRIFT_PPB, HANDED_NS = -100_000_123, 40_000.5, -100_030_123


def machine_ns(time_ns: int) -> int:
    """Return the other machine's reading at a time on the plan's clock."""
    return time_ns + OFFSET_NS + round((time_ns - START_NS) * DRIFT_PPB * 1e-9)


def on_the_other_clock(folder: Path, node: str) -> None:
    """Rewrite all times of a node as a machine with that clock would have written them."""
    for path in folder.glob(f"pcap/{node}-*.pcap"):
        path.write_bytes(_restamped(path.read_bytes()))
    path = folder / "sockets/queues.csv"
    lines = path.read_text().splitlines()
    header = next(n for n, line in enumerate(lines) if not line.startswith("#"))
    rows = list(csv.DictReader(lines[header:]))
    for row in rows:
        if row["interface"].startswith(node):
            for name in ("time_ns", "read_ns"):
                row[name] = str(machine_ns(int(row[name])) - HANDED_NS)
    body = [",".join(row.values()) for row in rows]
    path.write_text("\n".join([*lines[: header + 1], *body, ""]))


def _restamped(capture: bytes) -> bytes:
    restamped, at = bytearray(capture), 24
    while at < len(capture):
        seconds, ns, kept, size = RECORD.unpack_from(capture, at)
        then = divmod(machine_ns(seconds * 10**9 + ns), 10**9)
        RECORD.pack_into(restamped, at, *then, kept, size)
        at += RECORD.size + kept
    return bytes(restamped)


def told(uncertainty_ns: int = 0) -> dict[str, Any]:
    """Return the manifest's description of the other clock."""
    return {
        "offset_ns": OFFSET_NS,
        "drift_ppb": DRIFT_PPB,
        "handed_ns": HANDED_NS,
        "uncertainty_ns": uncertainty_ns,
    }


@pytest.mark.parametrize("node", ["h1", "h2", "r1"])
def test_another_clock_changes_nothing(tmp_path: Path, node: str) -> None:
    """If one node's clock is wrong and drifts, metrics and checks stay the same."""
    right = compute(Analysis(write_run(tmp_path / "right")))
    folder = write_run(tmp_path / "other")
    on_the_other_clock(folder, node)
    off = compute(Analysis(folder))
    assert off.metrics != right.metrics
    edit_manifest(folder, lambda m: m.update(clocks={node: told()}))
    assert compute(Analysis(folder)) == right


def test_stamps_come_back_exactly() -> None:
    """Times of a fast clock are restored to the nanosecond over an hour."""
    random = np.random.default_rng(1)
    times_ns = START_NS + random.integers(-3600 * 10**9, 3600 * 10**9, 10_000)
    clock = Clock(START_NS, OFFSET_NS, HANDED_NS, DRIFT_PPB)
    stamps = np.array([machine_ns(int(time_ns)) for time_ns in times_ns], dtype=np.int64)
    assert (clock.of_stamps(stamps) == times_ns).all()
    assert (clock.of_programs(stamps - HANDED_NS) == times_ns).all()


def test_what_is_not_known_of_clocks_is_said(tmp_path: Path) -> None:
    """The two least certain clocks give a row of fidelity and widen the bounds of times."""
    folder = write_run(tmp_path)
    edit_manifest(folder, lambda m: m.update(clock_source="host"))
    alone = ClockError(Analysis(folder)).round_trip_ns
    clocks = {node: told(10_000 * n) for n, node in enumerate(("h1", "r1", "h2"))}
    for node in clocks:
        on_the_other_clock(folder, node)
    edit_manifest(folder, lambda m: m.update(clocks=clocks))
    analysis = Analysis(folder)
    assert ClockError(analysis).round_trip_ns == alone + 4 * (10_000 + 20_000)
    rows = {row.check: row for row in compute(analysis).fidelity}
    row = rows["bound of the difference between two machines' clocks, ns"]
    assert (row.value, row.verdict) == (30_000, Verdict.PASS)
    edit_manifest(folder, lambda m: m.update(clocks={"h1": told(), "r1": told()}))
    assert json.loads((folder / "manifest.json").read_text())["clocks"]
    assert "bound of the difference between two machines' clocks, ns" not in str(
        compute(Analysis(folder))
    )
