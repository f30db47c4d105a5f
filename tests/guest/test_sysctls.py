"""Fields of an experiment set the guest's sysctls and parameters of its controls."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.plans import said_in_guest
from support.running import ROOT, SMALL, measure, write_experiment
from support.runs import carry_out
from support.warm_command import twoway

from twoway.description.congestion import KERNELS_OWN
from twoway.errors import RunError
from twoway.guest.cache import Guest
from twoway.manifest import Setting, read_manifest

pytestmark = pytest.mark.usefixtures("guest")


# Any sysctl of a namespace is a field of an experiment, set and read back in the guest.

PROBE = ROOT / "tests/support/guest/probe_sysctls.py"
TABLE = ROOT / "twoway/description/sysctls.json"
BARE: dict[str, Any] = {
    "schema": 1,
    "title": "Sysctls",
    "topology": {"name": "two_node"},
    "profile": "access-1mbit-up",
    "stack": {"preset": "papers"},
    "duration_s": 1,
    "warm_up_s": 0,
}


def program(name: str, host: str, *command: str) -> dict[str, Any]:
    """Describe a program of a host."""
    return {"name": name, "host": host, "command": [*command]}


def test_the_table_is_the_guests(tmp_path: Path) -> None:
    """The names and numbers that `vet` knows are those that the guest's kernel takes."""
    shutil.copy(PROBE, tmp_path)
    probe = {**program("probe", "h1", "python3", PROBE.name), "files": [PROBE.name]}
    run = carry_out(write_experiment(tmp_path, {**BARE, "programs": [probe]}), tmp_path / "results")
    found = run / "programs/probe.out"
    assert found.read_text() == TABLE.read_text(), f"copy {found} to {TABLE}"


def test_hosts_and_routers_have_their_own(tmp_path: Path) -> None:
    """Each node has the sysctls of its field, which win over the preset, and the manifest lists."""
    document = {
        **BARE,
        "stack": {
            "preset": "papers",
            "sysctls": {
                "net.ipv4.tcp_autocorking": 1,
                "net.ipv4.tcp_rmem": "4096 65536 99999",
                "net.ipv4.tcp_mem": "16 24 32",
            },
        },
        "hosts": {
            "h2": {
                "stack": {
                    "sysctls": {
                        "net.ipv4.tcp_retries2": 5,
                        "net.ipv4.tcp_reordering": 500,
                        "net.ipv4.tcp_max_reordering": 1000,
                    }
                }
            }
        },
        "routers": {"r1": {"sysctls": {"net.ipv4.icmp_msgs_per_sec": 0}}},
        "programs": [
            program(
                "h1", "h1", "sysctl", "-n", "net.ipv4.tcp_autocorking", "net.ipv4.tcp_retries2"
            ),
            program(
                "h2", "h2", "sysctl", "-n", "net.ipv4.tcp_autocorking", "net.ipv4.tcp_retries2"
            ),
        ],
    }
    run = carry_out(write_experiment(tmp_path, document), tmp_path / "results")
    assert (run / "programs/h1.out").read_text().split() == ["1", "15"]
    assert (run / "programs/h2.out").read_text().split() == ["1", "5"]
    both, most = ("h1", "h2"), 1 << 25
    assert read_manifest(run).settings == (
        _setting((), "net.ipv4.tcp_mem", "16 24 32", "stack.sysctls", " ".join(["4194304"] * 3)),
        _setting(both, "net.ipv4.tcp_autocorking", "1", "stack.sysctls", "0"),
        _setting(
            both, "net.ipv4.tcp_rmem", "4096 65536 99999", "stack.sysctls", f"4096 131072 {most}"
        ),
        _setting(("h2",), "net.ipv4.tcp_retries2", "5", "stack.sysctls", None),
        _setting(("h2",), "net.ipv4.tcp_max_reordering", "1000", "stack.sysctls", None),
        _setting(("h2",), "net.ipv4.tcp_reordering", "500", "stack.sysctls", None),
        _setting(("r1",), "net.ipv4.icmp_msgs_per_sec", "0", "routers.r1.sysctls", None),
    )


def _setting(nodes: tuple[str, ...], name: str, value: str, why: str, other: str | None) -> Setting:
    return Setting(nodes=nodes, name=name, value=value, why=why, instead_of=other)


