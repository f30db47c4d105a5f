"""A policer drops what its token bucket refuses, and the queue behind it drops when full."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from support.running import SMALL, write_experiment
from support.runs import carry_out

from twoway.contract.judge import Verdict
from twoway.links.policer import Policer
from twoway.measure.analysis import Analysis
from twoway.measure.fidelity import fidelity

pytestmark = pytest.mark.usefixtures("guest")

# A bucket that passes more at once than the queue holds, on a link of the same rate.
TIGHT = {
    "rate_mbit": 131,
    "delay_ms": 8.416,
    "queue_packets": 8,
    "policer": {"rate_mbit": 120, "burst_bytes": 100_000},
}


def _rows(analysis: Analysis) -> dict[str, Verdict]:
    return {row.check: row.verdict for row in fidelity(analysis)}


def test_each_packet_has_the_fate_of_the_bucket(tmp_path: Path) -> None:
    """A policer's drops and its queue's are distinguished; another bucket would drop others."""
    reverse: dict[str, Any] = {"rate_mbit": 131, "delay_ms": 8.416, "queue_packets": 1000}
    profile = {"schema": 1, "title": "t", "directions": {"forward": TIGHT, "reverse": reverse}}
    (tmp_path / "tight.yml").write_text(yaml.safe_dump(profile))
    flows = [{**flow, "congestion": "cubic", "window_packets": None} for flow in SMALL["flows"]]
    run = carry_out(
        write_experiment(tmp_path, {**SMALL, "profile": "tight", "flows": flows}),
        tmp_path / "results",
    )
    analysis = Analysis(run)
    rows = _rows(analysis)
    assert set(rows.values()) == {Verdict.PASS}
    (policed,) = (check for check in rows if "token bucket" in check)
    (dropped,) = (check for check in rows if check.startswith("forward: drops in the captures"))
    kernel = [int(check.split()[at]) for check, at in ((policed, 1), (dropped, -1))]
    assert 0 < kernel[0] < kernel[1]
    link = analysis.run.manifest.profile.directions["forward"]
    policer = link.elements.find(Policer)
    assert policer
    larger = policer.model_copy(update={"burst_bytes": policer.burst_bytes + 9194})
    changed = link.model_copy(update={"policer": larger})
    analysis.run.manifest.profile.directions["forward"] = changed
    assert _rows(analysis)[policed] is Verdict.FAIL
