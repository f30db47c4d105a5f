"""A half-duplex link: each packet leaves when its end has the medium and has sent it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from support.running import SMALL, write_experiment
from support.runs import carry_out

from twoway.contract.judge import Verdict
from twoway.links.half_duplex import Medium
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute

pytestmark = pytest.mark.usefixtures("guest")

FLOWS: list[dict[str, Any]] = [
    {"name": "left", "from": "h1", "to": "h2", "congestion": "cubic", "count": 2},
    {"name": "right", "from": "h2", "to": "h1", "congestion": "bbr"},
]


def _run(
    folder: Path,
    shared: dict[str, Any],
    patch: pytest.MonkeyPatch,
    names: tuple[str, str] = ("forward", "reverse"),
    **fields: Any,
) -> Path:
    end = {"rate_mbit": 8, "delay_ms": 4, "queue_packets": 20, "overhead_bytes": 24}
    back = {**end, "rate_mbit": 3.1, "queue_packets": 11}
    directions = dict(zip(names, (end, back), strict=True))
    profile = {"schema": 1, "title": "t", "half_duplex": shared, "directions": directions}
    (folder / "shared.yml").write_text(yaml.safe_dump(profile))
    patch.setattr("twoway.description.referred_files.PROFILES", folder)
    document: dict[str, Any] = {**SMALL, "profile": "shared", "flows": FLOWS, "duration_s": 8}
    document |= {"stack": {"mtu_bytes": 1500}, **fields}
    return carry_out(write_experiment(folder, document), folder / "results")


@pytest.mark.parametrize("turn", [1, 5])
def test_departures_are_those_of_a_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turn: int
) -> None:
    """With losses and two rates all departures are as replayed; another gap or turn fails."""
    folder = _run(tmp_path, {"gap_us": 130.007, "turn_packets": turn}, monkeypatch)
    analysis = Analysis(folder)
    for view in analysis.queues.values():
        assert len(view.passed.departures) > 1000
        assert view.passed.dropped.any()
        assert not view.error_ns.any()
    assert {row.verdict for row in compute(analysis).fidelity} == {Verdict.PASS}
    for other in (Medium(130_008, turn), Medium(130_007, turn + 1)):
        monkeypatch.setattr("twoway.measure.analysis.medium_of", lambda _, other=other: other)
        errors = [view.error_ns for view in Analysis(folder).queues.values()]
        assert np.count_nonzero(np.concatenate(errors)) > 1000


def test_each_link_is_a_medium(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three half-duplex links have a medium each: every departure is as replayed."""
    flows = [
        {**FLOWS[number % 2], "name": f"f{number}", "from": "sv", "to": f"c{number}"}
        for number in (1, 2, 3)
    ]
    folder = _run(
        tmp_path,
        {"gap_us": 50},
        monkeypatch,
        ("down", "up"),
        topology={"name": "client_server"},
        flows=flows,
    )
    analysis = Analysis(folder)
    assert len(analysis.queues) == 6
    for view in analysis.queues.values():
        assert len(view.passed.departures) > 500
        assert not view.error_ns.any()


def test_the_medium_is_held_for_gaps_and_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In turns of one packet, a direction holds the medium for transmissions and a gap each."""
    folder = _run(tmp_path, {"gap_us": 130}, monkeypatch)
    analysis = Analysis(folder)
    run, found = analysis.run, compute(analysis).metrics
    for name, view in analysis.queues.items():
        left_ns = view.passed.left_ns[view.passed.departures]
        packets = np.count_nonzero((left_ns >= run.steady_ns) & (left_ns < run.stop_ns))
        busy, transmits = (found[f"{m}.{name}"].value or 0 for m in ("medium_busy", "utilisation"))
        gaps_ns = (busy - transmits) * run.window_ns
        # A gap more or less at each end of the window.
        assert gaps_ns == pytest.approx(130_000 * packets, abs=260_001)
