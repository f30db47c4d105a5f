"""Scenarios with `dtm events`: reallocations as the kernel reports them, at exact times.

They run in a guest's virtual time: a sleep advances it by exactly its length.
"""

import contextlib
import csv
import itertools
import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from claims import RUN, TRACING, claim, expect, run
from rtnetlink import Handle, Rtnetlink, attribute, u32

DTM = "/mnt/bin/dtm"
EVENTS = [DTM, "events"]
NOTES = RUN / "reallocations.csv"
TCA_DTM_SLOTS = 2


class Row(NamedTuple):
    """A row of the output of `dtm events`."""

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
    """Without the module `dtm events` reports that it has nothing to listen to."""
    done = subprocess.run(EVENTS, capture_output=True, text=True, check=False)
    expect("standard error", done.stderr, "dtm: the kernel has no dtm: load sch_dtm first\n")
    expect("standard output", done.stdout, "")
    expect("exit status", done.returncode, 1)


@contextlib.contextmanager
def recorder() -> Iterator[subprocess.Popen[str]]:
    """Run `dtm events` with NOTES as its output; end it if the case fails."""
    process = subprocess.Popen([*EVENTS, "--out", str(NOTES)], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    with process:
        said = process.stderr.readline()
        expect("recorder", said, "listening on the trace event dtm:dtm_reallocation\n")
        try:
            yield process
        finally:
            process.terminate()


@contextlib.contextmanager
def recording() -> Iterator[list[Row]]:
    """Record events for the duration of a `with`; the yielded list of rows is filled at its end."""
    rows: list[Row] = []
    with recorder() as process:
        yield rows
        process.send_signal(signal.SIGINT)
        expect("exit status of dtm events", process.wait(), 0)
    rows += read_rows()


def read_rows() -> list[Row]:
    """Read the rows that `dtm events` wrote."""
    lines = NOTES.read_text(encoding="utf-8").splitlines()
    table = csv.reader(line for line in lines if not line.startswith("#"))
    names = "time_ns interface handle cause from to wanted estimate_bit backlog_bytes"
    expect("columns", next(table), names.split())
    return [Row(int(t), i, h, c, *map(int, rest)) for t, i, h, c, *rest in table]


def causes() -> None:
    """Every cause is reported with its exact time, even if a channel idles meanwhile."""
    with pool("bus", 22), recording() as rows:
        run(
            "tc qdisc add dev d0 root handle 1 prio bands 3",
            "tc qdisc add dev d0 parent 1:1 handle 11 dtm slots 5 pool bus owned 15"
            " allocator trace steps 1s:15,1s:12",
            "tc qdisc add dev d0 parent 1:2 handle 12 dtm slots 15 pool bus"
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
            # The owner takes two free slots and gets eight of its own back.
            (a + second, "12:", "reclaimed", 15, 7, 15),
            (a + second, "11:", "allocator", 5, 15, 15),
            (a + 2 * second, "11:", "allocator", 15, 12, 12),
            # The channel has waited for the slots that it lost.
            (a + 2 * second, "12:", "granted", 7, 10, 15),
            (b + 3 * second, "12:", "denied", 10, 10, 18),
            (changed, "12:", "operator", 10, 2, 2),
            (changed, "12:", "start", 2, 2, 2),
            (rows[-2].time_ns, "11:", "left", 12, 0, 0),
            (rows[-1].time_ns, "12:", "left", 2, 0, 0),
        ],
    )
    expect("interfaces", {row.interface for row in rows}, {"d0"})


@contextlib.contextmanager
def pool(name: str, slots: int) -> Iterator[None]:
    """Make a pool for the duration of a `with`, which must end without channels."""
    run(f"{DTM} pool add {name} slots {slots}")
    try:
        yield
    finally:
        run(f"{DTM} pool del {name}")


def change_slots(times: int) -> None:
    """Give d0's channel 1 slot and 2 slots alternately."""
    with Rtnetlink() as route:
        for number in range(times):
            options = attribute(TCA_DTM_SLOTS, u32(1 + number % 2))
            expect("errno", route.qdisc("change", "d0", Handle(1), options=options).errno, 0)


def burst() -> None:
    """All events before the interrupt are written, whatever their number."""
    run("tc qdisc add dev d0 root handle 1 dtm slots 2")
    with recording() as rows:
        change_slots(1000)
    run("tc qdisc del dev d0 root")
    expect("slots", [row.to_slots for row in rows], [1, 2] * 500)
    claim("times rise", all(p.time_ns < q.time_ns for p, q in itertools.pairwise(rows)))


def end_with_losses(process: subprocess.Popen[str]) -> int:
    """Interrupt `dtm events`, which must report lost events; return their number."""
    process.send_signal(signal.SIGTERM)
    expect("exit status", process.wait(), 1)
    assert process.stderr is not None
    said = process.stderr.read()
    number, _, rest = said.removeprefix("dtm: ").partition(" ")
    expect("standard error", (said[:5], rest), ("dtm: ", "events were lost\n"))
    return int(number)


def steps(number: int) -> str:
    """Return a trace with this number of changes, one each millisecond."""
    return ",".join(f"1ms:{1 + k % 2}" for k in range(number))


def buffers_of(*processes: subprocess.Popen[str]) -> list[int]:
    """Return the number of buffers that each running `dtm events` has."""
    return [len(list(TRACING.glob(f"instances/dtm-{p.pid}-*"))) for p in processes]


