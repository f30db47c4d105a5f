"""The playbooks over SSH, on lab hosts made of namespaces: what they change and undo."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.lab.lab_hosts import DOWN, Lab, LabHost, lab
from support.lab.playing import PLAYBOOKS, Played, command, play

# Shell commands: remove PACKAGE, and let apt use only this repository.
WITHOUT = """
dpkg --purge {package} > /dev/null
rm -rf /etc/apt/sources.list.d /etc/apt/preferences.d
echo "deb [trusted=yes] file:/run/lab/repository ./" > /etc/apt/sources.list
apt-get update -qq
"""


def offer(package: str, folder: Path) -> None:
    """Pack an installed package from its files into a repository in a folder."""
    content, packed = folder / "content", folder / f"{package}.deb"
    for name in _said("dpkg-query", "-L", package).splitlines():
        path, target = Path(name), content / name.lstrip("/")
        if not path.is_dir() and (path.is_symlink() or path.is_file()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target, follow_symlinks=False)
    wanted = ("Package", "Version", "Architecture", "Maintainer", "Depends", "Description")
    fields = "".join(f"{name}: ${{{name}}}\\n" for name in wanted)
    control = _said("dpkg-query", "-W", "-f", fields, package)
    (content / "DEBIAN").mkdir()
    (content / "DEBIAN/control").write_text(control)
    _said("dpkg-deb", "--root-owner-group", "-Zgzip", "--build", str(content), str(packed))
    shutil.rmtree(content)
    digest = hashlib.sha256(packed.read_bytes()).hexdigest()
    described = f"Filename: ./{packed.name}\nSize: {packed.stat().st_size}\nSHA256: {digest}\n"
    (folder / "Packages").write_text(control + described)


def offer_dependent(package: str, folder: Path) -> None:
    """Pack needs-PACKAGE, a package that only depends on another."""
    content = folder / "content"
    (content / "DEBIAN").mkdir(parents=True)
    name = f"needs-{package}"
    (content / "DEBIAN/control").write_text(
        f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: lab <lab@localhost>\n"
        f"Depends: {package}\nDescription: needs {package}\n"
    )
    _said("dpkg-deb", "--root-owner-group", "--build", str(content), str(folder / f"{name}.deb"))
    shutil.rmtree(content)


def _said(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


PACKAGE = "ethtool"
TTL = "net.ipv4.ip_default_ttl"
LEFT = "net.ipv4.tcp_retries2"
# A second and a half of traffic; a point of a sweep has no pictures, which take time.
TRIAL = {"twoway_trial": "kalampoukas-5.5@delay=3.368,opposite=1"}
# A setting of the host's own network namespace, with another value than the kernel's.
VARIABLES = {**TRIAL, "twoway_sysctls": {TTL: 65, "kernel.no_such_key": 1}}
NATIVE = {"twoway_backends": ["uml", "native"], "twoway_kernel": "6.12.0-elsewhere"}

# Fill a host's disk while the environment, 570 MB with its archive, is unpacked there.
FILL = """
(until [ -e /opt/twoway/environment.new ]; do sleep 0.02; done
mount -o remount,size=400m /run/lab/disk) &
"""

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("sshd", path="/usr/sbin") is None,
        reason="lab hosts take root and openssh-server",
    ),
]


def _packages(host: LabHost) -> str:
    return host.run("dpkg-query", "-W", "-f", "${db:Status-Status} ${Package}\n").stdout


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Make a folder with a short name, because it holds sockets."""
    with tempfile.TemporaryDirectory(prefix="lab") as path:
        yield Path(path)


@dataclass(frozen=True)
class Deployed:
    """A lab with three deployed hosts, and their state before the deploy."""

    lab: Lab
    inventory: Path
    results: Path
    played: Played
    before: dict[str, dict[str, str]]
    packages: dict[str, str]


@pytest.fixture(scope="module")
def deployed(folder: Path) -> Iterator[Deployed]:
    """Make three good hosts, one without a package, one that is down, and two faulty ones."""
    offer(PACKAGE, folder / "lab1/repository")
    hosts: dict[str, dict[str, Any]] = {
        "lab1": {"prepare": WITHOUT.format(package=PACKAGE)},
        "lab2": {},
        "lab3": {},
        "down": {"prepare": "sleep infinity &", **DOWN},
        "broken": {"prepare": "ln -sf /bin/false /usr/bin/bwrap"},
        "filled": {"prepare": FILL},
    }
    with lab(folder, hosts) as made:
        results = folder / "results"
        variables: dict[str, Any] = {**VARIABLES, "twoway_results": str(results)}
        inventory = made.inventory(**variables)
        before = {name: host.changes() for name, host in made.hosts.items()}
        packages = {name: _packages(host) for name, host in made.hosts.items()}
        made.hosts["down"].process.kill()
        made.hosts["down"].process.wait()
        played = play("deploy", inventory)
        good = made.inventory("lab1", "lab2", "lab3", **variables)
        yield Deployed(made, good, results, played, before, packages)


