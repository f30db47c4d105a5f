"""What is true of each of our qdiscs: scenarios named by dtm/qdiscs.yml.

Frames go from a0 through its qdisc to b0; see dtm_scenarios.py.
"""

import contextlib
import itertools
import subprocess
import time

from dtm_claims import claim, expect, run
from dtm_scenarios import MTU_FRAME, arrivals, channels, collect, send_frames, wire


def horizon(options: str, sent: int, queued: int) -> None:
    """What would leave too late is dropped, and the kernel goes on."""
    with wire():
        run(f"tc qdisc add dev a0 root handle 1 {options}")
        send_frames([MTU_FRAME] * sent)
        qdisc = channels()[0]
    expect("queued and dropped", (qdisc.queued_packets, qdisc.drops), (queued, sent - queued))


def flap(options: str, frame_ns: int) -> None:
    """A link that went down and up is free: the next frames leave as on a new one."""
    with wire(), arrivals() as watcher:
        run(f"tc qdisc add dev a0 root handle 1 {options}")
        send_frames([MTU_FRAME] * 100)
        time.sleep(0.05)
        run("ip link set a0 down", "ip link set a0 up")
        qdisc = channels()[0]
        expect("queued after a flap", (qdisc.queued_packets, qdisc.backlog_bytes), (0, 0))
        collect(watcher)
        before, after, _ = send_frames([MTU_FRAME] * 3)
        time.sleep(1)
        times = [frame.at_ns for frame in collect(watcher)]
    begin = times[0] - frame_ns
    claim(f"the link is free, {before}..{after}: {begin}", before <= begin <= after)
    gaps = [second - first for first, second in itertools.pairwise(times)]
    expect("gaps", gaps, [frame_ns] * 2)


def default_qdisc(kind: str, refusal: str = "") -> None:
    """A kind is the default, and each queue of a device has one, or says what it lacks."""
    sysctl = "sysctl -q -w net.core.default_qdisc="
    with contextlib.ExitStack() as undo:
        run("ip link add m0 numtxqueues 4 type dummy")
        undo.callback(run, "ip link del m0")
        run(f"{sysctl}{kind}")
        undo.callback(run, f"{sysctl}pfifo_fast")
        command = ["tc", "qdisc", "replace", "dev", "m0", "root", "handle", "1", "mq"]
        for _ in range(2):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            expect("the kernel's answer", done.stderr, refusal and f"Error: {refusal}.\n")
        shown = run("tc qdisc show dev m0")
    expect("qdiscs made", shown.count(f"qdisc {kind} "), 0 if refusal else 4)
