"""The plan is complete and in order, wherever and whenever it is made."""

import copy
import sys
from pathlib import Path
from typing import Any

import pytest
from support.plans import planned
from support.running import ROOT, SMALL, ran, write_experiment
from support.warm_command import twoway

from twoway.contract.plan import Check, Command, LoadModule, Plan, Reading
from twoway.description.connections import passed_queues
from twoway.description.topology import load_topology
from twoway.errors import SpecError
from twoway.paths import TOPOLOGIES
from twoway.plan.plan import build_plan
from twoway.plan.shaping import compile_profile
from twoway.runs.points import load_point


def _plan(tmp_path: Path, **changes: Any) -> Plan:
    return planned(tmp_path, SMALL | changes)


def _routes(plan: Plan) -> list[str]:
    """Return the lines that set h1's routes."""
    checks = [step for step in plan.setup if step.kind == "check" and step.node == "h1"]
    return [line for step in checks for line in step.stdin if "route replace" in line]


def _readings(plan: Plan) -> dict[str, Reading]:
    """Return the readings, by file."""
    return {r.file: r for step in plan.setup if step.kind == "check" for r in step.readings}


def _route_metrics(plan: Plan) -> dict[str, Any]:
    """Return the values that h1's route must have, by metric."""
    expected = _readings(plan)["stack/h1-route.json"].expect
    return {each.path[-1]: each.value for each in expected}


def test_plan_says_nothing_of_where_the_checkout_is(tmp_path: Path) -> None:
    """No host path reaches the guest: two checkouts have equal plans."""
    text = _plan(tmp_path).model_dump_json()
    assert str(ROOT) not in text
    assert str(tmp_path) not in text


def test_windows_are_loaded_once_each(tmp_path: Path) -> None:
    """tcp_fixed is loaded once, with each window that flows use."""
    first = _plan(tmp_path).setup[1]
    assert first == LoadModule(module="tcp_fixed", parameters={"windows": "20,28"})
    assert first.run == ("insmod", "/mnt/bin/tcp_fixed.ko", "windows=20,28")


def test_many_connections_are_sampled_less_often(tmp_path: Path) -> None:
    """Samples are 10 ms apart, 25 ms of 250 connections, and as far as the experiment says."""
    many = {**SMALL["flows"][0], "count": 250}
    for changes, interval_ms in (
        ({}, 10),
        ({"flows": [many]}, 25),
        ({"flows": [many], "observe": {"tcp_info_ms": 10}}, 10),
    ):
        observe = next(p for p in _plan(tmp_path, **changes).programs if p.kind == "observe")
        assert observe.interval_ns == interval_ms * 1_000_000


def test_a_line_in_congestion_is_all_that_a_control_needs(tmp_path: Path) -> None:
    """One line in CONTROLS makes a control a choice for flows, and loads its module."""
    flow = {"name": "left", "from": "h1", "to": "h2", "congestion": "mine"}
    path = write_experiment(tmp_path, {**SMALL, "flows": [flow]})
    script = f"""
from twoway.description.congestion import CONTROLS, Control
CONTROLS["mine"] = Control("tcp_mine")
from twoway.runs.points import load_point
from twoway.description.connections import passed_queues
from twoway.plan.plan import build_plan
from twoway.plan.shaping import compile_profile
print(build_plan(load_point({str(path)!r})).modules)
"""
    done = ran([sys.executable, "-c", script], check=True, cwd=ROOT)
    assert done.stdout == "['tcp_mine.ko']\n"


def test_own_modules_travel_in_the_plan(tmp_path: Path) -> None:
    """A module that belongs to an experiment is loaded from its sources, which are in the plan."""
    (tmp_path / "tcp_toy.c").write_text(
        """
module_param(beta, uint, 0444);
static struct tcp_congestion_ops toy = {
	.name = "toy",
};
""",
        "utf-8",
    )
    flow = {"name": "left", "from": "h1", "to": "h2", "congestion": "toy"}
    own = {"own_modules": ["tcp_toy.c"], "modules": {"tcp_toy": {"beta": 3}}}
    plan = _plan(tmp_path, **own, flows=[flow])
    (load,) = plan.own_modules
    assert load == plan.setup[1]
    assert plan.modules == []
    assert load.run == ("insmod", "/mnt/own-modules/tcp_toy.ko", "beta=3")
    assert [*load.sources] == ["tcp_toy.c", "Kbuild"]


