"""Three hosts with cables between them: runs as root in the guest.

    multihost_in_guest.py shares      /mnt/run/shares/<host>/plan.json, carried out without Ansible
    multihost_in_guest.py playbook    /mnt/run/small.yml, by multihost.yml over SSH

In virtual time the first is exact. Each leaves its results below /mnt/run, and reports on the
console which parts of a host have changed.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path += [f"/mnt/twoway{part}" for part in ("", "/capture-analysis", "/tests")]

from support.lab.lab_hosts import CABLES, PLACES, Lab, LabHost, lab
from twoway.backends.native import NEEDED, _key
from twoway.contract.network import READY_NS
from twoway.contract.writing import write_json

RUN = Path("/mnt/run")
# Folders of the playbook below RUN.
SAID, STATUS = "said.txt", "status.txt"
RESULTS = Path("/tmp/results")
LATEST = RESULTS / "latest"
COMMAND = Path("/usr/local/bin/twoway")
COMMAND_TEXT = """#!/bin/sh
export PYTHONPATH=/mnt/twoway:/mnt/twoway/capture-analysis XDG_CACHE_HOME=/mnt/cache
exec /mnt/venv/bin/python -m twoway.cli "$@"
"""
# Some settings exist only in a kernel's first network namespace; hosts get stand-ins for them.
ONCE = ("core/rmem_max", "core/wmem_max", "ipv4/tcp_mem")
MOST = {"core/rmem_max": "33554432", "core/wmem_max": "33554432", "ipv4/tcp_mem": "4194304 " * 3}
PREPARE = f"""
mount -t tmpfs fake /proc/sys/net
mkdir /proc/sys/net/core /proc/sys/net/ipv4
touch {" ".join(f"/proc/sys/net/{name}" for name in ONCE)}
echo 'root:*:20000::::::' > /etc/shadow  # or a locked root of this machine's would be refused
"""
# The hosts' command, and the time at which the plan starts, which they must read before it.
SHARE, MARGIN_NS = Path("/tmp/share"), 10 * 10**9


def prepare() -> None:
    """Give this guest the files of an installed system, and the command that all hosts use."""
    for name, value in MOST.items():
        (Path("/proc/sys/net") / name).write_text(value)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")  # forwards between hosts
    Path("/dev/shm").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "shm", "/dev/shm"], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    COMMAND.write_text(COMMAND_TEXT)
    COMMAND.chmod(0o755)
    release = os.uname().release
    Path(f"/boot/config-{release}").write_text("".join(f"{name}=y\n" for name in NEEDED))
    programs = Path("/mnt/cache/twoway/programs")
    programs.mkdir(parents=True)
    (programs / _key(release, {})).symlink_to("/mnt/bin")


def plug(machines: Lab) -> None:
    """Join the hosts' interfaces by cables."""
    for cable in CABLES:
        one, other = (
            ["name", interface, "netns", str(machines.hosts[host].first_process())]
            for host, interface in cable
        )
        subprocess.run(["ip", "link", "add", *one, "type", "veth", "peer", *other], check=True)


def state(host: LabHost) -> str:
    """Describe everything that a run could leave on a host."""
    return host.run("sh", "-c", "ip -o link; ip netns; cat /run/twoway/changes.json").stdout


def carry_out_shares(machines: Lab) -> None:
    """Do what multihost.yml does, but without SSH: once called off, once until the end."""
    folders, jobs = ready(machines)
    for folder in folders.values():
        (folder / "called-off").touch()
    ended(jobs, 1)
    folders, jobs = ready(machines)
    before = clocks(machines)
    offset_ns = before["now_ns"] + MARGIN_NS - READY_NS
    for name, folder in folders.items():
        ahead = before["machines"].get(name, {"offset_ns": 0})
        write_json(folder / "clock.json", {"offset_ns": offset_ns + ahead["offset_ns"]})
    ended(jobs, 0)
    times = {"offset_ns": offset_ns, "before": before["machines"]}
    write_json(RUN / "shares/times.json", times | {"after": clocks(machines)["machines"]})
    for name, folder in folders.items():
        shutil.copytree(folder, RUN / "shares" / name, dirs_exist_ok=True)


def ready(machines: Lab) -> tuple[dict[str, Path], dict[str, subprocess.Popen[bytes]]]:
    """Start each host's share; return folder and process by host."""
    folders = {name: host.root / SHARE.relative_to("/") for name, host in machines.hosts.items()}
    for name, folder in folders.items():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(RUN / "shares" / name, folder)
    jobs = {name: _start(host, "lab", "node", SHARE) for name, host in machines.hosts.items()}
    while not all((folder / "ready").exists() for folder in folders.values()):
        time.sleep(0.1)
    return folders, jobs


def ended(jobs: dict[str, subprocess.Popen[bytes]], wanted: int) -> None:
    """Wait for all processes, and report those that did not end as expected."""
    for name, job in jobs.items():
        if (status := job.wait()) != wanted:
            print(f"multihost: {name}: exit status {status}")


def clocks(machines: Lab) -> dict[str, Any]:
    """Measure the hosts' clocks from the host in the middle."""
    others = [host for name, host in machines.hosts.items() if name != "middle"]
    for host in others:
        _start(host, "lab", "clock", "--session", "7", "--answer", host.address)
    words = ["--session", "7"]
    words += [f"{host.name}={host.address}" for host in others]
    said: dict[str, Any] = json.loads(
        machines.hosts["middle"].run(str(COMMAND), "lab", "clock", *words).stdout
    )
    return said


def _start(host: LabHost, *words: str | Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*host.inside, COMMAND, *words])


def play(machines: Lab) -> None:
    """Run multihost.yml on hosts that are slow here."""
    inventory = machines.inventory(
        group="multihost",
        twoway_results=str(RESULTS),
        twoway_here=str(COMMAND),
        twoway_experiment=str(RUN / "small.yml"),
    )
    settings = {"ANSIBLE_CONFIG": "/mnt/twoway/playbooks/ansible.cfg", "LC_ALL": "C.UTF-8"}
    settings |= {"ANSIBLE_HOME": "/tmp/ansible", "ANSIBLE_NOCOLOR": "1"}
    # Call Python by module, because the script names a Python at the host's path.
    ansible = ["/mnt/venv/bin/python", "-m", "ansible", "playbook"]
    playbook = ["/mnt/twoway/playbooks/multihost.yml", "-i", str(inventory)]
    with (RUN / SAID).open("w") as said:
        done = subprocess.run(
            [*ansible, *playbook, "-e", "multihost_margin_s=90"],
            env={**os.environ, **settings},
            stdout=said,
            stderr=said,
            check=False,
        )
    (RUN / STATUS).write_text(str(done.returncode))
    if LATEST.exists():  # a guest leaves no such link
        shutil.copytree(LATEST.resolve(), RUN / "merged")


def main() -> int:
    """Carry out the shares or play the playbook, and report changes."""
    prepare()
    hosts = {name: {"prepare": PREPARE, **place} for name, place in PLACES.items()}
    with lab(Path("/tmp/lab"), hosts) as machines:
        plug(machines)
        before = {name: state(host) for name, host in machines.hosts.items()}
        {"shares": carry_out_shares, "playbook": play}[sys.argv[1]](machines)
        for name, host in machines.hosts.items():
            if (now := state(host)) != before[name]:
                print(f"multihost: {name}: {before[name]!r} before, {now!r} now")
    return 0


if __name__ == "__main__":
    sys.exit(main())
