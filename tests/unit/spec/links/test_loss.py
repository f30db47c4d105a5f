"""Losses of a link: what netem is told, and what of it must be read back."""

import pytest

from twoway.paths import TOPOLOGIES
from twoway.spec.experiment import Profile
from twoway.spec.links.loss import Loss
from twoway.spec.placement import placement_problems
from twoway.spec.rules import profile_problems
from twoway.spec.topology import load_topology


def test_single_losses() -> None:
    """Without bursts each packet is lost by itself."""
    loss = Loss(percent=0.1)
    assert loss.arguments == ("loss", "random", "0.1%")
    assert loss.readback() == ((("options", "loss-random", "loss"), 0.001),)


def test_bursts_keep_the_share() -> None:
    """A link that enters bursts of 4 with chance e and leaves them with 1/4 loses e / (e + 1/4)."""
    loss = Loss(percent=20, burst_packets=4)
    enter, leave = loss.chances()
    assert leave == 0.25
    assert enter / (enter + leave) == pytest.approx(0.2, rel=1e-12)
    assert loss.arguments == ("loss", "gemodel", "6.25%", "25%")
    assert dict(loss.readback()) == {
        ("options", "loss-gemodel", "p"): 0.0625,
        ("options", "loss-gemodel", "r"): 0.25,
        ("options", "loss-gemodel", "1-h"): 1,
        ("options", "loss-gemodel", "1-k"): 0,
    }


def test_one_in_a_number_is_counted_by_an_action() -> None:
    """The kernel's counter drops each N-th packet, and netem none."""
    loss = Loss(every=4)
    assert (loss.arguments, loss.readback(), loss.share, loss.mean_burst) == ((), (), 0.25, 1)
    assert loss.lines("r1-eth0") == (
        "qdisc add dev r1-eth0 clsact",
        "filter add dev r1-eth0 egress matchall action gact pass random determ drop 4",
    )
    assert loss.counted_out(9).nonzero()[0].tolist() == [3, 7]


@pytest.mark.parametrize(
    ("loss", "problem"),
    [
        ({}, ": takes one of percent and every; got none"),
        ({"percent": 1, "every": 9}, ": takes one of percent and every; got both"),
        ({"every": 9, "burst_packets": 2}, ".burst_packets: needs percent, got 2"),
    ],
)
def test_a_link_loses_by_chance_or_by_count(loss: dict[str, float], problem: str) -> None:
    """A share and a count exclude each other, and bursts have a share."""
    direction = {"rate_mbit": 8, "queue_packets": 9, "delay_ms": 8, "loss": loss}
    profile = Profile.model_validate(
        {"schema": 1, "title": "t", "directions": {"forward": direction}}
    )
    assert profile_problems(profile) == [f"directions.forward.loss{problem}"]


def test_a_count_is_of_one_place() -> None:
    """Where a direction has delays at two places, packets of neither are counted together."""
    line = {"rate_mbit": 8, "queue_packets": 9, "delay_ms": 8}
    directions = {"forward": line | {"loss": {"every": 9}}, "reverse": line}
    profile = Profile.model_validate({"schema": 1, "title": "t", "directions": directions})
    graph = load_topology(TOPOLOGIES / "dumbbell.py", {"pairs": 2})
    (problem,) = placement_problems(profile, graph)
    assert problem.startswith("directions.forward.loss: takes a direction with one queue")
