"""Jitter, overtaking and copies: netem's arguments, and refusals."""

from typing import Any

import pytest

from twoway.description.experiment import Profile
from twoway.description.rules import profile_problems
from twoway.description.topology import load_topology
from twoway.links.impairments import Impairments
from twoway.paths import TOPOLOGIES
from twoway.plan.shaping import compile_profile


def _profile(**fields: Any) -> Profile:
    direction = {"rate_mbit": 10, "queue_packets": 9, "delay_ms": 8, **fields}
    return Profile.model_validate(
        {"schema": 1, "title": "t", "directions": {"forward": direction, "reverse": direction}}
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"jitter_ms": 4}, "8000us 4000us rate 100tbit"),
        ({"jitter_ms": 4, "jitter_reorders": True}, "8000us 4000us"),
        ({"reorder_percent": 0.5, "duplicate_percent": 2}, "8000us reorder 0.5% duplicate 2%"),
    ],
)
def test_netem_is_told(given: dict[str, Any], said: str) -> None:
    """The delay's netem has each impairment; a rate of 100 Tbit/s keeps packets in order."""
    profile = _profile(impairments=given)
    assert profile_problems(profile) == []
    shaper = compile_profile(profile, load_topology(TOPOLOGIES / "two_node.py", {}))[1]
    assert " ".join(shaper.arguments) == f"netem limit 1852 delay {said}"


def test_what_is_read_back() -> None:
    """The kernel must report jitter in s, and shares of reordered and copied packets, as set."""
    given = {"jitter_ms": 4, "jitter_reorders": True, "reorder_percent": 1, "duplicate_percent": 2}
    impairments = _profile(impairments=given).directions["forward"].elements.find(Impairments)
    assert impairments is not None
    assert impairments.readback() == (
        (("options", "delay", "jitter"), 0.004),
        (("options", "reorder", "reorder"), 0.01),
        (("options", "duplicate", "duplicate"), 0.02),
    )


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"impairments": {"jitter_ms": 8.008}}, ".jitter_ms: must not exceed delay_ms (8), got 8"),
        ({"impairments": {"jitter_ms": 0.1}}, ".jitter_ms: exact for multiples of 0.008 only"),
        ({"impairments": {"jitter_reorders": True}}, ".jitter_reorders: needs jitter_ms, got true"),
        (
            {"impairments": {"jitter_ms": 8, "reorder_percent": 1}},
            ".reorder_percent: jitter that keeps the order allows none",
        ),
        (
            {"impairments": {"reorder_percent": 1}, "delay_ms": 0},
            ".reorder_percent: needs a delay, got delay_ms of 0",
        ),
        (
            {"impairments": {}, "ack_queue": "own"},
            ": ack_queue uses the delay's netem in another way",
        ),
    ],
)
def test_contradictory_impairment_names_its_field(fields: dict[str, Any], sentence: str) -> None:
    """Each mistake is refused with its field and value."""
    found = profile_problems(_profile(**fields))
    wanted = f"directions.forward.impairments{sentence}"
    assert any(problem.startswith(wanted) for problem in found), found
