"""Delays that change: schedules become tables, or are refused with a sentence."""

from typing import Any

import pytest

from twoway.description.experiment import Profile
from twoway.description.placement import placement_problems
from twoway.description.rules import profile_problems
from twoway.description.topology import load_topology
from twoway.paths import TOPOLOGIES
from twoway.plan.shaping import compile_profile

SCHEDULE = {"schedule": [[0, 20], [15, 35.000001]]}


def _profile(names: tuple[str, str] = ("forward", "reverse"), **fields: Any) -> Profile:
    direction = {"rate_mbit": 10, "queue_packets": 9, "delay": SCHEDULE, **fields}
    return Profile.model_validate(
        {"schema": 1, "title": "t", "directions": dict.fromkeys(names, direction)}
    )


def test_a_schedule_is_a_table_of_delays() -> None:
    """The link has a table in ns, and a queue for ten times the packets of the longest delay."""
    profile = _profile()
    assert profile_problems(profile) == []
    shaper = compile_profile(profile, load_topology(TOPOLOGIES / "two_node.py", {}))[1]
    assert shaper.interface.name == "r2-eth0"
    assert " ".join(shaper.arguments) == (
        "timetable delays 0ns:20000000ns,15000000000ns:35000001ns period 0ns "
        "start 946684830000000000ns limit 8102 overhead 0"
    )


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"delay_ms": 1},
            ": delay_ms or delay says how long packets travel; got delay_ms and delay",
        ),
        ({"delay": None}, ": delay_ms or delay says how long packets travel; got none"),
        ({"delay": {"schedule": [[1, 2]]}}, ".delay.schedule.0: the first is from 0 s on, got 1"),
        ({"delay": {**SCHEDULE, "repeat_s": 15}}, ".delay.repeat_s: must be after the last (15 s)"),
        (
            {"impairments": {"jitter_ms": 40}},
            ".impairments.jitter_ms: must not exceed the shortest delay (20), got 40",
        ),
        (
            {"impairments": {"reorder_percent": 1}},
            ".impairments.reorder_percent: needs delay_ms: with a delay that changes no packet",
        ),
        (
            {"ack_queue": "own"},
            ".ack_queue: ack_queue uses the delay's netem in another way; got 'own'",
        ),
    ],
)
def test_contradictory_delay_names_its_field(fields: dict[str, Any], sentence: str) -> None:
    """Each mistake is refused with its field and value."""
    found = profile_problems(_profile(**fields))
    assert any(problem.startswith(f"directions.forward{sentence}") for problem in found), found


def test_a_delay_of_several_queues_is_refused() -> None:
    """If two clients share a changing delay, the order of their packets is unknown: refused."""
    graph = load_topology(TOPOLOGIES / "client_server.py", {"clients": 2})
    found = placement_problems(_profile(("down", "up")), graph)
    assert "directions.down.delay: takes a direction with one queue, and with delays" in found[0]
