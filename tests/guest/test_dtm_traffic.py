"""sch_dtm under real TCP traffic in the guest: every departure and every reallocation is exact."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from support.running import SMALL, measure, write_experiment

from twoway.description import referred_files

pytestmark = pytest.mark.usefixtures("guest")

# Two-way traffic whose windows overflow a queue of 12.
CHANNELS: dict[str, dict[str, Any]] = {
    "static": {"slots": 4},
    "framed": {"slots": 20, "framed": True},
    "rate": {"slots": 20, "rate": {}},
    "rate, all options": {
        "slots": 6,
        "change_s": 0.3,
        "signalling_ms": 7,
        "max_slots": 12,
        "rate": {
            "sample_ms": 50,
            "shift_up": 1,
            "shift_down": 4,
            "margin_slots": 0.125,
            "corridor_slots": 0.5,
            "rounding": "nearest",
            "count": "accepted",
            "hold_on_loss_ms": 80,
            "estimate_mbit": 2,
        },
    },
    "buffer": {
        "slots": 2,
        "change_s": 0.02,
        "buffer": {"high_bytes": 4000, "low_bytes": 600, "rise_ms": 5, "step_slots": 3},
    },
    "hysteresis": {
        "slots": 2,
        "change_s": 0.05,
        "hysteresis": {
            "levels": [
                {"slots": 2, "up_bytes": 6000},
                {"slots": 7, "up_bytes": 9000, "down_bytes": 1000},
                {"slots": 9, "down_bytes": 2500},
            ]
        },
    },
    "trace": {
        "slots": 3,
        "trace": {"steps": [{"after_ms": 15.003, "slots": n} for n in (5, 1, 8, 2, 20, 3) * 30]},
    },
}


@pytest.mark.parametrize("name", CHANNELS)
def test_channel_under_traffic_is_exact(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With every allocator each packet leaves at the time that the slots give, to the nanosecond.

    The fidelity checks compare departures with the integral of the recorded slots, the queue and
    its drops with the kernel's own count, and the rate allocator's decisions with the paper's
    algorithm on the captured packets.
    """
    direction = {"dtm": CHANNELS[name], "queue_packets": 12, "delay_ms": 4, "overhead_bytes": -14}
    profile = {
        "schema": 1,
        "title": name,
        "directions": {"forward": direction, "reverse": direction},
    }
    (tmp_path / "atm-131mbit.yml").write_text(yaml.safe_dump(profile))
    monkeypatch.setattr(referred_files, "PROFILES", tmp_path)
    document = {**SMALL, "stack": {"mtu_bytes": 1040}, "duration_s": 3}
    experiment = write_experiment(tmp_path, document)
    analysed = measure(experiment, tmp_path / "results")
    failed = [check for check in analysed["fidelity"] if check["verdict"] != "pass"]
    assert failed == []
    off = [c["value"] for c in analysed["fidelity"] if "worst departure error" in c["check"]]
    assert off == [0, 0]
    changes = analysed["metrics"]["reallocations.forward"]["value"] or 0
    assert (changes > 0) == (name not in ("static", "framed"))
