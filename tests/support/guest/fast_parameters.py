"""Load tcp_fast with parameters that it must refuse, and with the ends of their ranges.

Runs as root in the guest. It writes loaded.json into /mnt/run: for each case, insmod's status, the
kernel's messages, and for a loaded module its sysctls in the first network namespace and in a later
one. In the first, all values of SYSCTLS were then tried.
"""

import contextlib
import json
import subprocess
import sys
from pathlib import Path

MODULE = "/mnt/bin/tcp_fast.ko"
FOLDER = Path("/proc/sys/net/ipv4/fast")
REFUSED = {
    "gamma=0": "tcp_fast: gamma: must be 1..1000 thousandths, got 0",
    "gamma=1001": "tcp_fast: gamma: must be 1..1000 thousandths, got 1001",
    "alphas=0": "tcp_fast: alphas: must be 1..65535 packets, got 0",
    "alphas=65536": "tcp_fast: alphas: must be 1..65535 packets, got 65536",
    "alphas=30,100,30": "tcp_fast: alphas: 30 is given twice",
    "base_rtt_us=2147483648": "tcp_fast: base_rtt_us: must be 0..2147483647 us, got 2147483648",
    "ns2=64": "tcp_fast: ns2: must be 0..63, got 64",
}
# The ends of each sysctl's range, and the values next to them.
SYSCTLS = {
    "alpha": (1, 65535, 0, 65536),
    "base_rtt_us": (0, 2147483647, -1, 2147483648),
    "every_other_rtt": (0, 1, -1, 2),
    "gamma": (1, 1000, 0, 1001),
    "ns2": (0, 63, -1, 64),
}
ACCEPTED = (
    "",
    "gamma=1 ns2=63",
    "gamma=1000 alphas=1,65535 base_rtt_us=2147483647 every_other_rtt=1",
)


def sysctls() -> dict[str, dict[str, int]]:
    """Return the values of each sysctl in this namespace and in a new one."""
    there = "ip netns exec later cat"
    subprocess.run(["ip", "netns", "add", "later"], check=True)
    found: dict[str, dict[str, int]] = {"first": {}, "later": {}}
    for name in SYSCTLS:
        found["first"][name] = int((FOLDER / name).read_text())
        done = subprocess.run([*there.split(), FOLDER / name], capture_output=True, check=True)
        found["later"][name] = int(done.stdout)
    subprocess.run(["ip", "netns", "del", "later"], check=True)
    return found


def taken() -> dict[str, list[int]]:
    """Return the values of SYSCTLS that are accepted and read back as written."""
    found: dict[str, list[int]] = {name: [] for name in SYSCTLS}
    for name, values in SYSCTLS.items():
        for value in values:
            with contextlib.suppress(OSError):
                (FOLDER / name).write_text(str(value))
                assert int((FOLDER / name).read_text()) == value
                found[name].append(value)
    return found


def main() -> int:
    """Try every case, one after the other; a loaded module is unloaded again."""
    found = []
    for case in (*REFUSED, *ACCEPTED):
        subprocess.run(["dmesg", "--clear"], check=True)
        status = subprocess.run(["insmod", MODULE, *case.split()], check=False).returncode
        said = subprocess.run(["dmesg", "--notime"], capture_output=True, text=True, check=True)
        row = {"case": case, "status": status, "said": said.stdout.splitlines()}
        if status == 0:
            row |= {"sysctls": sysctls(), "taken": taken()}
            subprocess.run(["rmmod", MODULE], check=True)
        found.append(row)
    Path("/mnt/run/loaded.json").write_text(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
