"""Scenarios with dtm-events: reallocations as the kernel reports them, each at its exact time."""

import contextlib
import csv
import itertools
import signal
import subprocess
import time
from collections.abc import Iterator
from typing import NamedTuple

from dtm_claims import RUN, claim, expect, run
from rtnetlink import Handle, Rtnetlink, attribute, u32

EVENTS = "/mnt/bin/dtm-events"
NOTES = RUN / "reallocations.csv"
TCA_DTM_SLOTS = 2


class Row(NamedTuple):
    """What dtm-events wrote down."""

    time_ns: int
    interface: str
    handle: str
    cause: str
    from_slots: int
    to_slots: int
    wanted: int
    estimate_bit: int
    backlog_bytes: int


def without_module() -> None:
    """dtm-events says that there is nothing to listen to."""
    done = subprocess.run([EVENTS], capture_output=True, text=True, check=False)
    expect("standard error", done.stderr, "dtm-events: the kernel has no dtm: load sch_dtm first\n")
    expect("standard output", done.stdout, "")
    expect("exit status", done.returncode, 1)


@contextlib.contextmanager
def recorder() -> Iterator[subprocess.Popen[str]]:
    """dtm-events, listening, writing to NOTES; killed if the case fails."""
    process = subprocess.Popen([EVENTS, "--out", str(NOTES)], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    with process:
        said = process.stderr.readline()
        expect("recorder", said, "listening on generic netlink dtm/reallocations\n")
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def recording() -> Iterator[list[Row]]:
    """The rows of what happens within; filled at its end."""
    rows: list[Row] = []
    with recorder() as process:
        yield rows
        process.send_signal(signal.SIGINT)
        expect("exit status of dtm-events", process.wait(), 0)
    rows += read_rows()


def read_rows() -> list[Row]:
    """What dtm-events wrote down."""
    lines = NOTES.read_text(encoding="utf-8").splitlines()
    table = csv.reader(line for line in lines if not line.startswith("#"))
    names = "time_ns interface handle cause from to wanted estimate_bit backlog_bytes"
    expect("columns", next(table), names.split())
    return [Row(int(t), i, h, c, *map(int, rest)) for t, i, h, c, *rest in table]


def causes() -> None:
    """Every cause, at its exact time, though nobody looked at the idle channels meanwhile."""
    with recording() as rows:
        run(
            "tc qdisc add dev d0 root handle 1 prio bands 3",
            "tc qdisc add dev d0 parent 1:1 handle 11 dtm slots 5 pool 22 owned 15"
            " allocator trace steps 1s:15,1s:12",
            "tc qdisc add dev d0 parent 1:2 handle 12 dtm slots 15 pool 22"
            " allocator trace steps 3s:18",
        )
        time.sleep(5)
        run(
            "tc qdisc change dev d0 parent 1:2 handle 12 dtm slots 2 allocator static",
            "tc qdisc del dev d0 root",
        )
    second = 10**9
    a, b, changed = (row.time_ns for row in rows if row.cause == "start")
    claim(f"changed at {changed}", b + 5 * second <= changed < b + 6 * second)
    expect(
        "rows",
        [(r.time_ns, r.handle, r.cause, r.from_slots, r.to_slots, r.wanted) for r in rows],
        [
            (a, "11:", "operator", 0, 5, 5),
            (a, "11:", "start", 5, 5, 5),
            (b, "12:", "operator", 0, 15, 15),
            (b, "12:", "start", 15, 15, 15),
            # Two were free, eight more are the owner's.
            (a + second, "12:", "reclaimed", 15, 7, 15),
            (a + second, "11:", "allocator", 5, 15, 15),
            (a + 2 * second, "11:", "allocator", 15, 12, 12),
            (b + 3 * second, "12:", "denied", 7, 10, 18),
            (changed, "12:", "operator", 10, 2, 2),
            (changed, "12:", "start", 2, 2, 2),
        ],
    )
    expect("interfaces", {row.interface for row in rows}, {"d0"})


def change_slots(times: int) -> None:
    """Give d0's channel 1 and 2 slots in turns."""
    with Rtnetlink() as route:
        for number in range(times):
            options = attribute(TCA_DTM_SLOTS, u32(1 + number % 2))
            expect("errno", route.qdisc("change", "d0", Handle(1), options=options).errno, 0)


def burst() -> None:
    """What happened before the interrupt is written down, however much of it there is to write."""
    run("tc qdisc add dev d0 root handle 1 dtm slots 2")
    with recording() as rows:
        change_slots(1000)
    run("tc qdisc del dev d0 root")
    expect("slots", [row.to_slots for row in rows], [1, 2] * 500)
    claim("times rise", all(p.time_ns < q.time_ns for p, q in itertools.pairwise(rows)))


def lost() -> None:
    """Events that found no room are not passed over in silence."""
    run("tc qdisc add dev d0 root handle 1 dtm slots 2")
    with recorder() as process:
        process.send_signal(signal.SIGSTOP)
        # The kernel makes 16 MiB of the buffer of 8; a message of 100 bytes takes 512 and an skb.
        change_slots((16 << 20) // 512)
        process.send_signal(signal.SIGCONT)
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        expect("exit status", process.wait(), 1)
        assert process.stderr is not None
        expect("standard error", process.stderr.read(), "dtm-events: events were lost\n")
    run("tc qdisc del dev d0 root")


def usage() -> None:
    """--help explains on standard output; a mistake explains on standard error."""
    for arguments, status in ((["--help"], 0), (["--nonsense"], 2), (["extra"], 2)):
        done = subprocess.run([EVENTS, *arguments], capture_output=True, text=True, check=False)
        expect("exit status", done.returncode, status)
        said, silent = (done.stderr, done.stdout) if status else (done.stdout, done.stderr)
        claim(f"usage: {said!r}", "usage: dtm-events [--out FILE]\n" in said)
        expect("the other output", silent, "")
    done = subprocess.run(
        [EVENTS, "--out", "/nowhere/x"], capture_output=True, text=True, check=False
    )
    expect("exit status", done.returncode, 1)
    expect("standard error", done.stderr, "dtm-events: /nowhere/x: No such file or directory\n")
