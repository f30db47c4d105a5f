"""A run's changes to the machine and its interfaces are undone, whatever ends it."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.running import ROOT, ran

from twoway.backends.host_changes import HostChanges
from twoway.errors import RunError, UsageError

# A program that changes a setting, prints the new value, and waits to be killed.
KILLED = """
import sys, time
from pathlib import Path
from twoway.backends.host_changes import HostChanges
with HostChanges(Path(sys.argv[1])) as kept:
    kept.write_setting(Path(sys.argv[2]), "2")
    print("changed", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def setting(tmp_path: Path) -> Path:
    """Make a file with the value 1, in place of a setting below /proc/sys."""
    path = tmp_path / "setting"
    path.write_text("1")
    return path


def test_undone_at_the_end(tmp_path: Path, setting: Path) -> None:
    """A setting has its new value within the `with`, and its original value after it."""
    with HostChanges(tmp_path / "kept") as kept:
        kept.write_setting(setting, "2")
        kept.write_setting(setting, "3")
        assert setting.read_text() == "3"
    assert setting.read_text() == "1"
    assert not (tmp_path / "kept/changes.json").exists()


def test_undone_after_an_error(tmp_path: Path, setting: Path) -> None:
    """A run that fails leaves no change, and its own error is reported."""

    def fail() -> None:
        with HostChanges(tmp_path / "kept") as kept:
            kept.write_setting(setting, "2")
            raise RunError("the run's own")

    with pytest.raises(RunError, match="the run's own"):
        fail()
    assert setting.read_text() == "1"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_undone_after_being_killed(tmp_path: Path, setting: Path, how: signal.Signals) -> None:
    """The keeper outlives a run that is killed, undoes its change, and then frees the machine."""
    argv = [sys.executable, "-c", KILLED, str(tmp_path / "kept"), str(setting)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "changed\n"
        assert setting.read_text() == "2"
        run.send_signal(how)
        run.wait()
    subprocess.run(["flock", tmp_path / "kept/lock", "true"], check=True)
    assert setting.read_text() == "1"


def test_next_run_undoes_what_a_dead_keeper_left(tmp_path: Path, setting: Path) -> None:
    """Changes that a dead keeper recorded are undone before anything else changes."""
    folder = tmp_path / "kept"
    folder.mkdir()
    setting.write_text("2")
    changes = {"settings": {str(setting): "1"}, "modules": ["no_such_module"]}
    (folder / "changes.json").write_text(json.dumps(changes))
    with HostChanges(folder):
        assert setting.read_text() == "1"


def test_one_run_at_a_time(tmp_path: Path) -> None:
    """While one run has the machine, a second run is refused."""
    with (
        HostChanges(tmp_path / "kept"),
        pytest.raises(UsageError, match="another run"),
        HostChanges(tmp_path / "kept"),
    ):
        pass


def test_missing_setting(tmp_path: Path) -> None:
    """A setting that the kernel does not have is an error that names it."""
    with pytest.raises(RunError, match="no-such"), HostChanges(tmp_path / "kept") as kept:
        kept.write_setting(tmp_path / "no-such", "1")


def test_loaded_module(tmp_path: Path) -> None:
    """If a module is already loaded, it stays, and the run is refused."""
    loaded = next(iter(Path("/sys/module").iterdir())).name
    refused = pytest.raises(RunError, match=f"module {loaded} is loaded already")
    with refused, HostChanges(tmp_path / "kept") as kept:
        kept.module(tmp_path / f"{loaded}.ko", [])
    assert Path(f"/sys/module/{loaded}").exists()


def test_what_cannot_be_undone_is_not_forgotten(tmp_path: Path) -> None:
    """While an earlier run's change cannot be undone, no run begins, and the record stays."""
    folder = tmp_path / "kept"
    folder.mkdir()
    lent = {"nowhere-eth0": {"interface": "lo", "settings": ["no", "such"], "features": []}}
    (folder / "changes.json").write_text(json.dumps({"links": lent}))
    for _ in range(2):
        with (
            pytest.raises(UsageError, match="this machine still has changes of a run"),
            HostChanges(folder),
        ):
            pass
        assert json.loads((folder / "changes.json").read_text())["links"] == lent


# Interfaces of a multi-host run are restored, whatever ends the run.

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
    done = ran(
        [*machine, *shell],
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


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="namespaces take root"
)
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


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="namespaces take root"
)
@pytest.mark.parametrize("busy", IN_USE)
def test_an_interface_in_use_is_refused(busy: str) -> None:
    """An interface in use is refused, and interfaces taken before it are returned."""
    before, during, after = on_a_machine(SCRIPT, sys.executable, RUN, "good", before=busy)
    assert IN_USE[busy] in during
    assert sorted(after.splitlines()) == sorted(before.splitlines())
