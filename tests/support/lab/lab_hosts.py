"""Lab hosts for tests of the playbooks: namespaces with their own SSH server and file systems.

A host costs some megabytes of memory and a fraction of a second. Its programs are the real ones
(Ansible, SSH, dpkg, the guest) with this machine's kernel; it has no systemd and no route out.
"""

import hashlib
import itertools
import json
import os
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
# A subnet for benchmarks (RFC 2544), which is never routed.
_SUBNET = "198.18.{}.{}"
_LABS = itertools.count()
# Settings of a host that will be down, so that Ansible waits only briefly for it.
DOWN: dict[str, Any] = {"ansible_ssh_timeout": 2, "ansible_ssh_retries": 0}
_SSHD = """\
HostKey /run/lab/host_key
AuthorizedKeysFile /run/lab/authorized_keys
PasswordAuthentication no
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
PidFile none
Subsystem sftp internal-sftp
"""
# What a deploy and teardown may change on a host: the folder with the record of changes.
_RECORDS = ("/var/log/", "/var/cache/", "/var/lib/apt/", "/var/lib/dpkg/", "/run/")
_BACKUPS = tuple(f"/etc/{name}-" for name in ("group", "gshadow", "passwd", "shadow"))

# Three hosts for the topology two_node, with two cables: each host's line of the inventory.
PLACES: dict[str, dict[str, Any]] = {
    "left": {"twoway_nodes": ["h1"], "twoway_links": {"h1-eth0": "enp1s0"}},
    "middle": {
        "twoway_nodes": ["r1", "r2"],
        "twoway_links": {"r1-eth0": "enp1s0", "r2-eth0": "enp2s0"},
    },
    "right": {"twoway_nodes": ["h2"], "twoway_links": {"h2-eth0": "enp1s0"}},
}
# Host and interface at each end.
CABLES = ((("left", "enp1s0"), ("middle", "enp1s0")), (("middle", "enp2s0"), ("right", "enp1s0")))


