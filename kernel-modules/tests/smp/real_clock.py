"""Measure when channels send though every timer is late, as root, on a real clock.

    real_clock.py # writes /mnt/run/clock.json, the result of each trial

Exact statements hold however late a timer is: no packet leaves before it has been in service for
the time that its slots take. Times that depend on a timer are compared with the lateness of timers
meanwhile, as a process measures it that only sleeps.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing import Event, Process, Value
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "dtm")]

from channels import PLAIN  # noqa: E402 - python -I leaves the folders out
from claims import RUN, report, run  # noqa: E402
from dtm_scenarios import BYTE_WORK, HEADER, arrivals, ceil_div, collect, wire  # noqa: E402
from dtm_scenarios import channels as qdiscs  # noqa: E402
from endurance import load, unload  # noqa: E402

FRAME = 1514
SMALL = 64
HEADERS = 42  # a UDP datagram's headers
UDP_SEGMENT = 103
SLEEP_S = 0.002
# Share of a trial that a busy machine may lose before the trial is inconclusive.
ATTEMPTS = 5
# Bands of prio, chosen by SO_PRIORITY.
FIRST_BAND, SECOND_BAND = 6, 0


def service_ns(size: int, slots: int) -> int:
    """Return the time that slots take for a frame."""
    return ceil_div(size * BYTE_WORK, slots)


class Sender:
    """A packet socket on a0, whose frames are numbered.

    Attributes:
        before_ns: by number, a time before the frame arrived at the channel.
        after_ns: by number, a time after that.
    """

    def __init__(self) -> None:
        self.before_ns: list[int] = []
        self.after_ns: list[int] = []
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        self._socket.bind(("a0", 0))

    def send(self, size: int, priority: int = SECOND_BAND) -> None:
        """Send the next frame."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, priority)
        frame = HEADER + len(self.before_ns).to_bytes(4, "big")
        frame = frame.ljust(size, b"\0")
        self.before_ns.append(time.time_ns())
        self._socket.send(frame)
        self.after_ns.append(time.time_ns())


def received(watcher: socket.socket) -> list[int]:
    """Return the arrival of each frame, by its number."""
    at = {int.from_bytes(data[14:18], "big"): at_ns for at_ns, data in collect(watcher)}
    return [at[number] for number in range(len(at))]


def departures(arrived_ns: list[int], size: int, slots: int) -> list[int]:
    """Return the times at which frames have been sent at constant slots, rounded up to ns."""
    ends, free = [], 0  # `free`: when the channel is idle, in slot-ns
    for at_ns in arrived_ns:
        free = max(free, at_ns * slots) + size * BYTE_WORK
        ends.append(ceil_div(free, slots))
    return ends


def until(at_ns: int) -> None:
    """Spin until a time, because a process that sleeps would be late."""
    while time.time_ns() < at_ns:
        pass


@contextlib.contextmanager
def load_and_latency() -> Iterator[Any]:
    """Keep processors busy; return the largest lateness of a timer, in ns.

    The lateness is that of a process which only sleeps, and runs first when it is woken.
    """
    latest, over = Value("Q"), Event()

    def sleep() -> None:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        while not over.is_set():
            began = time.monotonic_ns()
            time.sleep(SLEEP_S)
            late = time.monotonic_ns() - began - int(SLEEP_S * 1e9)
            latest.value = max(latest.value, late)

    def burn() -> None:
        while not over.is_set():
            sum(range(1000))

    count = os.cpu_count() or 1
    processes = [Process(target=what) for what in (sleep, *[burn] * count)]
    for process in processes:
        process.start()
    time.sleep(0.1)
    try:
        yield latest
    finally:
        over.set()
        for process in processes:
            process.join()


# Trials


