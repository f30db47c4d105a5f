"""The wide guest has what its experiments set up, and answers their questions."""

import re
from pathlib import Path

import pytest
from support.running import FLOW, LINUX, ROOT, judge_kept, write_experiment
from support.runs import carry_out

from twoway.contract.judge import Verdict
from twoway.contract.metrics import METRICS, Metrics
from twoway.description.point import point_names
from twoway.guest.cache import find_guest
from twoway.manifest import read_manifest
from twoway.report.flow_table import flow_table
from twoway.report.report import analyse_run
from twoway.runs.points import load_point

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("guest", "wide")]

EXPERIMENTS = ("mptcp", "tunnel-mtu", "firewall-timer", "syn-flood")
POINTS = [point for name in EXPERIMENTS for point in point_names(name)]
# Qdiscs and devices, as `tc` and `ip` make them.
QDISCS = ("hfsc", "sfb", "qfq", "hhf", "ets bands 3", "skbprio", "gred setup DPs 1 default 0")
DEVICES = (
    "gre remote 10.0.2.2",
    "vxlan id 1 remote 10.0.2.2 dstport 4789",
    "wireguard",
    "bond",
    "ifb",
    "vlan id 5",
    "ipip remote 10.0.2.2",
)


@pytest.fixture(scope="module")
def wide() -> None:
    """Skip, and say so, on a machine that has not built the kernel."""
    if find_guest("wide") is None:
        pytest.skip("the kernel wide is not built: `twoway build --kernel wide` does it")


@pytest.mark.parametrize("point", POINTS)
def test_a_point_is_as_its_file_says(point: str) -> None:
    """Each check holds, and each finding is as the experiment's file says."""
    found, _ = judge_kept(point)
    assert found.misses == []
    assert found.findings
    assert [row for row in found.findings if row.verdict is not Verdict.AS_STATED] == []


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_guide_has_the_numbers(name: str) -> None:
    """The guide's row of each experiment has the values of its findings, to three digits."""
    guide = (ROOT / "docs/guides/linux-questions.md").read_text("utf-8")
    (row,) = re.findall(rf"^.*lab/{name}\.yml.*$", guide, re.MULTILINE)
    for point in point_names(name):
        for finding in load_point(point).findings:
            assert f"{finding.value:.3g}" in row


def test_commands_make_each_qdisc_and_device(tmp_path: Path) -> None:
    """Commands of tc and ip make these qdiscs, devices and routes in this guest."""
    lines = [f"tc qdisc replace dev lo root handle {9 + n}: {q}" for n, q in enumerate(QDISCS)]
    lines += [f"ip link add link h1-eth0 name new{n} type {kind}" for n, kind in enumerate(DEVICES)]
    lines += [
        "ip tuntap add tun0 mode tun",
        "ip route add 10.8.0.0/16 nexthop via 10.0.1.1 nexthop via 10.0.1.1",
    ]
    lines += [
        "tc qdisc add dev lo clsact",
        "tc filter add dev lo egress flower action mirred egress redirect dev new4",
    ]
    hosts = {"h1": {"setup": "\n".join(lines)}}
    document = LINUX | {"kernel": "wide", "hosts": hosts, "flows": [FLOW], "duration_s": 2}
    assert carry_out(write_experiment(tmp_path, document), tmp_path / "results")


NAT = """
nft add table ip nat
nft add chain ip nat pre '{ type nat hook prerouting priority dstnat; }'
nft add rule ip nat pre iifname r1-eth0 tcp dport 8080 dnat to 10.0.2.2:80
nft add chain ip nat post '{ type nat hook postrouting priority srcnat; }'
nft add rule ip nat post oifname r1-eth1 masquerade
"""
TUNNEL = """
ip link add name tun type gre local 10.0.0.{here} remote 10.0.0.{there}
ip link set tun up
ip route replace default dev tun
"""


@pytest.mark.parametrize(
    ("routers", "server", "unproven"),
    [
        ({"r1": NAT}, "10.0.1.1:8080", []),
        (
            {"r1": TUNNEL.format(here=1, there=2), "r2": TUNNEL.format(here=2, there=1)},
            "h2",
            ["forward: the fate of packets that came to its router alone"],
        ),
    ],
)
def test_a_router_translates_or_carries(
    tmp_path: Path, routers: dict[str, str], server: str, unproven: list[str]
) -> None:
    """Behind NAT and in a tunnel each packet is known again, and all checks of queues hold."""
    fetch = {"name": "fetch", "host": "h1", "command": ["curl", "-s", f"http://{server}/"]}
    http = ["python3", "-m", "http.server", "80"]
    serve = {"name": "server", "host": "h2", "command": http, "exit_code": None}
    document = LINUX | {
        "kernel": "wide",
        "routers": {name: {"setup": setup} for name, setup in routers.items()},
        "programs": [serve, {**fetch, "start_s": 1}],
    }
    folder = carry_out(write_experiment(tmp_path, document), tmp_path / "results")
    found = analyse_run(folder)
    assert found.misses == []
    assert [c.check for c in found.fidelity if c.verdict is Verdict.NOT_PROVEN] == unproven
    table = flow_table(read_manifest(folder), Metrics.read(folder / METRICS))
    assert any(re.match(r"tcp 10\.0\.1\.2:\d+ > 10\.0\.2\.2:80 ", line) for line in table)