def test_captures_cover_both_sides_of_each_queue(tmp_path: Path) -> None:
    """Hosts are captured in both directions, routers before and after each bottleneck queue."""
    taps = {c.interface: c.direction for c in _plan(tmp_path).captures}
    assert taps == {
        "h1-eth0": "inout",
        "h2-eth0": "inout",
        "r1-eth0": "in",
        "r1-eth1": "out",
        "r2-eth0": "in",
        "r2-eth1": "out",
    }


def test_every_knob_set_on_a_host_is_read_back(tmp_path: Path) -> None:
    """Each node's links and qdiscs are read back, and each interface's offloads are set."""
    plan = _plan(tmp_path)
    names = ("stack/h1-link", "stack/h1-route", "qdisc/h1-before", "qdisc/r1-before")
    assert {*_readings(plan)} >= {f"{name}.json" for name in names}
    off = {step.interface: step.off for step in plan.setup if step.kind == "set_offloads"}
    interfaces = ("h1-eth0", "h2-eth0", "r1-eth0", "r1-eth1", "r2-eth0", "r2-eth1")
    assert off == dict.fromkeys(interfaces, ("tso", "gso", "gro", "tx", "rx", "sg"))


@pytest.mark.parametrize(
    ("stack", "recovery", "frto", "least"),
    [
        ({}, 1, 2, 200),
        ({"rack": False, "spurious_timeout_detection": False, "rto_min_ms": 1000}, 0, 0, 1000),
    ],
)
def test_loss_detection_is_set_and_read_back(
    tmp_path: Path, stack: dict[str, Any], recovery: int, frto: int, least: int
) -> None:
    """RACK, F-RTO and the least timeout are set from the stack; the defaults are Linux's."""
    plan = _plan(tmp_path, stack={"mtu_bytes": 9180} | stack)
    (sysctls,) = [s.sysctls for s in plan.setup if s.kind == "set_sysctls" and s.node == "h1"]
    assert (sysctls["net.ipv4.tcp_recovery"], sysctls["net.ipv4.tcp_frto"]) == (recovery, frto)
    assert [f"rto_min {least}ms" in route for route in _routes(plan)] == [True]
    assert _route_metrics(plan)["rto_min"] == least


def test_delayed_acks_leave_quickack_out(tmp_path: Path) -> None:
    """With acks: delayed no route asks for an ACK per segment."""
    stack = {"mtu_bytes": 9180, "acks": "delayed"}
    assert "quickack" not in _plan(tmp_path, stack=stack).model_dump_json()


@pytest.mark.parametrize(
    ("ecn", "sender", "control"), [(True, "h2", "dctcp"), (True, "h1", None), (False, "h2", None)]
)
@pytest.mark.parametrize("sends", ["dctcp", "prague"])
def test_who_accepts_dctcp(
    tmp_path: Path, sends: str, ecn: bool, sender: str, control: str | None
) -> None:
    """With ECN, hosts that receive a flow of DCTCP or Prague accept with DCTCP, and no others."""
    (receiver,) = {"h1", "h2"} - {sender}
    flow = {"name": "flow", "from": sender, "to": receiver, "congestion": sends}
    plan = _plan(tmp_path, flows=[flow], stack={"mtu_bytes": 9180, "ecn": ecn})
    assert [f" congctl {control}" in route for route in _routes(plan)] == [control is not None]
    assert _route_metrics(plan).get("congestion") == control


def test_segments_that_a_sender_may_join(tmp_path: Path) -> None:
    """A stack's gso_max_segs is set on each interface and read back; 1 by default."""
    for stack, most in (({}, 1), ({"gso_max_segs": 64}, 64)):
        plan = _plan(tmp_path, stack={"mtu_bytes": 9180} | stack)
        text = plan.model_dump_json()
        assert text.count("gso_max_segs ") == text.count(f"gso_max_segs {most}") == 6
        expected = _readings(plan)["stack/h1-link.json"].expect
        assert [e.value for e in expected if e.path[-1] == "gso_max_segs"] == [most]


def test_counted_flows_get_names_and_ports_of_their_own(tmp_path: Path) -> None:
    """Three connections of one flow are sent by one program, with different ports."""
    flows = [{**SMALL["flows"][0], "count": 3}]
    source, sink = _plan(tmp_path, flows=flows).sources[1:]
    assert [source.name, sink.name] == ["stream-h1", "stream-h2"]
    lines = [line.split() for line in source.stdin]
    assert [words[:2] for words in lines] == [["send", f"left-{n}"] for n in (1, 2, 3)]
    assert len({words[words.index("--port") + 1] for words in lines}) == 3


