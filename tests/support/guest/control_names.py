"""Which users may choose our congestion controls, and what happens to taken names.

Runs in the guest as root; leaves /mnt/run/names.json.
"""

import errno
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from support.guest.load_modules import controls, kernel_log
from support.guest.tcp_hosts import MODULES, RUN, command, load, sysctl

LOADED = {
    "tcp_bbr3": "",
    "tcp_fast": "alphas=30",
    "tcp_fixed": "windows=9",
    "tcp_prague": "",
    "tcp_tahoe": "",
}
CONTROLS = ("bbr3", "fast", "fast30", "fixed9", "prague", "tahoe", "tahoe_rto")
RESTRICTED = {"fixed9", "prague"}
NOBODY = 65534


def attempt(congestion: str) -> str:
    """Choose a congestion control for a socket; return "" or the error's name."""
    with socket.socket() as opened:
        try:
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
        except OSError as error:
            return errno.errorcode[error.errno or 0]
        return ""


def attempt_as_nobody() -> dict[str, str]:
    """Choose each control as a user without privileges."""
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        os.setresuid(NOBODY, NOBODY, NOBODY)
        os.write(sink, json.dumps({name: attempt(name) for name in CONTROLS}).encode())
        os._exit(0)
    os.waitpid(child, 0)
    found: dict[str, str] = json.loads(os.read(source, 1 << 16))
    return found


def namespace_default(congestion: str) -> bool:
    """Make a control the default of a network namespace, as root; return whether that worked."""
    try:
        sysctl("a", "net.ipv4.tcp_congestion_control", congestion)
    except PermissionError:
        return False
    return True


def other_module(module: str) -> str:
    """Make a copy of a module that the kernel takes for another one; return its path."""
    name = module.encode() + b"\0"
    other = RUN / f"{module[:-1]}_.ko"
    image = (MODULES / f"{module}.ko").read_bytes()
    assert name in image
    other.write_bytes(image.replace(name, module[:-1].encode() + b"_\0"))
    return str(other)


def clash(module: str, taken: str, wanted: str) -> dict[str, object]:
    """Load a module while another has one of its names, and again when that one is gone."""
    other = other_module(module)
    none = set(controls())
    command(f"insmod {other} {taken}")
    before, said = set(controls()), len(kernel_log())
    done = subprocess.run(
        ["insmod", str(MODULES / f"{module}.ko"), *wanted.split()], check=False, capture_output=True
    )
    found = {
        "loaded": done.returncode == 0,
        "said": [line for line in kernel_log()[said:] if line.startswith(module)],
        "registered": sorted(set(controls()) - before),
    }
    command(f"rmmod {other}")
    load(module, *wanted.split())
    found["then"] = sorted(set(controls()) - none)
    command(f"rmmod {module}")
    return found


def main() -> int:
    """Try all ways to choose, then the names."""
    for module, parameters in LOADED.items():
        load(module, parameters)
    found: dict[str, object] = {
        "nobody": attempt_as_nobody(),
        "root": {name: attempt(name) for name in CONTROLS},
    }
    Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").write_text("reno fixed9")
    found["allowed"] = attempt_as_nobody()
    for module in LOADED:
        command(f"rmmod {module}")
    found["second"] = clash("tcp_fixed", "windows=31", "windows=30,31,32")
    found["first"] = clash("tcp_tahoe", "", "")
    # Last, because Linux 7.3 never releases a module that it has refused to a namespace
    # (tcp_set_default_congestion_control returns EPERM with a reference; 6.12.117 is fixed).
    command("ip netns add a")
    for module, parameters in LOADED.items():
        load(module, parameters)
    found["namespace"] = {name: namespace_default(name) for name in CONTROLS}
    (RUN / "names.json").write_text(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
