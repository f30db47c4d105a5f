"""Elements that may combine on a link."""

import itertools
from typing import Any

import pytest

from twoway.description.experiment import Profile
from twoway.description.rules import profile_problems
from twoway.links.direction import elements

FEATURES: dict[str, dict[str, Any]] = {
    "policer": {"policer": {"rate_mbit": 8, "burst_bytes": 30_000}},
    "mtu_bytes": {"mtu_bytes": 1432},
    "rate": {"rate_mbit": None, "rate": {"schedule": [[0, 5]]}},
    "dtm": {"rate_mbit": None, "dtm": {}},
    "cell_bytes": {"cell_bytes": 53},
    "atm": {"cell_bytes": 48, "cell_overhead_bytes": 5},
    "aqm": {"aqm": "codel"},
    "ack_queue": {"ack_queue": "own"},
    "queue": {"queue": {"tc": "tbf rate 1mbit burst 9000 limit 9000"}},
    "delay": {"delay_ms": None, "delay": {"schedule": [[0, 5]]}},
    "loss": {"loss": {"percent": 1}},
    "impairments": {"impairments": {"jitter_ms": 1.6}},
    "copies": {"impairments": {"duplicate_percent": 1}},
    "half_duplex": {},
    "queue_limit": {"queue_limit": {"schedule": [[0, 9], [1, 5]]}},
}
# Each feature's opponents; any other pair stands together.
APART = {
    "rate": {"dtm", "cell_bytes", "half_duplex"},
    "dtm": {"cell_bytes", "half_duplex"},
    "cell_bytes": {"aqm", "ack_queue", "queue", "half_duplex"},
    "aqm": {"ack_queue", "queue"},
    "ack_queue": {"queue", "delay", "impairments", "copies", "half_duplex"},
    "queue": {"queue_limit"},
}


def _problems(*names: str) -> list[str]:
    fields: dict[str, Any] = {"rate_mbit": 10, "queue_packets": 9, "delay_ms": 8}
    for name in names:
        fields |= FEATURES[name]
    document: dict[str, Any] = {"schema": 1, "title": "t", "directions": {"forward": fields}}
    if "half_duplex" in names:
        document["half_duplex"] = {"gap_us": 5}
    return profile_problems(Profile.model_validate(document))


def test_each_element_is_tried() -> None:
    """Each element of a link is among the features here, alone and in pairs."""
    assert elements().keys() <= FEATURES.keys()


def test_features_stand_alone_and_in_pairs() -> None:
    """A link may have any feature, and any queue with any shaper: APART lists the exceptions."""
    assert [name for name in FEATURES if _problems(name)] == []
    pairs = itertools.combinations(FEATURES, 2)
    refused = {pair for pair in pairs if _problems(*pair)}
    assert refused == {(one, other) for one, others in APART.items() for other in others}


@pytest.mark.parametrize(
    ("names", "sentences"),
    [
        (["aqm", "ack_queue", "dtm"], [".ack_queue: a link has one queue; got 'own'"]),
        (
            ["ack_queue", "impairments"],
            [".impairments: ack_queue uses the delay's netem in another way"],
        ),
    ],
)
def test_the_first_says_why(names: list[str], sentences: list[str]) -> None:
    """Each refused field is named once, with the reason that the stage's first field gives."""
    assert _problems(*names) == [f"directions.forward{sentence}" for sentence in sentences]
