"""Settings of hosts: the preset `linux`, and the page that lists those that are not Linux's."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.guides import copy_listings
from support.plans import planned
from support.running import FLOW, LINUX, ROOT, problems_of, write_experiment
from support.warm_command import twoway

from twoway.backends.registry import backend_for
from twoway.contract.network import CONNECT_NS, START_NS
from twoway.contract.plan import Check, Plan, Program, SetSysctls
from twoway.description.stack import Stack
from twoway.errors import UsageError
from twoway.plan.personality import node_sysctls, root_sysctls
from twoway.plan.plan import build_plan
from twoway.runs.points import load_point

PRESETS = "stack.preset: must be papers, linux, or linux-X.Y with a kernel's version"
NO_PROOF = "no check proves what they set up"
NO_CHECK = "no check proves windows and ACKs of linux"
BY_THEORY = {"value": "theory", "tolerance": 1, "why": "It is."}


def sysctls(plan: Plan, node: str | None) -> dict[str, int | str]:
    """Return the sysctls of IPv4 and of all protocols that a plan sets at a node."""
    (step,) = (s for s in plan.setup if isinstance(s, SetSysctls) and s.node == node)
    return {name: value for name, value in step.sysctls.items() if "ipv6" not in name}


def lines(plan: Plan, node: str, start: str) -> list[str]:
    """Return the lines of a node's batches that begin with a word."""
    steps = [step for step in plan.setup if isinstance(step, Check) and step.node == node]
    return [line for step in steps for line in step.stdin if line.startswith(start)]


def ends(plan: Plan) -> list[str]:
    """Return the lines of all ends of connections."""
    programs = [program for program in plan.sources if isinstance(program, Program)]
    return [line for program in programs for line in program.stdin]


def test_no_sysctl_no_metric_no_buffer(tmp_path: Path) -> None:
    """A host of `linux` gets no sysctl of TCP, no metric of a route and no size of a buffer."""
    plan = planned(tmp_path, LINUX)
    assert sysctls(plan, "h1") == {}
    assert sysctls(plan, "r1") == {"net.ipv4.ip_forward": 1}
    assert sysctls(plan, None) == {"net.ipv4.tcp_mem": "4194304 4194304 4194304"}
    route, _ = lines(plan, "h1", "route")
    assert route.endswith("dev h1-eth0")
    assert lines(plan, "h1", "qdisc replace") == [
        "qdisc replace dev h1-eth0 root handle 1: pfifo_fast"
    ]
    assert not [line for line in ends(plan) if "-buffer" in line]
    assert [line.endswith(" --at-once") for line in ends(plan)] == [False, True]


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        ({"sack": False}, "net.ipv4.tcp_sack", 0),
        ({"rack": False}, "net.ipv4.tcp_recovery", 0),
        ({"tail_loss_probe": False}, "net.ipv4.tcp_early_retrans", 0),
        ({"timestamps": False}, "net.ipv4.tcp_timestamps", 0),
        ({"ecn": False}, "net.ipv4.tcp_ecn", 0),
        ({"ecn": True}, "net.ipv4.tcp_ecn", 1),
        ({"ecn": "accept"}, "net.ipv4.tcp_ecn", 2),
        ({"ecn": "accecn"}, "net.ipv4.tcp_ecn", 3),
        ({"ecn": "accecn-in-ecn-out"}, "net.ipv4.tcp_ecn", 4),
        ({"ecn": "accecn-accept"}, "net.ipv4.tcp_ecn", 5),
        ({"pacing": True}, "net.ipv4.tcp_pacing_ca_ratio", 100),
    ],
)
def test_a_field_overrides_the_preset(
    tmp_path: Path, fields: dict[str, Any], name: str, value: int
) -> None:
    """A field beside the preset sets its own sysctl, and nothing else."""
    found = sysctls(planned(tmp_path, {**LINUX, "stack": {"preset": "linux", **fields}}), "h1")
    assert found[name] == value
    assert len(found) == 2 if "sack" in fields or "pacing" in fields else 1


def test_fields_of_routes_override_it(tmp_path: Path) -> None:
    """Fields of routes and buffers beside the preset are set alone."""
    stack = {"preset": "linux", "rto_min_ms": 50, "receive_buffer_bytes": 100_000}
    plan = planned(tmp_path, {**LINUX, "stack": stack})
    route, _ = lines(plan, "h1", "route")
    assert route.endswith("dev h1-eth0 rto_min 50ms")
    assert sysctls(plan, None)["net.core.rmem_max"] == 1 << 25
    (sink,) = (line for line in ends(plan) if line.startswith("receive"))
    assert sink.endswith("--receive-buffer 100000 --at-once")


