"""A multi-host run: a plan shared among hosts, whose artifacts become one run."""

import json
from pathlib import Path
from typing import Any

import pytest

from twoway.contract.plan import PLAN, Command, MakeNetwork, Plan, Step, Times, read_plan
from twoway.description.point import Point
from twoway.errors import UsageError
from twoway.lab.multihost_plan import Place, shares
from twoway.lab.multihost_run import Multihost, clock
from twoway.manifest import MACHINE, HostClock, Kernel, Machine
from twoway.plan.plan import build_plan
from twoway.runs.points import load_point

PLACES = {
    "left": Place(nodes=["h1"], links={"h1-eth0": "enp1s0"}),
    "middle": Place(nodes=["r1", "r2"], links={"r1-eth0": "enp1s0", "r2-eth0": "enp2s0"}),
    "right": Place(nodes=["h2"], links={"h2-eth0": "enp1s0"}),
}
PARTS = ("setup", "recorders", "captures", "at_start", "changes", "sinks", "sources", "teardown")


@pytest.fixture
def point(small: Path) -> Point:
    """A short two-way exchange."""
    return load_point(str(small))


def _without_lent(shared: dict[str, Plan]) -> dict[str, Plan]:
    """Leave out the steps of lent interfaces, which the whole plan does not have."""
    return {
        machine: plan.model_copy(update={"setup": tuple(s for s in plan.setup if not _lent(s))})
        for machine, plan in shared.items()
    }


def _lent(step: Step) -> bool:
    return isinstance(step, Command) and step.run[:3] == ("ip", "link", "set")


def test_each_step_is_somebodys(point: Point) -> None:
    """A node's steps are in one share, in order; steps without a node are in every share."""
    plan, shared = build_plan(point), _without_lent(shares(point, PLACES))
    for part in PARTS:
        for machine, place in PLACES.items():
            ours = [s for s in getattr(plan, part) if s.node in (None, *place.nodes)]
            assert [s.node for s in getattr(shared[machine], part)] == [s.node for s in ours]
        of_nodes = [s for share in shared.values() for s in getattr(share, part) if s.node]
        wanted = [s for s in getattr(plan, part) if s.node]
        assert sorted(of_nodes, key=str) == sorted(wanted, key=str)
    assert all(share.clock == plan.clock for share in shared.values())


def test_observers_see_what_is_there(point: Point) -> None:
    """The observer of each machine's share watches only that machine's nodes."""
    seen = {
        machine: [word for word in share.sources[0].run if word[:2] in {"h1", "h2", "r1", "r2"}]
        for machine, share in shares(point, PLACES).items()
    }
    assert seen == {"left": ["h1"], "middle": ["r1/r1-eth1", "r2/r2-eth1"], "right": ["h2"]}