def test_three_hosts_deployed_whatever_others_do(deployed: Deployed) -> None:
    """Three hosts are prepared and run an experiment, whatever happens on the three others."""
    for name in ("lab1", "lab2", "lab3"):
        assert deployed.played.recap(name)["failed"] == 0, deployed.played.said
        manifests = deployed.lab.hosts[name].root.glob("var/lib/twoway/results/*/2*/manifest.json")
        assert len([*manifests]) == 1
    assert deployed.played.recap("down")["unreachable"] == 1
    assert "Failed to connect to the host via ssh" in deployed.played.said
    lab1 = deployed.lab.hosts["lab1"]
    assert "\ninstalled ethtool\n" in _packages(lab1)
    assert lab1.run("sysctl", "-n", TTL).stdout == "65\n"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("broken", "broken: Refuse a host that something is missing on"),
        ("filled", "filled: Unpack environment"),
    ],
)
def test_a_deploy_that_fails_is_undone(deployed: Deployed, name: str, sentence: str) -> None:
    """A host without the sandbox, or without disk space, is reported and left unchanged."""
    said = deployed.played.sentences()
    assert deployed.played.recap(name)["failed"] == 1
    assert sentence in said
    assert name != "filled" or "No space left on device" in said
    assert "(the host is as it was)" in said
    host = deployed.lab.hosts[name]
    assert host.changes() == deployed.before[name]
    assert host.run("sysctl", "-n", TTL).stdout == "64\n"


def test_redeploy_changes_nothing(deployed: Deployed) -> None:
    """A second deploy changes no file of any host, and no task reports a change."""
    hosts = [deployed.lab.hosts[name] for name in ("lab1", "lab2", "lab3")]
    before = [host.changes() for host in hosts]
    again = play("deploy", deployed.inventory)
    assert again.status == 0, again.said
    assert [again.recap(host.name)["changed"] for host in hosts] == [0, 0, 0]
    moved = [was.items() ^ host.changes().items() for was, host in zip(before, hosts, strict=True)]
    assert moved == [set()] * 3


def test_run_and_collect(deployed: Deployed) -> None:
    """An experiment on one chosen host comes back complete; a second collection brings nothing.

    Its page is written here, because a page from another machine is not taken.
    """
    chosen = json.dumps({"twoway_experiments": ["zhang-fig8"]})
    ran = play("run", deployed.inventory, "--limit", "lab2", "-e", chosen)
    assert ran.status == 0, ran.said
    (run,) = (deployed.results / "zhang-fig8").iterdir()
    there = deployed.lab.hosts["lab2"].root / "var/lib/twoway/results/zhang-fig8" / run.name
    files = [path.relative_to(run) for path in run.rglob("*") if path.is_file()]
    assert Path("metrics.json") in files
    assert Path("report.html") in files
    for path in set(files) - {Path("report.html")}:
        assert (run / path).read_bytes() == (there / path).read_bytes()
    again = play("collect", deployed.inventory, "--limit", "lab2")
    assert again.recap("lab2")["changed"] == 0
    assert not [*deployed.results.glob(".*")]


def test_a_changed_checkout_alone_is_sent(deployed: Deployed) -> None:
    """A host with an older checkout gets the new one, and no environment or guest."""
    host = deployed.lab.hosts["lab3"]
    (host.root / "opt/twoway/checkout/.bundle").write_text("an older one\n")
    played = play("deploy", deployed.inventory, "--limit", "lab3")
    assert played.status == 0, played.said
    assert "Unpack checkout" in played.said
    assert "Unpack environment" not in played.said
    assert "Unpack guest" not in played.said


def test_teardown_spares_what_others_brought(deployed: Deployed, folder: Path) -> None:
    """If a package installed later needs one of the deploy's, teardown reports that and stops."""
    host = deployed.lab.hosts["lab1"]
    offer_dependent(PACKAGE, folder / "lab1/repository")
    host.run("dpkg", "-i", f"/run/lab/repository/needs-{PACKAGE}.deb")
    before = host.changes()
    played = play("teardown", deployed.inventory, "--limit", "lab1")
    assert played.recap("lab1")["failed"] == 1
    assert f"lab1: needs-{PACKAGE} came after the deploy" in played.sentences()
    assert host.changes() == before
    host.run("dpkg", "--purge", f"needs-{PACKAGE}")


