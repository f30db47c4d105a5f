"""Properties of a link that no check proves."""

from typing import Any

import pytest

from twoway.links.direction import Direction
from twoway.links.proof import not_proven

POLICER = {"policer": {"rate_mbit": 4, "burst_bytes": 15140}}
SCHEDULE = {"delay_ms": None, "delay": {"schedule": [[0, 20]]}}


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({}, []),
        ({"aqm": "codel", "rate_mbit": None, "rate": {"schedule": [[0, 8]]}}, []),
        (POLICER, []),
        (POLICER | {"aqm": "codel"}, ["the share that the policer dropped (down)"]),
        (
            {"aqm": "codel", "rate_mbit": None, "dtm": {"rate": {"count": "accepted"}}},
            ["when the channel's slots change (down)"],
        ),
        (
            SCHEDULE | {"impairments": {"jitter_ms": 8}},
            ["each packet's delay by the schedule (down)"],
        ),
    ],
)
def test_what_no_check_proves(fields: dict[str, Any], what: list[str]) -> None:
    """A pair of elements that a check cannot follow is listed with its direction, and no other."""
    link = {"rate_mbit": 8, "delay_ms": 8, "queue_packets": 20} | fields
    found = not_proven({"down": Direction.model_validate(link)})
    assert [each.what for each in found] == what
