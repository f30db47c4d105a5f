"""Socket options of flows, and qdiscs of hosts, are fields of an experiment."""

from pathlib import Path
from typing import Any

import pytest
from support.plans import planned
from support.running import FLOW, LINUX, problems_of, write_experiment

from twoway.contract.plan import Check, Plan, Program, SetOffloads

LINE = {"rate_mbit": 8, "delay_ms": 8, "queue_packets": 20}
CAKE = {"directions": {"forward": {**LINE, "aqm": "cake"}, "reverse": LINE}}


def ends(plan: Plan) -> list[str]:
    """Return the lines of all ends of connections."""
    programs = [program for program in plan.sources if isinstance(program, Program)]
    return [line for program in programs for line in program.stdin]


def lines(plan: Plan, node: str) -> list[str]:
    """Return the lines of a node's batches."""
    steps = [step for step in plan.setup if isinstance(step, Check) and step.node == node]
    return [line for step in steps for line in step.stdin]


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("nodelay", True, "6,1,1"),
        ("mss_bytes", 536, "6,2,536"),
        ("notsent_lowat_bytes", 16384, "6,25,16384"),
        ("user_timeout_ms", 5000, "6,18,5000"),
        ("max_pacing_rate_mbit", 2, "1,47,250000"),
        ("send_buffer_bytes", 50_000, "1,7,50000"),
    ],
)
def test_an_option_has_its_numbers(tmp_path: Path, option: str, value: Any, words: str) -> None:
    """Each option reaches the source as the numbers of setsockopt; its buffer replaces ours."""
    stack = {"preset": "papers"}
    flows = [{**FLOW, "socket": {option: value}}]
    (source, _) = ends(planned(tmp_path, {**LINUX, "stack": stack, "flows": flows}))
    assert source.endswith(f" --option {words}")
    assert ("--send-buffer" in source) == (option != "send_buffer_bytes")


def test_the_receivers_buffer(tmp_path: Path) -> None:
    """A flow's receive buffer is its sink's."""
    flows = [{**FLOW, "socket": {"receive_buffer_bytes": 70_000}}]
    (_, sink) = ends(planned(tmp_path, {**LINUX, "flows": flows}))
    assert sink.endswith(" --receive-buffer 70000 --at-once")


@pytest.mark.parametrize(
    ("qdisc", "words"),
    [("fq", "fq"), ({"tc": "fq maxrate 20mbit"}, "fq maxrate 20mbit"), (None, "pfifo_fast")],
)
def test_a_host_has_its_qdisc(tmp_path: Path, qdisc: Any, words: str) -> None:
    """A host's interface has the qdisc of its field, and its queue's length."""
    plan = planned(tmp_path, {**LINUX, "hosts": {"h1": {"qdisc": qdisc, "txqueuelen": 50}}})
    assert f"qdisc replace dev h1-eth0 root handle 1: {words}" in lines(plan, "h1")
    assert "link set dev h1-eth0 mtu 1500 gso_max_segs 65535 txqueuelen 50" in lines(plan, "h1")
    assert "qdisc replace dev h2-eth0 root handle 1: pfifo_fast" in lines(plan, "h2")


@pytest.mark.parametrize(
    ("host", "on"),
    [
        ({}, {}),
        ({"gro": True}, {"h1": {"gro"}}),
        ({"gso": True}, {n: {"tso", "gso", "tx", "rx", "sg"} for n in ("h1", "r1", "r2")}),
    ],
)
def test_offloads_that_are_on(
    tmp_path: Path, host: dict[str, Any], on: dict[str, set[str]]
) -> None:
    """GRO is one host's; packets of many segments stay whole at their host and at all routers."""
    plan = planned(tmp_path, {**LINUX, "hosts": {"h1": host}})
    steps = [step for step in plan.setup if isinstance(step, SetOffloads)]
    every = {"tso", "gso", "gro", "tx", "rx", "sg"}
    assert {s.node: every - {*s.off} for s in steps if every - {*s.off}} == on


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            {"flows": [{**FLOW, "socket": {"mss_bytes": 10}}]},
            "flows.0.socket.mss_bytes: must be greater than or equal to 88, got 10",
        ),
        (
            {"flows": [{**FLOW, "socket": {"dscp": 64}}]},
            "flows.0.socket.dscp: must be less than or equal to 63, got 64",
        ),
        (
            {"flows": [{**FLOW, "socket": {"no_delay": True}}]},
            'flows.0.socket.no_delay: unknown field; did you mean "nodelay"?',
        ),
        (
            {"hosts": {"h1": {"gso": True}}, "profile": CAKE},
            "hosts.h1.gso: directions.forward.aqm cuts packets of many segments",
        ),
        (
            {"hosts": {"h1": {"gso": True}}, "profile": "made-cell"},
            "hosts.h1.gso: directions.forward.rate cuts packets of many segments",
        ),
        ({"hosts": {"h1": {"txqueuelen": -1}}}, "hosts.h1.txqueuelen: must be greater than"),
        (
            {"hosts": {"h1": {"qdisc": "fq_codl"}}},
            ('hosts.h1.qdisc: the guest\'s kernel has no qdisc fq_codl; did you mean "fq_codel"?'),
        ),
        ({"hosts": {"h1": {"qdisc": {"tc": "fq; reboot"}}}}, "hosts.h1.qdisc.tc: must be words"),
    ],
)
def test_a_mistake_has_a_sentence(tmp_path: Path, fields: dict[str, Any], problem: str) -> None:
    """A value that does not fit has a sentence with its field."""
    found = problems_of(write_experiment(tmp_path, {**LINUX, **fields}))
    assert any(each.startswith(problem) for each in found), found