def test_connections_begin_with_their_data(tmp_path: Path) -> None:
    """A connection of a host of `linux` is set up as its data begin; of `papers` before."""
    linux = load_point(str(write_experiment(tmp_path, LINUX)))
    assert [each.connect_ns for each in linux.connections] == [START_NS]
    papers = load_point(str(write_experiment(tmp_path, {**LINUX, "stack": {}})))
    assert [each.connect_ns for each in papers.connections] == [CONNECT_NS]
    flows = [{**FLOW, "connect": "before"}]
    before = load_point(str(write_experiment(tmp_path, {**LINUX, "flows": flows})))
    assert [each.connect_ns for each in before.connections] == [CONNECT_NS]


def test_each_host_may_have_its_own(tmp_path: Path) -> None:
    """A host's stack has the experiment's fields, or those of a preset of its own."""
    hosts = {"h2": {"stack": {"preset": "papers", "rack": False}}}
    plan = planned(tmp_path, {**LINUX, "stack": {"preset": "linux", "ecn": True}, "hosts": hosts})
    assert sysctls(plan, "h1") == {"net.ipv4.tcp_ecn": 1}
    assert sysctls(plan, "h2")["net.ipv4.tcp_recovery"] == 0
    assert sysctls(plan, "h2")["net.ipv4.tcp_ecn"] == 0
    assert sysctls(plan, None)["net.core.rmem_max"] == 1 << 25
    (source, sink) = ends(plan)
    assert "--send-buffer" not in source
    assert "--receive-buffer" in sink
    own = {"h2": {"stack": {"rack": False}}}
    plan = planned(tmp_path, {**LINUX, "stack": {"preset": "linux", "ecn": True}, "hosts": own})
    assert sysctls(plan, "h2") == {"net.ipv4.tcp_recovery": 0, "net.ipv4.tcp_ecn": 1}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"stack": {"preset": "bsd"}}, f"{PRESETS}, got 'bsd'"),
        ({"stack": {"preset": "linux-six"}}, f"{PRESETS}, got 'linux-six'"),
        ({"hosts": {"h9": {}}}, 'hosts.h9: no host "h9"; the topology has h1, h2'),
        (
            {"hosts": {"h2": {"stack": {"mtu_bytes": 576}}}},
            "hosts.h2.stack.mtu_bytes: all hosts have stack.mtu_bytes (1500), got 576",
        ),
        (
            {
                "theory": "zhang",
                "flows": [{**FLOW, "congestion": "fixed", "window_packets": 9}],
                "predictions": [{**BY_THEORY, "metric": "efficiency.one"}],
            },
            f"stack.preset: the theory zhang needs papers: {NO_CHECK}",
        ),
        (
            {
                "theory": "datagrams",
                "routers": {"r1": {"setup": "true"}},
                "predictions": [{**BY_THEORY, "metric": "a.one"}],
            },
            f"routers.r1.setup: the theory datagrams needs no such commands: {NO_PROOF}",
        ),
    ],
)
def test_a_mistake_has_a_sentence(tmp_path: Path, fields: dict[str, Any], problem: str) -> None:
    """A preset, host or theory that does not fit is refused with file, field and value."""
    assert problem in problems_of(write_experiment(tmp_path, {**LINUX, **fields}))