def test_links_within_a_machine(point: Point) -> None:
    """A machine makes links between its nodes; the ends of other links get a MAC address.

    The machine makes no nodes: they exist, with the interfaces that it lends to them.
    """
    shared = shares(point, PLACES)
    made = {
        name: next(s for s in plan.setup if isinstance(s, MakeNetwork))
        for name, plan in shared.items()
    }
    assert [step.nodes for step in made.values()] == [(), (), ()]
    assert (made["left"].stdin, made["right"].stdin) == ((), ())
    (line,) = made["middle"].stdin
    one, other = line.split(" type veth peer ")
    assert one == "link add name r1-eth1 netns r1 address 02:00:00:00:00:04"
    assert other == "name r2-eth1 netns r2 address 02:00:00:00:00:05"
    assert [
        (step.node, " ".join(step.run))
        for step in shared["middle"].setup
        if isinstance(step, Command) and _lent(step)
    ] == [
        ("r1", "ip link set dev r1-eth0 address 02:00:00:00:00:01"),
        ("r2", "ip link set dev r2-eth0 address 02:00:00:00:00:03"),
    ]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "nobody": (
        {"right": None},
        "small: no machine plays h2; the topology has h1, h2, r1, r2",
    ),
    "both": (
        {"other": {"nodes": ["h2"], "links": {"h2-eth0": "enp1s0"}}},
        "small: right and other both play h2",
    ),
    "stranger": (
        {"other": {"nodes": ["h7"], "links": {}}},
        "small: other plays h7, which the topology does not have; it has h1, h2, r1, r2",
    ),
    "no interface": (
        {"right": {"nodes": ["h2"], "links": {}}},
        "small: right: it has no interface h2-eth0, the link to r2-eth0",
    ),
    "no such link": (
        {"right": {"nodes": ["h2"], "links": {"h2-eth0": "enp1s0", "h2-eth1": "enp2s0"}}},
        "small: right: h2-eth1 is not a link to another machine",
    ),
    "inside": (
        {
            "middle": {
                "nodes": ["r1", "r2"],
                "links": {"r1-eth0": "a", "r2-eth0": "b", "r1-eth1": "c"},
            }
        },
        "small: middle: r1-eth1 is not a link to another machine",
    ),
    "twice": (
        {"middle": {"nodes": ["r1", "r2"], "links": {"r1-eth0": "a", "r2-eth0": "a"}}},
        "small: middle: a is r1-eth0 and r2-eth0",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_misplaced_hosts_are_refused(point: Point, what: str) -> None:
    """Hosts that do not fit the topology are refused with a sentence for each problem."""
    changed, sentence = WRONG[what]
    places = {**PLACES, **{k: Place(**v) if v else None for k, v in changed.items()}}
    with pytest.raises(UsageError) as error:
        shares(point, {k: v for k, v in places.items() if v})
    assert str(error.value) == sentence
    assert "twoway_nodes" in error.value.hint


def test_a_clock_between_two_measurements() -> None:
    """Offset and drift are the line through two measurements, with the larger uncertainty."""
    before = {"at_ns": 1000, "offset_ns": 500, "uncertainty_ns": 7}
    after = {"at_ns": 2_000_001_000, "offset_ns": 2500, "uncertainty_ns": 4}
    assert clock(before, after, 1_000_001_000) == HostClock(
        handed_ns=500, offset_ns=1500, drift_ppb=1000.0, uncertainty_ns=7
    )


def test_parts_become_a_run(tmp_path: Path) -> None:
    """Files of one machine are kept; tables of several are merged in time order."""
    for machine, time_ns in (("a", 20), ("b", 10)):
        part = tmp_path / machine
        for folder in ("sockets", "pcap", "log"):
            (part / folder).mkdir(parents=True)
        rows = f"# clock\ntime_ns,node\n{time_ns},{machine}\n{time_ns + 15},{machine}\n"
        (part / "sockets/tcp-info.csv").write_text(rows)
        (part / "sockets/queues.csv").write_text("# clock\ntime_ns,interface\n")
        (part / "sockets/progress.json").write_text("{}")
        (part / f"pcap/{machine}-eth0.pcap").write_text(machine)
        (part / "log/console.txt").write_text(f"{machine}\n")
        (part / "plan.json").write_text("of a share")
        Machine(
            backend="native",
            clock_source="host",
            kernel=Kernel(release="6.1", key=machine),
            modules={},
            git="0" * 12,
            tools={},
            nodes=(f"n{machine}",),
            decisive={},
        ).write(part / MACHINE)
    run = tmp_path / "run"
    run.mkdir()
    plan = Plan(memory_mib=0, clock=Times(start_ns=0))
    plan.write(run / PLAN)
    measured = {"at_ns": 0, "offset_ns": 3, "uncertainty_ns": 1}
    times = {"offset_ns": 9, "before": {"b": measured}, "after": {"b": measured | {"at_ns": 5}}}
    multihost = Multihost({"a": tmp_path / "a", "b": tmp_path / "b"}, times)
    multihost.run(run, lambda _: None)
    assert multihost.took_s == pytest.approx(5e-9)
    table = (run / "sockets/tcp-info.csv").read_text().splitlines()
    assert table == ["# clock", "time_ns,node", "10,b", "20,a", "25,b", "35,a"]
    assert (run / "sockets/queues.csv").read_text() == "# clock\ntime_ns,interface\n"
    assert (run / "log/console.txt").read_text() == "a\nb\n"
    assert [p.read_text() for p in sorted(run.glob("pcap/*"))] == ["a", "b"]
    assert read_plan(run) == plan
    assert multihost.description().kernel == Kernel(release="6.1", key="a, b")
    clocks = json.loads((run / "clock.json").read_text())
    assert clocks["offset_ns"] == 9
    assert clocks["nodes"] == {
        "na": HostClock().model_dump(),
        "nb": HostClock(handed_ns=3, offset_ns=3, uncertainty_ns=1).model_dump(),
    }
    assert not (run / "sockets/progress.json").exists()