def lost() -> None:
    """If the buffer overflows, the newest events are written and the lost ones counted."""
    happened = 3 * 1000
    with pool("bus", 6):
        run("tc qdisc add dev d0 root handle 1 prio bands 3")
        for band in (1, 2, 3):
            run(
                f"tc qdisc add dev d0 parent 1:{band} handle 1{band} dtm slots 2 pool bus"
                f" allocator trace steps {steps(1000)}"
            )
        with recorder() as process:
            (buffer,) = TRACING.glob(f"instances/dtm-{process.pid}-*")
            (buffer / "buffer_size_kb").write_text("16")
            time.sleep(2)
            # Reading the link now brings all of its events up to date.
            run("tc -s qdisc show dev d0")
            missing = end_with_losses(process)
        run("tc qdisc del dev d0 root")
    rows = read_rows()
    claim(f"some were lost and some were not: {missing}", 0 < missing < happened)
    expect("written down or lost", len(rows) + missing, happened)
    for handle in ("11:", "12:", "13:"):
        times = [row.time_ns for row in rows if row.handle == handle]
        claim(f"a third is of {handle}", abs(len(times) - len(rows) / 3) <= 1)
        gaps = {q - p for p, q in itertools.pairwise(times)}
        expect(f"steps of {handle}", gaps, {10**6})
        expect(
            f"the last step of {handle}", [r.to_slots for r in rows if r.handle == handle][-1], 2
        )


def rows_come_at_once() -> None:
    """A pipe gets each row soon after its event, while `dtm events` keeps running."""
    run("tc qdisc add dev d0 root handle 1 dtm slots 2")
    with subprocess.Popen(EVENTS, stdout=-1, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        while not process.stdout.readline().startswith("time_ns,"):
            pass
        run("tc qdisc change dev d0 root handle 1 dtm slots 7")
        row = process.stdout.readline().split(",")
        process.send_signal(signal.SIGINT)
        expect("exit status", process.wait(), 0)
    expect("row", row[1:7], ["d0", "1:", "operator", "2", "7", "7"])


def killed() -> None:
    """The next `dtm events` removes the files of a killed one, but not those of a running one."""
    with recorder() as used, recorder() as process:
        process.kill()
        process.wait()
        expect("buffers", buffers_of(used, process), [1, 1])
        with recorder():
            expect("buffers after another one began", buffers_of(used, process), [1, 0])
    expect("buffers at the end", buffers_of(used, process), [0, 0])


def last_events() -> None:
    """A channel's last events are reported when it is deleted, alone or with its device."""
    with recording() as rows:
        run("tc qdisc add dev d0 root handle 1 dtm slots 2 allocator trace steps 1s:5,1s:6")
        time.sleep(3)
        run("tc qdisc del dev d0 root")
        run("ip link add gone type dummy", "ip link set gone up")
        run("tc qdisc add dev gone root handle 2 dtm slots 3 allocator trace steps 1s:7,1s:8")
        time.sleep(3)
        run("ip link del gone")
    slots = [(row.handle, row.to_slots) for row in rows if row.cause == "allocator"]
    expect("slots", slots, [("1:", 5), ("1:", 6), ("2:", 7), ("2:", 8)])


def namespace_ends() -> None:
    """Network namespaces can end right after their events; events elsewhere continue."""
    used = Path("/sys/module/sch_dtm/refcnt")
    before = used.read_text()
    with recording() as rows:
        for _ in range(10):
            run("ip netns add gone", "ip -n gone link add e0 type dummy")
            run("ip -n gone link set e0 up")
            inside = ["ip", "netns", "exec", "gone", *EVENTS, "--out", "/dev/null"]
            with subprocess.Popen(inside, stderr=subprocess.PIPE, text=True) as listener:
                assert listener.stderr is not None
                claim("listening", "listening on" in listener.stderr.readline())
                run(f"tc -n gone qdisc add dev e0 root dtm allocator trace steps {steps(250)}")
                time.sleep(1)
                run("tc -n gone -s qdisc show dev e0")
                listener.send_signal(signal.SIGINT)
            run("ip netns del gone")
        for _ in range(100):
            if used.read_text() == before:
                break
            time.sleep(0.1)
        expect("uses of sch_dtm", used.read_text(), before)
        run("tc qdisc add dev d0 root handle 1 dtm slots 2", "tc qdisc del dev d0 root")
    expect("events here", [row.cause for row in rows], ["operator", "start", "left"])


def monitored() -> None:
    """A channel may be on an nlmon device, which turns messages about the channel into packets.

    If a message were sent under the channel's locks, the packet would wait for them for ever; the
    lock checker of the sanitised kernel reports that, and the run fails.
    """
    run("ip link add m0 type nlmon", "ip link set m0 up")
    run("tc qdisc add dev m0 root handle 1 dtm slots 20")
    with recording() as rows:
        run("tc qdisc change dev m0 root handle 1 dtm slots 5")
        time.sleep(1)
        sent = json.loads(run("tc -s -j qdisc show dev m0"))[0]["packets"]
    run("ip link del m0")
    expect("slots", [(row.from_slots, row.to_slots) for row in rows], [(20, 5)])
    claim("packets were in the channel", sent > 0)


def usage() -> None:
    """`--help` prints to standard output, and a mistake prints to standard error."""
    for arguments, status in ((["--help"], 0), (["--nonsense"], 2), (["extra"], 2)):
        done = subprocess.run([*EVENTS, *arguments], capture_output=True, text=True, check=False)
        expect("exit status", done.returncode, status)
        said, silent = (done.stderr, done.stdout) if status else (done.stdout, done.stderr)
        wanted = "takes --out FILE only; `dtm --help`" if status else "dtm events [--out FILE] "
        claim(f"usage: {said!r}", wanted in said)
        expect("the other output", silent, "")
    done = subprocess.run(
        [*EVENTS, "--out", "/nowhere/x"], capture_output=True, text=True, check=False
    )
    expect("exit status", done.returncode, 1)
    expect("standard error", done.stderr, "dtm: /nowhere/x: No such file or directory\n")
