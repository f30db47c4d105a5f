"""Try the device of twoway_testbed as root in the guest; print its answers as JSON.

Lines that must be refused come first; then taps of a ping, and of an interface that is deleted.
"""

import errno
import json
import os
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

# Lines, each with the error that refuses it.
REFUSED = {
    "": "EINVAL",
    "tape lo in 96 /tmp/x": "EINVAL",
    "tap": "EINVAL",
    "tap lo sideways 96 /tmp/x": "EINVAL",
    "tap lo in 0 /tmp/x": "EINVAL",
    "tap lo in 70000 /tmp/x": "EINVAL",
    "tap none in 96 /tmp/x": "ENODEV",
    "tap lo in 96 /none/x": "ENOENT",
    "tap " + 9_000 * "x": "E2BIG",
    "tap" + 16 * " x": "E2BIG",
    "queue none": "ENODEV",
    "sockets " + 80 * "x": "ENAMETOOLONG",
    "sample 2 1 1 1 /tmp": "EINVAL",
    "sample 1 2 0 1 /tmp": "EINVAL",
    "sample one 2 1 1 /tmp": "EINVAL",
    "sample 1 2 1 1 /none": "ENOENT",
}


# Instruments that are closed early, as by a runner that fails.
LATER = 2**62
LEFT = ("tap lo in 96 /tmp/left.pcap", f"sample {LATER} {LATER + 1} 1 1 /tmp")


def leave(lines: Iterable[str]) -> None:
    """Start all instruments, let a millisecond pass, and close them."""
    devices = []
    for line in lines:
        devices.append(os.open("/dev/twoway_testbed", os.O_RDWR))
        os.write(devices[-1], line.encode())
    time.sleep(0.001)
    for device in devices:
        os.close(device)


def refusal(line: str) -> str:
    """Return the name of the error that refuses a line; empty if it is accepted."""
    device = os.open("/dev/twoway_testbed", os.O_RDWR)
    try:
        os.write(device, line.encode())
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    finally:
        os.close(device)
    return ""


def tap(interface: str, command: str) -> str:
    """Return a tap's report after a command."""
    device = os.open("/dev/twoway_testbed", os.O_RDWR)
    os.write(device, f"tap {interface} inout 96 /tmp/{interface}.pcap".encode())
    call(command)
    summary = os.read(device, 4096).decode()
    os.close(device)
    return summary


def call(command: str) -> None:
    """Run a command that must succeed."""
    subprocess.run(command.split(), check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Try everything, and unload the module."""
    call("insmod /mnt/bin/twoway_testbed.ko")
    call("ip link set lo up")
    call("ip link add d0 type dummy")
    found = {
        "otherwise": [line for line, error in REFUSED.items() if refusal(line) != error],
        "ping": tap("lo", "ping -c 3 -i 0.01 127.0.0.1"),
        "gone": tap("d0", "ip link del d0"),
    }
    leave(LEFT)
    call("rmmod twoway_testbed")
    Path("/mnt/run/found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
