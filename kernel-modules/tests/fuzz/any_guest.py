"""Runs qdisc_fuzz as root, in any guest: any_guest.py PROGRAM KIND SEED REQUESTS.

It keeps the printed table in /mnt/run/fuzz.tsv.
"""

import subprocess
import sys
from pathlib import Path

RUN = Path("/mnt/run")


def add_devices() -> None:
    """Make a device whose root will be replaced, and one whose root has three classes."""
    for device, number in ("lone", 0), ("shared", 1):
        _run(f"ip link add {device} type dummy")
        _run(f"ip address add 10.9.{number}.1/24 dev {device}")
        _run(f"ip link set {device} up")
    _run("tc qdisc add dev shared root handle 1: prio")


def remove_devices() -> None:
    """Remove both devices, with the packets in their queues.

    A packet in a queue holds its socket, and a socket its network namespace: a namespace is not
    removed before its last packet, which a slow link keeps for hours.
    """
    for device in ("lone", "shared"):
        _run(f"ip link del {device}")


def fuzz(program: str, kind: str, seed: str, requests: str) -> None:
    """Load a qdisc, send it requests, and unload it; keep the fuzzer's table."""
    _run(f"insmod /mnt/bin/sch_{kind}.ko")
    add_devices()
    with (RUN / "fuzz.tsv").open("w") as table:
        argv = [program, kind, seed, requests, "lone", "shared"]
        subprocess.run(argv, check=True, stdout=table)
    remove_devices()
    _run("sleep 1")
    _run(f"rmmod sch_{kind}")


def _run(command: str) -> None:
    subprocess.run(command.split(), check=True)


if __name__ == "__main__":
    fuzz(*[word for word in sys.argv[1:] if word != "console=tty0"])
