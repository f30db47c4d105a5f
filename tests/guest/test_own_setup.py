"""The guest runs the commands that set up its hosts and routers."""

from pathlib import Path
from typing import Any

import pytest
from support.running import FLOW, LINUX, measure, write_experiment
from support.runs import carry_out
from support.warm_command import twoway

from twoway.contract.judge import Verdict
from twoway.contract.verdicts import Verdicts
from twoway.report.report import analyse_run

pytestmark = pytest.mark.usefixtures("guest")


def run(folder: Path, setup: str, *options: str) -> Any:
    """Run two seconds of traffic on hosts that a command sets up."""
    nodes = {"hosts": {"h1": {"setup": setup}}, "flows": [FLOW], "duration_s": 2}
    path = write_experiment(folder, {**LINUX, **nodes})
    return twoway("run", path, "--results", folder / "results", *options)


def test_a_command_acts_on_its_host(tmp_path: Path) -> None:
    """A command at h1 that takes its default route away stops the flow from there."""
    done = run(tmp_path, "ip route del default\nip route add default via 10.0.1.1")
    assert done.returncode == 0, done.stderr
    assert "not proven: that the network is as hosts.h1.setup should make it" in done.stderr
    assert run(tmp_path, "ip route del default").returncode == 1


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("ip link add g1 type gre remote 10.0.2.2", "Error: Unknown device type."),
        ("false", "exit status 1"),
        ("echo no; exit 3", "no"),
    ],
)
def test_a_command_that_fails(tmp_path: Path, command: str, said: str) -> None:
    """A command that fails is named with file, field, line and its program's words."""
    done = run(tmp_path, f"true\n{command}")
    assert done.returncode == 1
    assert f": hosts.h1.setup: line 2: {command}: {said}" in done.stderr
    assert ("`kernel: wide` has MPTCP, tunnels" in done.stderr) == ("type gre" in command)
    assert [path.suffix for path in (tmp_path / "results").glob("*/2*")] == [".partial"]


def judged(folder: Path, fields: dict[str, Any]) -> Verdicts:
    """Run an experiment for two seconds, and judge it."""
    path = write_experiment(folder, {**LINUX, "duration_s": 2, **fields})
    return analyse_run(carry_out(path, folder / "results"))


TBF = "tc qdisc replace dev r1-eth1 root handle 7: tbf rate 4mbit burst 5k limit 30000"
POLICE = """
tc qdisc add dev r1-eth0 ingress
tc filter add dev r1-eth0 ingress matchall action police rate 4mbit burst 20k
"""
CUT = {
    "profile": {
        "directions": {
            "forward": {"rate_mbit": 8, "delay_ms": 8, "queue_packets": 50, "mtu_bytes": 1000},
            "reverse": {"rate_mbit": 8, "delay_ms": 8, "queue_packets": 50},
        }
    },
    "stack": {"preset": "linux", "sysctls": {"net.ipv4.ip_no_pmtu_disc": 1}},
}


@pytest.mark.parametrize(
    ("fields", "unproven"),
    [
        ({"routers": {"r1": {"setup": TBF}}}, "forward: worst departure error"),
        ({"routers": {"r1": {"setup": POLICE}}}, "forward: the fate of packets that came"),
        (CUT, "forward: the wait of packets that its router made"),
    ],
)
def test_what_a_router_changes_fails_no_run(
    tmp_path: Path, fields: dict[str, Any], unproven: str
) -> None:
    """A router's own qdisc, filter or fragments leave a check unproven, and others hold."""
    found = judged(tmp_path, fields)
    assert found.misses == []
    (row,) = (each for each in found.fidelity if each.check.startswith(unproven))
    assert row.verdict is Verdict.NOT_PROVEN
    assert "not proven" in found.headline
    assert "reverse: worst departure error, ns" in [
        each.check for each in found.fidelity if each.verdict is Verdict.PASS
    ]


def test_a_program_loses_nothing_to_fragments(tmp_path: Path) -> None:
    """If a router cuts datagrams, it cannot be told how many are lost."""
    send = ["sh", "-c", "head -c 20000 /dev/zero | socat -b 4000 -u - UDP:h2:9"]
    programs = [{"name": "client", "host": "h1", "start_s": 0.5, "command": send}]
    path = write_experiment(tmp_path, {**LINUX, **CUT, "flows": [], "programs": programs})
    found = measure(path, tmp_path / "results")["found"]
    rows = [each["forward"] for each in found if each["protocol"] == "udp"]
    assert [(row["packets"], row["lost"]) for row in rows] == [(10, None), (5, None)]


def test_routes_change_and_change_back(tmp_path: Path) -> None:
    """Each packet passes the queue to which the routes of its time lead, and its checks hold."""
    line = {"rate_mbit": 20, "delay_ms": 10, "queue_packets": 50}
    directions: dict[str, dict[str, Any]] = {
        f"{n}-{to}": {**line} for n in ("first", "second") for to in ("up", "down")
    }
    directions["second-down"] |= {"rate_mbit": 8, "aqm": "fq_codel"}
    routes = [
        {"to": "h1", "via": via, "at_s": at} for via, at in (("b", 0.6), ("a", 1.2), ("b", 1.5))
    ]
    found = judged(
        tmp_path,
        {
            "topology": {"name": "two_ways"},
            "profile": {"directions": directions},
            "flows": [{**FLOW, "from": "h2", "to": "h1"}],
            "routers": {"r1": {"routes": [{**routes[0], "to": "h2"}]}, "r2": {"routes": routes}},
        },
    )
    assert [row.check for row in found.fidelity if row.verdict is not Verdict.PASS] == []
    checks = {row.check.partition(":")[0]: row for row in found.fidelity if "samples" in row.check}
    assert checks.keys() == directions.keys()
