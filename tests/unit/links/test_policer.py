"""Policers: tc's arguments, and refusals."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from support.running import SMALL, problems_of, write_experiment

from twoway.description.experiment import Profile
from twoway.description.rules import profile_problems
from twoway.description.topology import load_topology
from twoway.paths import TOPOLOGIES
from twoway.plan.shaping import compile_profile

POLICER = {"rate_mbit": 8, "burst_bytes": 30_000}


def _document(**fields: Any) -> dict[str, Any]:
    direction = {"rate_mbit": 10, "queue_packets": 9, "delay_ms": 8, "policer": POLICER, **fields}
    return {"schema": 1, "title": "t", "directions": {"forward": direction, "reverse": direction}}


def test_tc_is_told() -> None:
    """The bucket is on egress of the queue's interface, and takes frames of any size."""
    profile = Profile.model_validate(_document())
    assert profile_problems(profile) == []
    shaper = compile_profile(profile, load_topology(TOPOLOGIES / "two_node.py", {}))[0]
    name = shaper.interface.name
    police = "police rate 8000000bit burst 30000 mtu 65535 conform-exceed drop/pass"
    assert shaper.inner == (
        f"qdisc add dev {name} clsact",
        f"filter add dev {name} egress matchall action {police}",
    )


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"policer": {"rate_mbit": 0.001, "burst_bytes": 40_000}},
            ".policer.burst_bytes: at most 274 s of tokens (34250), got 40000",
        ),
    ],
)
def test_unmeasurable_policer_is_refused(fields: dict[str, Any], sentence: str) -> None:
    """A policer whose drops could not be measured, or that tc cannot set, is refused."""
    found = profile_problems(Profile.model_validate(_document(**fields)))
    assert [problem.partition("forward")[2].startswith(sentence) for problem in found[:1]] == [True]


def test_a_bucket_smaller_than_a_packet_is_refused(tmp_path: Path) -> None:
    """A bucket smaller than a full frame would drop every full frame, and is refused."""
    small = {"rate_mbit": 8, "burst_bytes": 9193}
    (tmp_path / "tight.yml").write_text(yaml.safe_dump(_document(policer=small)))
    path = write_experiment(tmp_path, {**SMALL, "profile": "tight"})
    assert problems_of(str(path))[0].endswith("a full frame has 9194, got 9193")