def test_vet_says_once_which_files_have_no_preset(tmp_path: Path) -> None:
    """Vet names files without a preset in one line, and what to write for Linux's."""
    for name in ("a", "b"):
        write_experiment(tmp_path, {**LINUX, "stack": {"acks": "delayed"}}, name)
    write_experiment(tmp_path, LINUX, "c")
    done = twoway("vet", "a.yml", "b.yml", "c.yml", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.count("no stack.preset, hosts have the papers' TCP: a.yml, b.yml\n") == 1
    assert "`stack: {preset: linux}`" in done.stderr


class OnKernel:
    """A backend with a kernel of some release."""

    name = "uml"

    def __init__(self, release: str) -> None:
        """Keep the release."""
        self.release = release

    def description(self) -> SimpleNamespace:
        """Describe the kernel alone."""
        return SimpleNamespace(kernel=SimpleNamespace(release=self.release))


@pytest.mark.parametrize("host", [False, True])
def test_defaults_of_one_kernel_need_that_kernel(tmp_path: Path, host: bool) -> None:
    """A stack of `linux-6.12`, of all hosts or one, plans as `linux`, and runs on 6.12 alone."""
    stack = {"preset": "linux-6.12"}
    fields = {"hosts": {"h2": {"stack": stack}}} if host else {"stack": stack}
    point = load_point(str(write_experiment(tmp_path, {**LINUX, **fields})))
    linux = load_point(str(write_experiment(tmp_path, LINUX)))
    assert build_plan(point, in_kernel=True) == build_plan(linux, in_kernel=True)
    for release in ("6.12", "6.12.117", "6.12.1, 6.12.117"):
        backend: Any = OnKernel(release)
        assert backend_for(point, backend) is backend
    for release in ("6.1.2", "6.120", "7.3-rc7", "6.12.1, 7.3"):
        other: Any = OnKernel(release)
        assert backend_for(linux, other) is other
        with pytest.raises(UsageError, match=f"linux-6.12 needs Linux 6.12, .* uml runs {release}"):
            backend_for(point, other)


def test_accecn_needs_a_kernel_that_has_it(tmp_path: Path) -> None:
    """A host with AccECN is refused before 6.18, by `vet`, too; one that accepts ECN is not."""
    host = {"hosts": {"h2": {"stack": {"ecn": "accecn"}}}}
    point = load_point(str(write_experiment(tmp_path, {**LINUX, **host})))
    accepts = {"stack": {"preset": "linux", "ecn": "accept"}}
    other = load_point(str(write_experiment(tmp_path, {**LINUX, **accepts})))
    old, new = (cast("Any", OnKernel(release)) for release in ("6.12.117", "7.3.0-rc7"))
    assert backend_for(point, new) is new
    assert backend_for(other, old) is old
    with pytest.raises(UsageError, match=r"accecn needs Linux 6.18 or later, .* uml runs 6.12.117"):
        backend_for(point, old)
    (tmp_path / "linux").mkdir()
    (tmp_path / "linux/Makefile").write_text("VERSION = 6\nPATCHLEVEL = 18\n")
    for kernel, refused in ((None, True), ("wide", True), (str(tmp_path / "linux"), False)):
        file = write_experiment(tmp_path, {**LINUX, **host, "kernel": kernel})
        done = twoway("vet", file)
        assert (done.returncode, "accecn needs Linux 6.18" in done.stderr) == (2 * refused, refused)


# The hosts' settings, and the page that lists those that are not Linux's.

_MIB = 1 << 20
# What Linux 6.12 has where no field and no row of the page changes it.
_AS_LINUX = {
    "net.ipv4.ip_forward": 0,
    "net.ipv4.conf.all.rp_filter": 0,
    "net.ipv4.conf.default.rp_filter": 0,
    "net.ipv4.tcp_timestamps": 1,
    "net.ipv4.tcp_sack": 1,
    "net.ipv4.tcp_dsack": 1,
    "net.ipv4.tcp_early_retrans": 3,
    "net.ipv4.tcp_recovery": 1,
    "net.ipv4.tcp_frto": 2,
    "net.ipv4.tcp_mtu_probing": 0,
}
# A host sends no redirects.
_OF_ROUTERS = {"net.ipv4.conf.all.send_redirects"}


def test_limits_has_each_setting_that_is_not_linuxs() -> None:
    """docs/limits.md has each setting of a host with Linux's receivers that differs from Linux."""
    stack = Stack(acks="delayed", timestamps=True)
    settings = node_sysctls(stack, 32 * _MIB, router=False) | root_sysctls(32 * _MIB)
    others = {name: value for name, value in settings.items() if _AS_LINUX.get(name) != value}
    table = (ROOT / "docs/limits.md").read_text(encoding="utf-8").partition("| `papers` |")[2]
    here = {
        name: cells[1]
        for row in re.findall(r"^\| (.*) \|$", table, re.MULTILINE)
        for cells in [row.split(" | ")]
        for name in re.findall(r"`([a-z0-9_.]+)`", cells[0])
    }
    assert others.keys() - _OF_ROUTERS == {name for name in here if name.startswith("net.")}
    for name, value in others.items():
        if str(value) in ("0", "1") and name not in _OF_ROUTERS:
            assert here[name].startswith(str(value)), name
        elif str(value).endswith(str(32 * _MIB)):
            assert here[name] == "32 MiB, more on long paths", name
    assert here["gso_max_segs"] == str(stack.gso_max_segs)
    assert here.keys() >= {"tso", "gso", "gro", "tx", "rx", "sg"}


def test_the_experiment_on_one_of_them_is_sound(tmp_path: Path) -> None:
    """The guide's experiment on packets of several segments passes `vet` at each seed."""
    copy_listings("own-experiment.md", tmp_path, "share-link.yml", "share.yml")
    assert twoway("vet", "share.yml", cwd=tmp_path).stderr == "1 experiment is sound: 10 points\n"