@dataclass
class LabHost:
    """A host that runs.

    Attributes:
        name: in the inventory, and its host name.
        address: where its SSH server listens.
        folder: its files on this machine.
        process: `unshare`, whose end is the host's.
        settings: further settings in its line of the inventory.
    """

    name: str
    address: str
    folder: Path
    process: subprocess.Popen[bytes]
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        """Return the host's root folder as seen from outside."""
        return Path(f"/proc/{self.first_process()}/root")

    def changes(self) -> dict[str, str]:
        """Describe the files that differ from those of a bare host, by path."""
        upper = self.root / "run/lab/disk/changes"
        found = {}
        for path in sorted(upper.rglob("*")):
            inside = f"/{path.relative_to(upper)}"
            if inside in _BACKUPS or inside.startswith(_RECORDS):
                continue
            if _described(path) != _described(self._bare(inside)):
                found[inside] = _described(path)
        return found

    def _bare(self, inside: str) -> Path:
        """Return a file of this machine; for /etc, the copy made when the host started."""
        copied = inside == "/etc" or inside.startswith("/etc/")
        return (self.root / "run/lab/disk/machine" if copied else Path("/")) / inside[1:]

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run a command on the host as root, without SSH."""
        return subprocess.run([*self.inside, *argv], capture_output=True, text=True, check=False)

    @property
    def inside(self) -> list[str]:
        """Return the command prefix that runs a command on the host."""
        return ["nsenter", "--all", "--root", "--wdns=/", "--target", str(self.first_process())]

    def first_process(self) -> int:
        """Return the first process of its namespaces, as numbered outside; 0 until it exists."""
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rpartition(") ")[2].split()
            except OSError:  # the process has ended
                continue
            if int(fields[1]) == self.process.pid:
                return int(path.parent.name)
        return 0


def _described(path: Path) -> str:
    """Return kind, owner, rights and content of a file; folders have no content."""
    try:
        state = path.lstat()
    except OSError:
        return "none"
    kind = stat.filemode(state.st_mode)
    if stat.S_ISCHR(state.st_mode) and state.st_rdev == 0:
        return "removed"  # a whiteout of overlayfs
    content = ""
    if path.is_symlink():
        content = str(path.readlink())
    elif path.is_file():
        content = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    return f"{kind} {state.st_uid}:{state.st_gid} {content}"


@dataclass(frozen=True)
class Lab:
    """A network with hosts on it."""

    folder: Path
    hosts: dict[str, LabHost]

    def inventory(self, *names: str, group: str = "all", **variables: Any) -> Path:
        """Write an inventory of some hosts, all by default, in a group."""
        hosts = {
            name: {"ansible_host": host.address, "ansible_user": "root", **host.settings}
            for name, host in self.hosts.items()
            if not names or name in names
        }
        common = {
            "ansible_ssh_private_key_file": str(self.folder / "key"),
            "ansible_ssh_common_args": f"-o UserKnownHostsFile={self.folder}/known_hosts",
        }
        path = self.folder / f"inventory-{len(list(self.folder.glob('inventory-*')))}.yml"
        path.write_text(json.dumps({group: {"hosts": hosts, "vars": {**common, **variables}}}))
        return path


@contextmanager
def lab(folder: Path, hosts: Mapping[str, Mapping[str, Any]]) -> Iterator[Lab]:
    """Start hosts, and end them and their network.

    Args:
        folder: a folder for all of its files; short, because it holds sockets.
        hosts: by name: "disk" (its size, 2g), "prepare" (shell commands that make it different),
            and variables for the inventory.
    """
    folder.mkdir(exist_ok=True)
    nth = next(_LABS)
    wires = f"lab{os.getpid() % 100_000}{'abcdefghij'[nth % 10]}"  # "-10" added: a link's name
    subnet = (os.getpid() + nth) % 256
    made = Lab(folder, {})
    with ExitStack() as stack:
        _key(folder / "key")
        for number, (name, settings) in enumerate(hosts.items(), 10):
            address = _SUBNET.format(subnet, number)
            unlike = {key: settings[key] for key in ("disk", "prepare") if key in settings}
            process = _start(folder / name, **unlike)
            stack.callback(_end, process)
            said = {key: settings[key] for key in settings if key not in unlike}
            made.hosts[name] = host = LabHost(name, address, folder / name, process, said)
            _wire(host, wires)
            key = (host.folder / "host_key.pub").read_text()
            with (folder / "known_hosts").open("a") as known:
                known.write(f"{address} {key}")
        for host in made.hosts.values():
            _await(host)
        yield made


def _start(folder: Path, disk: str = "2g", prepare: str = "") -> subprocess.Popen[bytes]:
    for part in ("disk", "root"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    _key(folder / "host_key")
    shutil.copy(folder.parent / "key.pub", folder / "authorized_keys")
    (folder / "sshd_config").write_text(_SSHD)
    (folder / "prepare.sh").write_text(prepare)
    namespaces = "--mount --pid --net --uts --ipc --fork --kill-child"
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            ["unshare", *namespaces.split(), str(HERE / "lab_host.sh"), str(folder), disk],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def _wire(host: LabHost, wires: str) -> None:
    """Connect a host to this machine, which has the same address on all hosts' links."""
    deadline = time.monotonic() + 30
    while not host.first_process():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    inside = str(host.first_process())
    subnet, _, number = host.address.rpartition(".")
    outside = f"{wires}-{number}"
    _ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", inside)
    _ip("address", "add", f"{subnet}.1", "peer", host.address, "dev", outside)
    _ip("link", "set", outside, "up")
    enter = ["nsenter", "--net", "--target", inside]
    _run(*enter, "ip", "address", "add", host.address, "peer", f"{subnet}.1", "dev", "eth0")
    _run(*enter, "ip", "link", "set", "eth0", "up")
    _run(*enter, "ip", "route", "add", f"{subnet}.0/24", "via", f"{subnet}.1")
    (host.folder / "wired").touch()


def _await(host: LabHost) -> None:
    """Wait until the host's SSH server answers."""
    deadline = time.monotonic() + 60
    while b"Server listening" not in (host.folder / "log").read_bytes():
        assert host.process.poll() is None, (host.folder / "log").read_text()
        assert time.monotonic() < deadline, (host.folder / "log").read_text()
        time.sleep(0.02)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)  # --kill-child then ends all processes of the host
    process.wait()


def _key(path: Path) -> None:
    _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.name, "-f", str(path))


def _ip(*arguments: str) -> None:
    _run("ip", *arguments)


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
