"""Drops by an action: its words, and what the element says of itself."""

from typing import Any

import pytest

from twoway.description.experiment import Profile
from twoway.description.rules import profile_problems
from twoway.description.topology import load_topology
from twoway.paths import TOPOLOGIES
from twoway.plan.shaping import compile_profile


def _profile(**fields: Any) -> Profile:
    direction = {"rate_mbit": 10, "queue_packets": 9, "delay_ms": 8, "drops": {"one_in": 50}}
    directions = {"forward": direction | fields, "reverse": direction}
    return Profile.model_validate({"schema": 1, "title": "t", "directions": directions})


def test_an_action_drops_before_the_delay() -> None:
    """The delay's interface has an egress action that drops one in 50 at random."""
    graph = load_topology(TOPOLOGIES / "two_node.py", {})
    shapers = {each.interface.name: each for each in compile_profile(_profile(), graph)}
    assert shapers["r2-eth0"].inner[-1].endswith("action gact pass random netrand drop 50")
    assert _profile().directions["forward"].elements.lose


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"delay_ms": None, "delay": {"schedule": [[0, 5]]}}, ".drops: netem does it"),
        ({"impairments": {"duplicate_percent": 1}}, ".duplicate_percent: a copy that is lost"),
        ({"loss": {"percent": 1}}, ".drops: a link loses packets in one way"),
    ],
)
def test_fields_that_exclude_drops(fields: dict[str, Any], sentence: str) -> None:
    """A changing delay, copies and losses are refused beside drops, with the reason."""
    assert sentence in " ".join(profile_problems(_profile(**fields)))