def test_plan_command_prints_commands_without_running_any() -> None:
    """`twoway plan` shows tc's lines and leaves no results."""
    done = twoway("plan", "kalampoukas-5.2")
    assert done.returncode == 0
    assert "netem limit 1000 rate 131000000bit -14 0 0" in done.stdout


def test_dumbbell_has_hosts_on_both_sides() -> None:
    """A dumbbell of three pairs has six hosts, two routers and one queue in each direction."""
    graph = load_topology(TOPOLOGIES / "dumbbell.py", {"pairs": 3})
    assert graph.hosts == ("l1", "l2", "l3", "r1", "r2", "r3")
    assert graph.routers == ("s1", "s2")
    assert [i.name for i in graph.queues["forward"]] == ["s1-eth3"]
    assert [i.name for i in graph.delays["forward"]] == ["s2-eth0", "s2-eth1", "s2-eth2"]


def test_r1_has_long_and_short_channels() -> None:
    """r1 has six hosts, two long channels and a short one each way, delayed at the far end."""
    graph = load_topology(TOPOLOGIES / "r1.py", {})
    assert len(graph.hosts) == 6
    assert [i.node for i in graph.queues["long-forward"]] == ["a1", "a2"]
    assert [i.node for i in graph.queues["short-reverse"]] == ["b3"]
    assert [i.peer_node for i in graph.delays["long-reverse"]] == ["l1", "l2"]


def test_dctcp_racks_have_two_bottlenecks_in_a_row() -> None:
    """S1's data pass trunk and port, S2's the trunk, S3's the port; ACKs pass card and trunk."""
    graph = load_topology(TOPOLOGIES / "dctcp_racks.py", {})
    assert (len(graph.hosts), graph.routers) == (61, ("n1", "t1", "t2"))
    paths = (("s1h10", "r1"), ("r1", "s1h10"), ("s2h20", "r2h20"), ("s3h1", "r1"), ("r1", "s3h1"))
    assert [[*passed_queues(graph, *ends)] for ends in paths] == [
        ["trunk", "port"],
        ["card", "trunk-back"],
        ["trunk"],
        ["port"],
        ["card"],
    ]


def test_a_switch_marks_what_waits_as_long_as_k_packets() -> None:
    """Thresholds of dctcp-racks are 65 and 20 transmission times of a full packet, in whole us."""
    point = load_point("dctcp-racks@acks=delayed")
    shapers = compile_profile(point.profile, point.graph)
    queues = {shaper.interface.name: " ".join(shaper.inner) for shaper in shapers}
    for name, packets, bit_ns in (("t1-eth0", 65, 0.1), ("t2-eth1", 20, 1)):
        threshold_us = round(packets * 1538 * 8 * bit_ns / 1000)
        assert queues[name].endswith(f"codel limit 2666 ecn ce_threshold {threshold_us}us")


def test_a_pool_is_made_in_a_node_before_its_channels() -> None:
    """A pool's slots exist before the first channel joins, in the namespace of a member."""
    commands = [
        (step.node, " ".join((*step.run, *step.stdin)))
        for step in build_plan(load_point("dtm-bus@owned=5")).setup
        if isinstance(step, Command | Check)
    ]
    (made,) = [i for i, (_, run) in enumerate(commands) if "pool add" in run]
    joins = [i for i, (_, run) in enumerate(commands) if "pool bus owned 5" in run]
    assert commands[made] == ("n1", "/mnt/bin/dtm pool add bus slots 20")
    assert [commands[i][0] for i in joins] == ["n1", "n2"]
    assert ["netns n1" in commands[i][1] for i in joins] == [False, True]
    assert made < min(joins)


def test_client_server_has_a_channel_for_each_client() -> None:
    """Each client's channel has a queue per direction; the server has one interface."""
    graph = load_topology(TOPOLOGIES / "client_server.py", {"clients": 2})
    assert [(i.node, i.peer_node) for i in graph.queues["down"]] == [("j1", "k1"), ("j2", "k2")]
    assert [(i.node, i.peer_node) for i in graph.queues["up"]] == [("k1", "j1"), ("k2", "j2")]
    assert len(graph.interfaces_of("sv")) == 1