def constant_rate(gap_ns: int) -> dict[str, int]:
    """Send frames over constant slots; return the number of early ones, and the largest lateness.

    Args:
        gap_ns: time from one frame to the next; 0: as fast as possible.
    """
    slots, frames = 20, 400 if gap_ns else 1000
    with wire(), arrivals() as watcher:
        run(f"tc qdisc add dev a0 root {PLAIN.format(slots=slots)}")
        sender = Sender()
        with load_and_latency() as latest:
            for number in range(frames):
                if gap_ns and number:
                    # Frames start from just before the previous frame's end to long after it.
                    until(sender.before_ns[-1] + gap_ns + number * 1000)
                sender.send(FRAME)
            time.sleep(frames * service_ns(FRAME, slots) / 1e9 + 0.5)
            at = received(watcher)
            late = latest.value
    earliest = departures(sender.before_ns, FRAME, slots)
    latest_ns = departures(sender.after_ns, FRAME, slots)
    off = [at_ns - end for at_ns, end in zip(at, latest_ns, strict=True)]
    return {
        "frames": len(at),
        "early": sum(at_ns < end for at_ns, end in zip(at, earliest, strict=True)),
        "last_late_ns": off[-1],
        "median_late_ns": sorted(off)[len(off) // 2],
        "timer_ns": late,
    }


def backlog() -> dict[str, int]:
    """Send many frames at once."""
    return constant_rate(0)


def about_the_end() -> dict[str, int]:
    """Send each frame at about the end of the one before."""
    return constant_rate(service_ns(FRAME, 20) - 100_000)


def arrival_behind_a_late_one() -> dict[str, int]:
    """While a parent leaves a sent frame in the channel, the next frame is still served."""
    busy, almost_idle = 400, 6
    with wire(), arrivals() as watcher:
        run(
            "tc qdisc add dev a0 root handle 1: tbf rate 5mbit burst 1600 limit 1mb",
            "tc qdisc add dev a0 parent 1:1 handle 2: prio",
            f"tc qdisc add dev a0 parent 2:2 handle 3: {PLAIN.format(slots=1)}",
        )
        sender = Sender()
        for _ in range(busy):
            sender.send(FRAME, FIRST_BAND)
        sender.send(SMALL)
        while qdiscs()[0].queued_packets > almost_idle:
            pass
        sender.send(FRAME)
        time.sleep(1)
        at = received(watcher)
    return {
        "frames": len(at),
        "in_time": at[busy] > sender.before_ns[busy + 1],  # the parent was late
        "served_ns": at[busy + 1] - sender.before_ns[busy + 1],
        "least_ns": service_ns(FRAME, 1),
    }


def change_behind_a_parent() -> dict[str, int]:
    """Give a channel one slot after it has sent all frames to a slower parent.

    The parent still holds frames. If the channel counted these as not yet sent, it would fall
    behind its parent after twice as many frames as had left before the change.
    """
    buffers, segments, last = 2, 44, 20
    argv = ["tc", "-batch", "-"]
    with (
        wire(),
        arrivals() as watcher,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
        subprocess.Popen(argv, stdin=subprocess.PIPE, text=True) as tc,
    ):
        assert tc.stdin is not None
        run(
            "tc qdisc add dev a0 root handle 1: htb default 1",
            "tc class add dev a0 parent 1: classid 1:1 htb rate 1mbit burst 6000 cburst 6000",
            f"tc qdisc add dev a0 parent 1:1 handle 2: {PLAIN.format(slots=200)}",
        )
        sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, FRAME - HEADERS)
        for _ in range(buffers):
            sender.sendto(bytes(segments * (FRAME - HEADERS)), ("10.9.0.2", 9))
        until(time.time_ns() + buffers * segments * service_ns(FRAME, 200))
        tc.stdin.write(f"qdisc change dev a0 parent 1:1 handle 2: {PLAIN.format(slots=1)}\n")
        tc.stdin.close()
        tc.wait()
        changed = time.time_ns()
        time.sleep(4)
        at = [frame.at_ns for frame in collect(watcher) if len(frame.data) == FRAME]
    return {
        "frames": len(at),
        "in_time": 2 * sum(ns <= changed for ns in at) + last < len(at),
        "gap_ns": (at[-1] - at[-1 - last]) // last,
        "parent_ns": FRAME * 8000,
        "channel_ns": service_ns(FRAME, 1),
    }


def main() -> None:
    """Run every trial."""
    os.environ["TC_LIB_DIR"] = "/mnt/bin"
    Path("/dev/shm").mkdir(exist_ok=True)  # for memory that processes share
    load("sch_dtm")
    trials = (backlog, about_the_end, arrival_behind_a_late_one, change_behind_a_parent)
    found = {}
    for trial in trials:
        for _ in range(ATTEMPTS):
            found[trial.__name__] = trial()
            report()
            if found[trial.__name__].get("in_time", True):
                break
        (RUN / "clock.json").write_text(json.dumps(found, indent=1))
    unload("sch_dtm")


if __name__ == "__main__":
    main()
