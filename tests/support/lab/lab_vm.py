"""A lab host that is a whole machine: Debian in QEMU, with its own kernel, systemd and disk.

Its disk is made once, into the cache (lab_image.sh, as root), and made again when apt has another
kernel, because the archive drops headers of old ones. A test's changes are gone with its machine.
"""

import hashlib
import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twoway.paths import cache

IMAGE = Path(__file__).with_name("lab_image.sh")
USER = "lab"
# Time for an emulated machine on a busy host; with KVM it takes seconds.
BOOT_S = 900.0
_MACHINE = """
    -machine q35 -smp 2 -m 3072 -nodefaults -no-user-config -display none
    -drive file={disk},format=raw,if=virtio,snapshot=on -device virtio-rng-pci
    -netdev user,id=net,{forwards} -device virtio-net-pci,netdev=net
    -kernel {image}/vmlinuz -initrd {image}/initrd -serial file:{folder}/console
"""
_COMMAND_LINE = "root=/dev/vda rw console=ttyS0 no_timer_check"
# QEMU 7.2's AVX2 gives numpy wrong orders (argsort of 1000 numbers); apt infers AVX2 from BMI2.
_ACCELERATION = {
    "kvm": "-accel kvm -cpu host",
    "tcg": "-accel tcg -cpu max,-erms,-fsrm,-avx2,-bmi2",
}
# Everything on a machine, one line each, without logs, caches, and the backups of useradd and dpkg.
_STATE = r"""
dpkg-query -W -f 'package ${db:Status-Abbrev} ${Package} ${Version}\n'
apt-mark showmanual | sed 's/^/manual /'
systemctl list-unit-files --no-legend --plain | grep -v ' transient ' | sed 's/^/unit /'
systemctl list-units --no-legend --plain --all 'twoway*' | sed 's/^/active /'
systemctl list-units --no-legend --plain --failed | sed 's/^/failed /'
sysctl -e kernel.unprivileged_userns_clone net.core.rmem_max net.core.wmem_max net.ipv4.tcp_mem
ls /sys/module | \
  sed -nE 's/^(sch_(dtm|medium|timetable)|tcp_(fast|fixed|tahoe)|twoway_testbed)$/module &/p'
find / -xdev \( -path /var/log -o -path /var/cache -o -path /var/tmp -o -path /tmp -o -path /run \
  -o -path /home -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/lib/systemd \
  -o -path /var/backups \
  -o -path '/etc/*-' \) -prune -o -printf 'file %p %M %U:%G %l\n'
find /etc -type f -not -name '*-' -exec sha256sum {} +
"""


@dataclass(frozen=True)
class Machine:
    """A machine that runs.

    Attributes:
        folder: its files on this machine.
        image: the folder with the files it was booted from.
        ports: by port of the machine, the port of the local loopback that leads there.
    """

    folder: Path
    image: Path
    ports: dict[int, int]

    def run(self, *argv: str, text: str = "", wait_s: float = 600) -> str:
        """Run a program as root over SSH; return its output. It must succeed."""
        done = self._ssh("sudo", *argv, text=text, wait_s=wait_s)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def state(self) -> set[str]:
        """Describe the machine's state: packages, units, sysctls, our modules, files."""
        return set(self.run("sh", "-s", text=_STATE).splitlines())

    def inventory(self, **variables: Any) -> Path:
        """Write an inventory with this machine as `vm`, of the groups scheduler and workers."""
        host = {"ansible_host": "127.0.0.1", "ansible_port": self.ports[22], "ansible_user": USER}
        access = {
            "ansible_ssh_private_key_file": str(self.image / "key"),
            "ansible_ssh_common_args": f"-o UserKnownHostsFile={self.folder}/known_hosts",
        }
        path = self.folder / "inventory.yml"
        groups = {name: {"hosts": {"vm": None}} for name in ("scheduler", "workers")}
        everyone = {"hosts": {"vm": host}, "vars": {**access, **variables}}
        path.write_text(json.dumps({"all": everyone, **groups}))
        return path

    def serves(self) -> bool:
        """Tell whether the machine accepts logins."""
        try:
            return self._ssh("true", wait_s=60).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def _ssh(self, *argv: str, wait_s: float, text: str = "") -> subprocess.CompletedProcess[str]:
        options = {
            "BatchMode": "yes",
            "ConnectTimeout": "30",
            "UserKnownHostsFile": self.folder / "known_hosts",
            "LogLevel": "ERROR",
        }
        words = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
        to = ["-i", str(self.image / "key"), "-p", str(self.ports[22]), f"{USER}@127.0.0.1"]
        return subprocess.run(
            ["ssh", *words, *to, *argv],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=wait_s,
        )


def make_image() -> Path:
    """Return the folder with disk, kernel, initrd and keys, from the cache or made again."""
    known = subprocess.run(
        ["apt-cache", "show", "--no-all-versions", "linux-image-amd64"],
        capture_output=True,
        check=True,
    )
    key = hashlib.sha256(known.stdout + IMAGE.read_bytes()).hexdigest()[:16]
    images = cache() / "lab-images"
    if not (images / key).is_dir():
        shutil.rmtree(images, ignore_errors=True)  # images of older kernels have a gigabyte each
        images.mkdir(parents=True)
        with tempfile.TemporaryDirectory(prefix=".making-", dir=images) as scratch:
            made = Path(scratch) / key
            made.mkdir()
            subprocess.run([IMAGE, made], check=True, stdin=subprocess.DEVNULL)
            made.rename(images / key)
    return images / key


@contextmanager
def machine(
    folder: Path, image: Path, accelerator: str, guest_ports: Sequence[int]
) -> Iterator[Machine]:
    """Boot a machine, and end it.

    Args:
        folder: a folder for its files.
        image: folder of make_image; nothing is written there.
        accelerator: "kvm" or "tcg".
        guest_ports: TCP ports to reach from here, besides SSH's.
    """
    made = Machine(folder, image, {port: _free_port() for port in (22, *guest_ports)})
    forwards = ",".join(f"hostfwd=tcp:127.0.0.1:{to}-:{at}" for at, to in made.ports.items())
    devices = _MACHINE.format(disk=image / "disk", image=image, folder=folder, forwards=forwards)
    key = (image / "host_key.pub").read_text()
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{made.ports[22]} {key}")
    words = [*devices.split(), *_ACCELERATION[accelerator].split(), "-append", _COMMAND_LINE]
    with subprocess.Popen(["qemu-system-x86_64", *words], stdin=subprocess.DEVNULL) as process:
        try:
            wait_for(made.serves, BOOT_S, lambda: process.poll() is None)
            yield made
        finally:
            process.kill()


def wait_for(
    what: Callable[[], bool], patience_s: float, meanwhile: Callable[[], bool] = lambda: True
) -> None:
    """Wait until one condition holds; fail as soon as another one does not."""
    deadline = time.monotonic() + patience_s
    while not what():
        assert meanwhile()
        assert time.monotonic() < deadline
        time.sleep(1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
