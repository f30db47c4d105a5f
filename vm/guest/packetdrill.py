"""Run a script of packetdrill in the guest, which has nothing else to do, and capture its TUN.

request.json has the command, its folder in the run's folder and its time limit; ended.json gets its
status. A script's result depends on nothing before it: namespace, clock and random numbers are new.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # -I leaves it out

from plan_clock import report_progress
from run_folder import RUN, write_file

MOST_BYTES = 16 << 20  # of a file that the script writes
MOST_TASKS = 200  # the kernel's own included, so that a script that forks without end is refused
ALL_PROTOCOLS, RCVBUFFORCE, TIMESTAMPNS = 3, 33, 35  # linux/if_ether.h, asm-generic/socket.h
NO_HARDWARE = 0xFFFE  # linux/if_arp.h
PCAP = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, 101)  # ns; LINKTYPE_RAW


def main() -> None:
    """Carry out request.json."""
    asked = json.loads((RUN / "request.json").read_text())
    (RUN / "sockets").mkdir(exist_ok=True)
    report_progress()
    settings = Path("/proc/sys")
    for name in ("all", "default"):
        (settings / f"net/ipv6/conf/{name}/disable_ipv6").write_text("0")
    (settings / "kernel/threads-max").write_text(str(MOST_TASKS))
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ALL_PROTOCOLS))
    tap.setsockopt(socket.SOL_SOCKET, RCVBUFFORCE, MOST_BYTES)
    tap.setsockopt(socket.SOL_SOCKET, TIMESTAMPNS, 1)
    status, ended = _run(asked)
    keep_packets(tap, RUN / "tun.pcap")
    write_file(RUN / "ended.json", json.dumps({"status": status, "ended": ended}))


def _run(asked: dict[str, Any]) -> tuple[int, bool]:
    """Run the command; return its status, and False if its time was over."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_BYTES, MOST_BYTES))
    environment = {"PATH": os.environ["PATH"], "LD_PRELOAD": "/mnt/bin/times.so"}
    with (RUN / "stdout.txt").open("wb") as out, (RUN / "stderr.txt").open("wb") as err:
        process = subprocess.Popen(
            asked["command"],
            cwd=RUN / asked["folder"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
    ended = True

    def stop(*_: object) -> None:
        nonlocal ended
        ended = False
        os.killpg(process.pid, signal.SIGKILL)

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(asked["limit_s"])  # no poll of its end, which would cost the script time
    status = process.wait()
    signal.alarm(0)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return status, ended


def keep_packets(tap: socket.socket, path: Path) -> None:
    """Write the packets of the TUN that a socket has received to a capture."""
    tap.setblocking(False)
    with path.open("wb") as capture, suppress(BlockingIOError):
        capture.write(PCAP)
        while True:
            content, ancillary, _, address = tap.recvmsg(1 << 16, 64)
            if address[3] == NO_HARDWARE:  # tun0, which is gone with its name
                seconds, ns = struct.unpack("=qq", ancillary[0][2])
                size = len(content)
                capture.write(struct.pack("<IIII", seconds, ns, size, size) + content)


if __name__ == "__main__":
    main()