def test_teardown_leaves_nothing(deployed: Deployed) -> None:
    """After teardown files, packages and sysctls are as before, and the runs are collected.

    On one host a run of `native` and its keeper were killed, and left a sysctl changed.
    """
    killed = json.dumps({"settings": {f"/proc/sys/{LEFT.replace('.', '/')}": "15"}})
    left = f"mkdir -p /run/twoway; echo '{killed}' > /run/twoway/changes.json; sysctl {LEFT}=3"
    assert deployed.lab.hosts["lab2"].run("sh", "-c", left).returncode == 0
    played = play("teardown", deployed.inventory)
    assert played.status == 0, played.said
    for name in ("lab1", "lab2", "lab3"):
        host = deployed.lab.hosts[name]
        assert host.changes() == deployed.before[name]
        assert _packages(host) == deployed.packages[name]
        assert host.run("sysctl", "-n", TTL).stdout == "64\n"
        assert host.run("sysctl", "-n", LEFT).stdout == "15\n"
    assert len([*deployed.results.glob(f"{TRIAL['twoway_trial']}/2*/manifest.json")]) == 3
    again = play("teardown", deployed.inventory)
    assert again.status == 0
    assert again.recap("lab1")["changed"] == 0


def test_check_mode_and_interruption(folder: Path) -> None:
    """--check changes nothing; after a killed deploy, the next one completes it, or teardown."""
    with lab(folder / "cut", {"cut": {}}) as made:
        host = made.hosts["cut"]
        inventory = made.inventory(**TRIAL, twoway_results=str(folder / "cut-results"))
        checked = play("deploy", inventory, "--check")
        assert checked.status == 0, checked.said
        assert checked.recap("cut")["changed"] > 0
        assert host.changes() == {}
        for then in ("teardown", "deploy"):
            _cut_short(host, inventory)
            assert host.changes() != {}
            played = play(then, inventory)
            assert played.status == 0, played.said
            assert (host.changes() == {}) == (then == "teardown")
        assert not [*host.root.glob("opt/twoway/*.new")]
        assert play("teardown", inventory).status == 0
        assert host.changes() == {}


def _cut_short(host: LabHost, inventory: Path) -> None:
    """Deploy, and kill it while it unpacks the environment."""
    environment = {**os.environ, "ANSIBLE_CONFIG": str(PLAYBOOKS / "ansible.cfg")}
    process = subprocess.Popen(
        command("deploy", inventory),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )
    deadline = time.monotonic() + 300
    while not (host.root / "opt/twoway/environment.new").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        threading.Event().wait(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    host.run("pkill", "-KILL", "-f", "twoway/environment")


# For each host: the fault, and its sentence.
UNFIT: dict[str, tuple[dict[str, Any], str]] = {
    "full": ({"disk": "200m"}, "MB free under /opt or /var/lib; 1500 MB are needed"),
    "nosudo": (
        {"prepare": "useradd -M -d /run/lab -s /bin/sh -p '*' visitor", "ansible_user": "visitor"},
        "nosudo: not root, and sudo does not work without a password",
    ),
    "headless": (NATIVE, "kernel 6.12.0-elsewhere has no headers: neither /lib/modules/"),
    "ancient": (
        {**NATIVE, "twoway_kernel": "5.10.0-1-amd64"},
        "kernel 5.10.0-1-amd64; 6.1 is the oldest that the modules are written for",
    ),
    "secure": (
        {
            **NATIVE,
            "prepare": "mount -t tmpfs fake /sys/firmware; mkdir -p /sys/firmware/efi/efivars; "
            r"printf '\006\000\000\000\001' > /sys/firmware/efi/efivars/SecureBoot-8be4df61",
        },
        "secure boot refuses our modules",
    ),
    "busy": (
        {
            **NATIVE,
            "prepare": "mount -t tmpfs fake /sys/module; mkdir /sys/module/sch_timetable; "
            "echo 2 > /sys/module/sch_timetable/refcnt",
        },
        "module sch_timetable is loaded and in use (2): end what uses it first",
    ),
    "buster": (
        {"prepare": "sed -i s/12/10/ /etc/os-release; echo 10.13 > /etc/debian_version"},
        "buster: Debian 10 on x86_64; Debian 12, Debian 13, Ubuntu on x86_64 are supported",
    ),
    "older": (
        {
            "prepare": "mkdir /var/lib/twoway; "
            "echo '{\"schema\": 0}' > /var/lib/twoway/deployment.json"
        },
        "older: has an older deployment of twoway (record 0, this is 1)",
    ),
}


def test_unfit_hosts(folder: Path) -> None:
    """Each host that cannot be prepared is refused in its own sentence and left unchanged."""
    hosts = {name: settings for name, (settings, _) in UNFIT.items()}
    with lab(folder / "unfit", hosts) as made:
        before = {name: host.changes() for name, host in made.hosts.items()}
        played = play("deploy", made.inventory())
        said = played.sentences()
        for name, (_, sentence) in UNFIT.items():
            assert sentence in said, played.said
            assert played.recap(name)["changed"] == 0
            assert played.recap(name)["failed"] == 1
            assert made.hosts[name].changes() == before[name]