def test_what_wins_is_said(tmp_path: Path) -> None:
    """A sysctl that wins over the preset has a line in the run's output and on its page."""
    stack = {"preset": "papers", "sysctls": {"net.ipv4.tcp_slow_start_after_idle": 1}}
    flow = {"name": "one", "from": "h1", "to": "h2", "congestion": "cubic"}
    path = write_experiment(tmp_path, {**BARE, "stack": stack, "flows": [flow]})
    done = twoway("run", path, "--results", tmp_path / "results")
    assert done.returncode == 0, done.stderr
    said = "stack.sysctls.net.ipv4.tcp_slow_start_after_idle: 1 at h1, h2, instead of 0"
    assert said in done.stderr.splitlines()
    page = (tmp_path / "results/latest/report.html").read_text(encoding="utf-8")
    assert "instead of\n<code>0</code>" in page


def test_the_kernels_own_words(tmp_path: Path) -> None:
    """A value that the kernel alone can refuse fails the run with node, name and its words."""
    stack = {"preset": "linux", "sysctls": {"net.ipv4.tcp_congestion_control": "none_such"}}
    done = twoway(
        "run",
        write_experiment(
            tmp_path, {**BARE, "stack": stack, "programs": [program("a", "h1", "true")]}
        ),
        "--results",
        tmp_path / "results",
    )
    assert done.returncode == 1
    said = "h1: sysctl net.ipv4.tcp_congestion_control: No such file or directory, got none_such"
    assert said in done.stderr


# Parameters of congestion controls that are part of the kernel, set and read back.

WRITABLE = "cd /sys/module; find tcp_*/parameters -type f -perm -200 > /mnt/run/said"
LINK = {"rate_mbit": 50, "delay_ms": 20, "queue_packets": 166}


def test_the_list_of_parameters_is_the_kernels(guest: Guest, tmp_path: Path) -> None:
    """Each control's parameters that the guest's kernel lets one write are known, and no others."""
    said = said_in_guest(guest, tmp_path / "run", WRITABLE)
    known = {f"tcp_{name}/parameters/{each}" for name, own in KERNELS_OWN.items() for each in own}
    assert {
        line for line in said if line.split("/")[0].removeprefix("tcp_") in KERNELS_OWN
    } == known


@pytest.mark.usefixtures("guest")
def test_cubic_without_hystart_loses_more_at_the_start(tmp_path: Path) -> None:
    """With hystart 0 CUBIC's slow start ends by a burst of losses, with 1 by a longer delay."""
    profile = {"schema": 1, "title": "x", "directions": {"forward": LINK, "reverse": LINK}}
    (tmp_path / "line.yml").write_text(yaml.safe_dump(profile))
    flow = {"name": "f", "from": "h1", "to": "h2", "congestion": "cubic"}
    fields = {**SMALL, "profile": "line", "flows": [flow], "duration_s": 2, "warm_up_s": 0}
    lost = {}
    for hystart, given in ((0, {"cubic": {"hystart": 0}}), (1, {})):
        set_to = {**fields, "flows": [{**flow, **given}], "stack": {}}
        if not given:
            set_to["modules"] = {"tcp_cubic": {"hystart": hystart}}
        path = write_experiment(tmp_path, set_to, f"hystart-{hystart}")
        lost[hystart] = measure(path, tmp_path / "results")["metrics"]["drops_data.forward"][
            "value"
        ]
        manifest = read_manifest((tmp_path / "results/latest").resolve())
        recorded = manifest.experiment.model_dump()
        own, all_flows = recorded["flows"][0]["cubic"], recorded["modules"].get("tcp_cubic")
        assert (own or all_flows) == {"hystart": hystart}
    assert lost[0] > 10 * lost[1] > 0


@pytest.mark.usefixtures("guest")
def test_a_value_that_the_kernel_refuses_is_named(tmp_path: Path) -> None:
    """A run with a value out of the kernel's range fails, and names field and value."""
    flow = {"name": "f", "from": "h1", "to": "h2", "congestion": "dctcp"}
    modules = {"tcp_dctcp": {"dctcp_shift_g": 99}}
    path = write_experiment(tmp_path, {**SMALL, "flows": [flow], "modules": modules})
    with pytest.raises(RunError, match=r"modules\.tcp_dctcp\.dctcp_shift_g: .*, got 99"):
        carry_out(path, tmp_path / "results")
