"""A delay that changes: each packet travels as long as the table says."""

from pathlib import Path
from typing import Any

import pytest
from running import SMALL, carry_out, write_experiment

from twoway.contract.verdict import Verdict
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute
from twoway.measure.links import delay
from twoway.theory.timetable import Timetable

# Steps of leo-20mbit: s, and ns from then on.
LATER = ((15, 35_250_000), (30, 12_000_125), (45, 28_000_000))


def _delays(folder: Path) -> list[Any]:
    return [row for row in compute(Analysis(folder)).fidelity if "delays, ns" in row.check]


def test_delays_are_those_of_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over a handover no packet's delay is off, and a table 1 ns off is noticed."""
    flows = [
        {"name": "left", "from": "h1", "to": "h2", "congestion": "cubic"},
        {"name": "right", "from": "h2", "to": "h1", "congestion": "bbr"},
    ]
    document: dict[str, Any] = {**SMALL, "profile": "leo-20mbit", "flows": flows}
    document |= {"duration_s": 17, "stack": {"mtu_bytes": 1500}}
    folder = carry_out(write_experiment(tmp_path, document), tmp_path / "results")
    rows = _delays(folder)
    assert [(row.verdict, row.value) for row in rows] == [(Verdict.PASS, 0)] * 2
    steps = ((0, 20_500_001), *((s * 10**9, ns) for s, ns in LATER))
    other = Timetable("delays", steps, 60 * 10**9)
    monkeypatch.setattr(delay, "delay_table", lambda _: other)
    assert [(row.verdict, row.value) for row in _delays(folder)] == [(Verdict.FAIL, 1)] * 2
