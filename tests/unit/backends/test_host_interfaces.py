"""Interfaces of a multi-host run are restored, whatever ends the run."""

import os
import shutil
import subprocess
import sys

import pytest
from support.running import ROOT

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="namespaces take root"
)

# A machine with its own network, /run and processes; its two interfaces are a cable's ends.
MACHINE = """
set -e
mount --make-rprivate /
mount -t tmpfs run /run
ip link add enp1s0 mtu 1400 type veth peer name enp2s0
ip link set enp1s0 address 02:aa:00:00:00:01 up
ip link set enp2s0 up
{before}
"$@"
"""
# A program that lends both ends to two nodes, changes them as a plan does, prints the result, and
# ends or is killed.
RUN = """
import os, signal, subprocess, sys
from pathlib import Path
from twoway.backends.host_changes import HostChanges
def ip(*words):
    subprocess.run(["ip", *words], check=True)
with HostChanges() as kept:
    kept.nodes(["h1", "r1"])
    kept.link("h1-eth0", "enp1s0")
    kept.link("r1-eth0", "enp2s0")
    pair = "h1-eth1 netns twoway-h1 type veth peer name r1-eth1 netns twoway-r1"
    ip("link", "add", "name", *pair.split())
    ip("-n", "twoway-h1", "link", "set", "h1-eth0", "address", "02:00:00:00:00:00", "mtu", "9000")
    ip("-n", "twoway-h1", "link", "set", "h1-eth0", "gso_max_segs", "1", "up")
    ip("netns", "exec", "twoway-h1", "ethtool", "-K", "h1-eth0", "gro", "off", "tso", "off")
    ip("-n", "twoway-h1", "address", "add", "10.0.1.2/24", "dev", "h1-eth0")
    print(*sorted(os.listdir("/sys/class/net")), flush=True)
    print(*sorted(os.listdir("/run/netns")), flush=True)
    if sys.argv[1] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if sys.argv[1] == "failed":
        raise SystemExit("it failed")
"""
# The kernel reports a cable some time after both of its ends are up.
SETTLED = """
for end in enp1s0 enp2s0; do
  until ip link show $end | grep -q 'state UP'; do sleep 0.01; done
done
"""
SHOWN = "ip -d -o link show; ethtool -k enp1s0; ethtool -k enp2s0; ip -o -4 address; ip netns list"
SEEN = SETTLED + SHOWN


def on_a_machine(script: str, *arguments: str, before: str = "") -> list[str]:
    """Run a shell script in new namespaces; return its output."""
    machine = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
    shell = ["sh", "-c", MACHINE.format(before=before), "sh", "sh", "-c", script, "sh", *arguments]
    done = subprocess.run(
        [*machine, *shell],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("--\n")


SCRIPT = f"""
{SEEN}; echo --
mount -t sysfs sysfs /sys
"$1" -c "$2" $3 2>&1 || true
flock /run/twoway/lock true
echo --; {SEEN}
"""


@pytest.mark.parametrize("end", ["good", "failed", "killed"])
def test_interfaces_come_back(end: str) -> None:
    """Names, addresses, sizes and offloads are restored, and no namespace is left."""
    before, during, after = on_a_machine(SCRIPT, sys.executable, RUN, end)
    assert during.splitlines()[:2] == ["lo", "twoway-h1 twoway-r1"]
    assert sorted(after.splitlines()) == sorted(before.splitlines())


IN_USE = {
    "ip address add 192.0.2.7/24 dev enp2s0": "enp2s0 has the address 192.0.2.7",
    "ip link add br0 type bridge; ip link set enp2s0 master br0": "enp2s0 is part of br0",
}


@pytest.mark.parametrize("busy", IN_USE)
def test_an_interface_in_use_is_refused(busy: str) -> None:
    """An interface in use is refused, and interfaces taken before it are returned."""
    before, during, after = on_a_machine(SCRIPT, sys.executable, RUN, "good", before=busy)
    assert IN_USE[busy] in during
    assert sorted(after.splitlines()) == sorted(before.splitlines())