def test_a_dumbbell_has_up_to_250_pairs() -> None:
    """250 pairs have addresses of their own; a topology's own exception reaches the user."""
    graph = load_topology(TOPOLOGIES / "dumbbell.py", {"pairs": 250})
    assert len(graph.hosts) == 500
    for each in ("address", "mac"):
        assert len({getattr(i, each) for i in graph.interfaces}) == len(graph.interfaces) == 1002
    for pairs in (0, 251):
        complaint = rf"dumbbell.py: line \d+: ValueError: pairs must be 1..250, got {pairs}"
        with pytest.raises(SpecError, match=complaint):
            load_topology(TOPOLOGIES / "dumbbell.py", {"pairs": pairs})


def test_flow_without_connections_sends_nothing(tmp_path: Path) -> None:
    """A count of 0 leaves the flow out: each host's program keeps only the other end."""
    flows = copy.deepcopy(SMALL["flows"])
    flows[1]["count"] = 0
    plan = _plan(tmp_path, flows=flows)
    ends = [line.split()[:2] for program in plan.sources for line in program.stdin]
    assert ends == [["send", "left"], ["receive", "left"]]


def test_receive_window_is_on_the_route_and_read_back(tmp_path: Path) -> None:
    """A route's window is the receive window in bytes: 28 segments of 9140."""
    plan = _plan(tmp_path, stack={"mtu_bytes": 9180, "receive_window_packets": 28})
    assert ["window 255920" in route for route in _routes(plan)] == [True]
    assert _route_metrics(plan)["window"] == 255920


def test_dtm_channel_is_recorded_and_starts_with_the_traffic() -> None:
    """sch_dtm is loaded, its events are recorded, and its clock starts with the traffic."""
    plan = build_plan(load_point("dtm-fig2"))
    assert plan.modules == ["sch_dtm.ko"]
    assert [(r.node, r.run) for r in plan.recorders] == [("r3", ("/mnt/bin/dtm", "events"))]
    (restart,) = plan.at_start
    assert restart.kind == "command"
    assert restart.node == "r3"
    assert " ".join(restart.run).startswith(
        "env TC_LIB_DIR=/mnt/bin tc qdisc change dev r3-eth1 root dtm slots 20 limit 100 "
    )


def test_bottleneck_of_a_path_is_its_slowest_queue() -> None:
    """The bottleneck of data, and that of ACKs, is the slowest queue of their path."""
    (connection,) = load_point("dtm-fig2").connections
    assert (connection.direction, connection.ack_direction) == ("bottleneck", "return")


def test_a_switch_floods_and_learns_nothing() -> None:
    """A switch has a fixed table of addresses, which is read back, and no IPv6."""
    plan = build_plan(load_point("switches@ip=6,network=linuxrouter"))
    (bridge,) = (
        s for s in plan.setup if s.node == "s3" and getattr(s, "run", "")[:1] == ("bridge",)
    )
    graph = load_topology(TOPOLOGIES / "linuxrouter.py", {})
    macs = {each.name: each.mac for each in graph.interfaces}
    table = {macs["h3-eth0"]: "s3-eth2", macs["r0-eth3"]: "s3-eth1"}
    assert isinstance(bridge, Check)
    assert bridge.stdin == (
        "link set dev s3-eth2 learning off flood off",
        "link set dev s3-eth1 learning off flood off",
        *(f"fdb replace {mac} dev {port} master static" for mac, port in table.items()),
        "link show",
        "fdb show",
    )
    ports, addresses = (
        {each.path: each.value for each in reading.expect} for reading in bridge.readings
    )
    assert ports == {
        (port, word): False for port in table.values() for word in ("learning", "flood")
    }
    assert addresses == {(mac, "ifname"): port for mac, port in table.items()}
    off = {step.node: step.sysctls for step in plan.setup if step.kind == "set_sysctls"}
    assert off["s3"]["net.ipv6.conf.all.disable_ipv6"] == 1
    assert off["h3"]["net.ipv6.conf.all.disable_ipv6"] == 0


def test_plan_shows_every_command() -> None:
    """`twoway plan` prints each program of the guest, in whatever part of the plan."""
    plan = build_plan(load_point("dtm-fig2"), in_kernel=True)
    shown = twoway("plan", "dtm-fig2").stdout
    for part in (value for _, value in plan if isinstance(value, tuple)):
        for step in part:
            if step.kind not in ("set_sysctls", "set_offloads", "set_parameters", "copy"):
                assert " ".join(step.run) in shown
            for line in getattr(step, "lines", ()):
                assert line.text in shown
