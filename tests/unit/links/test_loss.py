"""Losses of a link: netem's arguments, and the values to read back."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from support.running import SMALL, write_experiment

from twoway.contract.network import START_NS
from twoway.contract.plan import Check
from twoway.description.experiment import Profile
from twoway.description.placement import placement_problems
from twoway.description.rules import profile_problems
from twoway.description.topology import load_topology
from twoway.errors import SpecError
from twoway.links.loss import Loss
from twoway.paths import TOPOLOGIES
from twoway.plan.plan import build_plan
from twoway.runs.points import load_point

LINE = {"rate_mbit": 8, "queue_packets": 9, "delay_ms": 8}


def test_single_losses() -> None:
    """Without bursts losses are independent."""
    loss = Loss(percent=0.1)
    assert loss.arguments == ("loss", "random", "0.1%")
    assert loss.readback() == ((("options", "loss-random", "loss"), 0.001),)


@pytest.mark.parametrize("percent", [0, 50, 60, 99.9, 100])
def test_any_share_may_be_lost(percent: float) -> None:
    """`percent` and `schedule` have the same limits, 0 and 100."""
    loss = Loss(percent=percent)
    assert (loss.problems(), Loss(schedule=[(0, percent)]).problems()) == ([], [])
    assert loss.arguments == Loss(schedule=[(0, percent)]).arguments
    assert loss.mean_burst >= (2 if percent else 1)


def test_small_shares_are_read_back_as_netem_has_them() -> None:
    """A share of 0.001 % reads back as 1.00001e-05, because netem keeps it in 32 bits."""
    assert Loss(percent=0.001).readback() == ((("options", "loss-random", "loss"), 1.00001e-05),)


def test_bursts_keep_the_share() -> None:
    """Bursts of 4 begin with probability e and end with 1/4; the share lost is e / (e + 1/4)."""
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
    """With `every: N` a tc action drops each N-th packet, and netem drops none."""
    loss = Loss(every=4)
    assert (loss.arguments, loss.readback(), loss.share, loss.mean_burst) == ((), (), 0.25, 1)
    assert loss.lines("r1-eth0") == (
        "qdisc add dev r1-eth0 clsact",
        "filter add dev r1-eth0 egress matchall action gact pass random determ drop 4",
    )
    assert loss.counted_out(9).nonzero()[0].tolist() == [3, 7]


ONE_OF = ": takes one of percent, every and schedule; got"
BETWEEN = "%: a packet arrives between two bursts"


@pytest.mark.parametrize(
    ("loss", "problem"),
    [
        ({}, f"{ONE_OF} none"),
        ({"percent": 1, "every": 9}, f"{ONE_OF} percent and every"),
        ({"every": 9, "schedule": [[0, 1]]}, f"{ONE_OF} every and schedule"),
        ({"every": 9, "burst_packets": 2}, ".burst_packets: needs percent, got 2"),
        (
            {"percent": 60, "burst_packets": 1},
            f".burst_packets: bursts of 1 cannot lose 60 {BETWEEN}",
        ),
        (
            {"percent": 100, "burst_packets": 9},
            f".burst_packets: bursts of 9 cannot lose 100 {BETWEEN}",
        ),
        ({"schedule": [[0, 1]], "burst_packets": 2}, ".burst_packets: needs percent, got 2"),
        ({"percent": 1, "repeat_s": 2}, ".repeat_s: needs a schedule, got 2"),
        ({"schedule": [[1, 1]]}, ".schedule.0: the first is from 0 s on, got 1"),
        (
            {"schedule": [[0, 1], [1, 2]], "repeat_s": 1},
            ".repeat_s: must be after the last (1 s), got 1",
        ),
        (
            {"schedule": [[0, 1], [1, 2]], "repeat_s": 1.0005},
            ".schedule: each value must last at least 1 ms, got 0.0005 s",
        ),
    ],
)
def test_a_link_loses_by_chance_by_count_or_by_time(loss: dict[str, Any], problem: str) -> None:
    """A loss has one of percent, every and schedule, and only the fields that belong to it."""
    profile = {"schema": 1, "title": "t", "directions": {"forward": LINE | {"loss": loss}}}
    found = profile_problems(Profile.model_validate(profile))
    assert found == [f"directions.forward.loss{problem}"]


def test_a_schedule_becomes_commands_at_its_times(tmp_path: Path) -> None:
    """The first share is set before the traffic, and tc changes it until the traffic ends."""
    loss = {"schedule": [[0, 0], [0.5, 2.5]], "repeat_s": 0.8}
    plan = build_plan(load_point(str(_experiment(tmp_path, loss, 1.5))))
    queues = (s for s in plan.setup if isinstance(s, Check) and "tc" in s.run)
    (before,) = (step.stdin for step in queues if step.node == "r2")
    assert "qdisc replace dev r2-eth0 root handle 1: netem limit 1482 delay 8000us" in before
    start = "qdisc change dev r2-eth0 root netem limit 1482 delay 8000us"
    assert [(each.at_ns - START_NS, each.node, *each.stdin) for each in plan.changes] == [
        (500_000_000, "r2", f"{start} loss random 2.5%"),
        (800_000_000, "r2", start),
        (1_300_000_000, "r2", f"{start} loss random 2.5%"),
    ]
    assert plan.guest_only == ("directions.forward.loss",)


def test_a_run_has_a_thousand_changes_at_most(tmp_path: Path) -> None:
    """A schedule of more than 1000 changes is refused, with their number."""
    loss = {"schedule": [[0, 0], [0.001, 1]], "repeat_s": 0.002}
    load_point(str(_experiment(tmp_path, loss, 1)))
    with pytest.raises(SpecError) as caught:
        load_point(str(_experiment(tmp_path, loss, 1.001)))
    (problem,) = caught.value.problems
    assert problem.endswith("loss.schedule: a run has 1000 changes at most, got 1002")


def _experiment(folder: Path, loss: dict[str, Any], duration_s: float) -> Path:
    """Make an experiment whose link loses packets forward, and none in reverse."""
    directions = {"forward": LINE | {"loss": loss}, "reverse": LINE}
    profile = {"schema": 1, "title": "t", "directions": directions}
    (folder / "lossy.yml").write_text(yaml.safe_dump(profile))
    stack = {"mtu_bytes": 1500}
    times = {"duration_s": duration_s, "warm_up_s": 0.1}
    return write_experiment(folder, {**SMALL, "profile": "lossy", "stack": stack, **times})


def test_a_count_is_of_one_place() -> None:
    """A direction with delays at two places cannot lose packets by count."""
    directions = {"forward": LINE | {"loss": {"every": 9}}, "reverse": LINE}
    profile = Profile.model_validate({"schema": 1, "title": "t", "directions": directions})
    graph = load_topology(TOPOLOGIES / "dumbbell.py", {"pairs": 2})
    (problem,) = placement_problems(profile, graph)
    assert problem.startswith("directions.forward.loss: takes a direction with one queue")
