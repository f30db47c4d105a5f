"""Scenarios of more than one command and its answer, which the cases of dtm/*.yml name.

Time is the guest's virtual one, which stands still while anything computes and moves by a few
hundred nanoseconds when a process reads the clock. So departures are compared to the nanosecond
with those that follow from the number of slots. Frames go from a0 through its qdisc to b0, which is
in its own network namespace, where a packet socket notes the time of each arrival.
"""

import contextlib
import itertools
import json
import re
import select
import socket
import struct
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import NamedTuple

from claims import HERE, claim, expect, namespace, run
from dtm_event_scenarios import DTM, pool, recording
from rtnetlink import Qdisc, Rtnetlink

MANUAL = Path(__file__).parents[2] / "tc/tc-dtm.8"

ADDRESSES = {"a0": "02:00:00:00:00:01", "b0": "02:00:00:00:00:02"}
ETH_P_ALL = 0x0003
# From a0 to b0, of IEEE 802's type for experiments.
HEADER = bytes.fromhex(f"{ADDRESSES['b0']}{ADDRESSES['a0']}88b5".replace(":", ""))
MTU_FRAME = 1514
SO_TIMESTAMPNS = 35
SO_SNDBUFFORCE = 32
SO_RCVBUFFORCE = 33
BYTE_WORK = 15625  # slot-ns per byte: 8 bits at 512 kbit/s
CYCLE_NS = 125_000
MS = 10**6


class Frame(NamedTuple):
    """A frame as it arrived at b0."""

    at_ns: int
    data: bytes


# The cable


@contextlib.contextmanager
def wire() -> Iterator[None]:
    """Make a veth from a0 to b0, in the namespace `far`; neighbours are known."""
    a, b = ADDRESSES["a0"], ADDRESSES["b0"]
    with contextlib.ExitStack() as undo:
        run("ip netns add far")
        undo.callback(run, "ip netns del far")
        run(f"ip link add a0 address {a} type veth peer name b0 address {b} netns far")
        undo.callback(run, "ip link del a0")
        run(
            "ip link set a0 up",
            "ip address add 10.9.0.1/24 dev a0",
            f"ip neigh add 10.9.0.2 lladdr {b} dev a0",
            "ip -n far link set b0 up",
            "ip -n far address add 10.9.0.2/24 dev b0",
            f"ip -n far neigh add 10.9.0.1 lladdr {a} dev b0",
        )
        yield


@contextlib.contextmanager
def arrivals() -> Iterator[socket.socket]:
    """Yield a socket that gets every frame at b0 with the time of its arrival."""
    with namespace("far"):
        watcher = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    with watcher:
        watcher.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        watcher.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        with namespace("far"):
            watcher.bind(("b0", ETH_P_ALL))
        yield watcher


def collect(watcher: socket.socket) -> list[Frame]:
    """Return the frames from a0 that have arrived so far, in order."""
    frames = []
    with contextlib.suppress(BlockingIOError):
        while True:
            data, ancillary, _, _ = watcher.recvmsg(1 << 17, 256, socket.MSG_DONTWAIT)
            seconds, ns = struct.unpack("=qq", ancillary[0][2])
            if data[6:12] == HEADER[6:12]:
                frames.append(Frame(seconds * 10**9 + ns, data))
    return frames


def send_frames(
    sizes: list[int], device: str = "a0", header: bytes = HEADER
) -> tuple[int, int, int]:
    """Send frames of these sizes; return the times before and after the first, and at the end."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        # All of the frames wait in the queue.
        sender.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 64 << 20)
        sender.bind((device, 0))
        before = time.time_ns()
        sender.send(header.ljust(sizes[0], b"\0"))
        after = time.time_ns()
        for size in sizes[1:]:
            # A packet socket reports an error if the queue is full.
            with contextlib.suppress(OSError):
                sender.send(header.ljust(size, b"\0"))
        return before, after, time.time_ns()


def channels(device: str = "a0") -> list[Qdisc]:
    """List the qdiscs of a device."""
    with Rtnetlink() as route:
        return route.show(device)


def ceil_div(work: int, slots: int) -> int:
    """Return the nanoseconds that slots take for an amount of slot-ns."""
    return -(-work // slots)


def departures(begin_ns: int, sizes: list[int], changes: list[tuple[int, int]]) -> list[int]:
    """Return when frames of a backlog end under changing slots, by the integral of the slots.

    Args:
        begin_ns: arrival of the first at an idle channel.
        sizes: bytes on the link.
        changes: (time, slots from then on), sorted; the first is before begin_ns.
    """
    ends = []
    work = 0
    for size in sizes:
        work += size * BYTE_WORK
        left, since, slots = work, begin_ns, changes[0][1]
        for at_ns, now in changes[1:]:
            if at_ns > begin_ns:
                if left <= (at_ns - since) * slots:
                    break
                left -= (at_ns - since) * slots
                since = at_ns
            slots = now
        ends.append(since + ceil_div(left, slots))
    return ends


# Service


def service_times(slots: int, overhead: int = 0) -> None:
    """A backlog of frames of many sizes departs exactly at the times that its slots give."""
    sizes = [MTU_FRAME, 60, 1000, 61, MTU_FRAME, 333, 1499] * 3
    with wire(), arrivals() as watcher:
        run(f"tc qdisc add dev a0 root handle 1 dtm slots {slots} overhead {overhead}")
        before, after, end = send_frames(sizes)
        time.sleep(1)
        frames = collect(watcher)
    expect("sizes", [len(frame.data) for frame in frames], sizes)
    on_link = [size + overhead for size in sizes]
    begin = frames[0].at_ns - ceil_div(on_link[0] * BYTE_WORK, slots)
    claim(f"service begins on arrival, {before}..{after}: {begin}", before <= begin <= after)
    claim("all were queued before the first had left", end < frames[0].at_ns)
    wanted = departures(begin, on_link, [(0, slots)])
    expect("departures", [f.at_ns - begin for f in frames], [at - begin for at in wanted])


def framed_service(slots: int) -> None:
    """A framed packet takes whole slots and leaves at the end of the cycle of its last slot."""
    sizes = [MTU_FRAME, 60, 61, 64 * slots // 8, 1000, MTU_FRAME]
    with wire(), arrivals() as watcher:
        run(f"tc qdisc add dev a0 root handle 1 dtm slots {slots} framed")
        before, after, _ = send_frames(sizes)
        time.sleep(1)
        times = [frame.at_ns for frame in collect(watcher)]
    # Cycles begin at multiples of 125 us, but of another clock than that of the time stamps.
    phase = times[0] % CYCLE_NS
    carried = [-(-size // 8) * 8 for size in sizes]
    wanted = {
        tuple(end + (phase - end) % CYCLE_NS for end in departures(begin, carried, [(0, slots)]))
        for begin in range(before, after + 1)
    }
    claim(f"departures {times} are none of {wanted}", tuple(times) in wanted)


def reallocated_in_service() -> None:
    """If slots change amid packets, the packets' ends move in proportion, to the nanosecond."""
    sizes = [MTU_FRAME] * 12
    with wire(), arrivals() as watcher:
        with recording() as rows:
            run(
                "tc qdisc add dev a0 root handle 1 dtm slots 4 allocator trace"
                " steps 50ms:20,1234us:3,7us:8192,1us:1,20ms:7,1500us:20"
            )
            time.sleep(0.049)
            before, after, _ = send_frames(sizes)
            time.sleep(1)
            run("tc -s qdisc show dev a0")
        frames = [frame.at_ns for frame in collect(watcher)]
    created = next(row.time_ns for row in rows if row.cause == "start")
    steps = [(50_000, 20), (1234, 3), (7, 8192), (1, 1), (20_000, 7), (1500, 20)]
    changes = [(created, 4)]
    for after_us, slots in steps:
        changes.append((changes[-1][0] + after_us * 1000, slots))
    expect("trace", [(r.time_ns, r.to_slots) for r in rows if r.cause == "allocator"], changes[1:])
    candidates = [
        begin
        for begin in range(before, after + 1)
        if departures(begin, sizes[:1], changes)[0] == frames[0]
    ]
    claim("the first frame leaves as its arrival says", bool(candidates))
    ends = [departures(begin, sizes, changes) for begin in candidates]
    claim(f"departures {frames} are none of {ends}", frames in ends)
    claim("every change was in service", frames[0] < changes[-1][0] < frames[-1])


def operator_in_service() -> None:
    """If an operator changes slots amid a packet, its end moves in proportion; counters go on."""
    sizes = [MTU_FRAME] * 6
    with wire(), arrivals() as watcher:
        with recording() as rows:
            run("tc qdisc add dev a0 root handle 1 dtm slots 2 limit 5")
            before, after, _ = send_frames(sizes)
            time.sleep(0.02)
            run("tc qdisc change dev a0 root handle 1 dtm slots 9 limit 7")
            time.sleep(1)
        qdisc = channels()[0]
        frames = [frame.at_ns for frame in collect(watcher)]
    created = next(row.time_ns for row in rows if row.cause == "start")
    stats = qdisc.xstats
    assert stats is not None
    changed = created + stats.last_change_ns
    operator = [(r.time_ns, r.from_slots, r.to_slots) for r in rows if r.cause == "operator"]
    expect("operator", operator, [(created, 0, 2), (changed, 2, 9)])
    changes = [(created, 2), (changed, 9)]
    ends = {tuple(departures(begin, sizes[:5], changes)) for begin in range(before, after + 1)}
    claim(f"departures {frames} are none of {ends}", tuple(frames) in ends)
    claim("the change came in service", frames[0] > before and changed < frames[1])
    expect("sent", (qdisc.sent_packets, qdisc.drops), (5, 1))
    expect("counters", (stats.grows, stats.peak_packets, stats.peak_bytes), (1, 5, 5 * MTU_FRAME))
    held = 2 * (changed - created) + 9 * (created + stats.age_ns - changed)
    expect("slot-ns held", stats.slot_seconds * 10**9 + stats.slot_ns, held)


# Traffic


PARENTS = {
    "root": [],
    "prio": ["tc qdisc add dev a0 root handle 1 prio bands 2 priomap" + " 0" * 16],
    "htb": [
        "tc qdisc add dev a0 root handle 1 htb default 1",
        "tc class add dev a0 parent 1: classid 1:1 htb rate 1gbit quantum 1514",
    ],
    "drr": [
        "tc qdisc add dev a0 root handle 1 drr",
        "tc class add dev a0 parent 1: classid 1:1 drr",
        "tc filter add dev a0 parent 1: protocol all matchall classid 1:1",
    ],
    "tbf": ["tc qdisc add dev a0 root handle 1 tbf rate 1gbit burst 100kb latency 1s"],
    "netem": ["tc qdisc add dev a0 root handle 1 netem limit 1000"],
}


def transfer(size: int, address: str = "10.9.0.2") -> Generator[None, None, None]:
    """Send `size` bytes of TCP from a0 to b0 and read them there; yield every 10 ms."""
    with namespace("far"):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        listener = socket.create_server((address, 5001), family=family)
    sender = socket.create_connection((address, 5001))
    receiver, _ = listener.accept()
    with listener, sender, receiver:
        sender.setblocking(False)
        # A cancelled transfer must not send data into the next case.
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("=ii", 1, 0))
        left, got = size, 0
        while got < size:
            readable, writable, _ = select.select([receiver], [sender] if left else [], [], 0.01)
            if writable:
                left -= sender.send(bytes(min(left, 1 << 17)))
            if readable:
                got += len(receiver.recv(1 << 20))
            yield
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("=ii", 0, 0))


def waits_below_its_parent() -> None:
    """A channel sends at its own times, however late its parent asks; slots move no sent packet.

    60 frames take 71 ms at 20 slots, and 12.112 ms each at the parent's 1 Mbit/s. At 300 ms the
    channel falls to one slot, at which a frame would take 23.7 ms; it has none left to send.
    """
    with wire(), arrivals() as watcher:
        run(
            "tc qdisc add dev a0 root handle 1 htb default 1",
            "tc class add dev a0 parent 1: classid 1:1 htb rate 1mbit burst 1514 cburst 1514"
            " quantum 1514",
            "tc qdisc add dev a0 parent 1:1 handle 12 dtm slots 20 allocator trace steps 300ms:1",
        )
        send_frames([MTU_FRAME] * 60)
        time.sleep(2)
        frames = collect(watcher)
    expect("frames", len(frames), 60)
    gaps = [second.at_ns - first.at_ns for first, second in itertools.pairwise(frames)]
    # HTB may wait a nanosecond longer, for a remainder and a reading of the clock, but never for
    # the slots.
    claim(f"gaps {gaps}", all(gap < 12_113_000 for gap in gaps))


def far_behind() -> None:
    """Packets leave on time even if the pool is further behind than softirqs may catch up.

    Each of eight estimators needs about 20000 samples to fall to 0, and no packet comes meanwhile.
    """
    estimator = "dtm slots 1 pool bus allocator rate sample 1ms shift 10 estimate 1000Gbit"
    with pool("bus", 60), wire(), arrivals() as watcher:
        run("ip link add e0 type dummy", "tc qdisc add dev e0 root handle 1 prio bands 8")
        try:
            run(*(f"tc qdisc add dev e0 parent 1:{n} {estimator}" for n in range(1, 9)))
            run("tc qdisc add dev a0 root handle 1 dtm slots 2 min 2 max 2 pool bus")
            time.sleep(60)
            before, after, _ = send_frames([MTU_FRAME] * 9)
            time.sleep(1)
        finally:
            run("ip link del e0")
        times = [frame.at_ns for frame in collect(watcher)]
    service = BYTE_WORK * MTU_FRAME // 2
    begin = times[0] - service
    claim(f"served from its arrival on, {before}..{after}: {begin}", before <= begin <= after)
    expect("times", times, [begin + n * service for n in range(1, 10)])


def bus() -> None:
    """Channels in two network namespaces share a link, and an owner gets its slots back."""
    with pool("bus", 20), wire(), arrivals() as watcher:
        run(f"tc -n far qdisc add dev b0 root handle 2 dtm slots 4 pool bus netns {HERE} owned 12")
        run("tc qdisc add dev a0 root handle 1 dtm slots 16 pool bus")
        with recording() as rows:
            before, after, _ = send_frames([MTU_FRAME] * 8)
            run("tc -n far qdisc change dev b0 root handle 2 dtm slots 12")
            time.sleep(0.003)
            run("tc -n far qdisc change dev b0 root handle 2 dtm slots 4")
            time.sleep(1)
        frames = [frame.at_ns for frame in collect(watcher)]
        shown = json.loads(run(f"{DTM} pool show -j"))
    expect(
        "causes",
        [(r.cause, r.from_slots, r.to_slots) for r in rows],
        [("reclaimed", 16, 8), ("granted", 8, 16)],
    )
    changes = [(0, 16), *((row.time_ns, row.to_slots) for row in rows)]
    ends = {
        tuple(departures(begin, [MTU_FRAME] * 8, changes)) for begin in range(before, after + 1)
    }
    claim(f"departures {frames} are none of {ends}", tuple(frames) in ends)
    claim("both changes were in service", changes[-1][0] < frames[-1])
    expect(
        "pool",
        [(p["pool"], p["slots"], p["used"], p["channels"]) for p in shown],
        [("bus", 20, 20, 2)],
    )


def per_flow_channels() -> None:
    """Each flow has its own channel of one pool, and departs at the times that its slots give."""
    slots = {5001: 4, 5002: 7, 5003: 9}
    with pool("bus", 20), wire(), arrivals() as watcher:
        run("tc qdisc add dev a0 root handle 1 prio bands 4 priomap" + " 3" * 16)
        for band, (port, n) in enumerate(slots.items(), 1):
            run(
                f"tc qdisc add dev a0 parent 1:{band} handle 1{band} dtm slots {n} pool bus",
                "tc filter add dev a0 parent 1: protocol ip u32"
                f" match ip dport {port} 0xffff flowid 1:{band}",
            )
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for number in range(20):
                for port in slots:
                    sender.sendto(bytes(1000 + number), ("10.9.0.2", port))
        time.sleep(2)
        frames = collect(watcher)
        kept = [q.xstats.pool_free for q in channels() if q.xstats]
    expect("pool-free", kept, [0, 0, 0])
    for port, n in slots.items():
        flow = [f for f in frames if int.from_bytes(f.data[36:38], "big") == port]
        sizes = [42 + 1000 + number for number in range(20)]
        expect(f"sizes to {port}", [len(frame.data) for frame in flow], sizes)
        begin = flow[0].at_ns - ceil_div(sizes[0] * BYTE_WORK, n)
        wanted = departures(begin, sizes, [(0, n)])
        expect(f"departures to {port}", [frame.at_ns for frame in flow], wanted)


def manual_examples() -> None:
    """Each example of tc-dtm(8) with tc works as described, without an error."""
    page = MANUAL.read_text(encoding="utf-8")
    shown = page[page.index(".SH EXAMPLES") : page.index(".SH NOTES")].replace("\\e\n", " ")
    examples = re.findall(r"^\.nf\n(.*?)^\.fi$", shown, re.MULTILINE | re.DOTALL)
    kinds = []
    for example in examples:
        commands = [line[2:].replace("eth0", "d0") for line in example.splitlines()]
        pools = [command.split()[3] for command in commands if command.startswith("dtm pool add")]
        if all(command.startswith(("tc qdisc", "tc filter", "dtm pool")) for command in commands):
            run(*commands)
            kinds.append([q["kind"] for q in json.loads(run("tc -j qdisc show dev d0"))])
            run("tc qdisc del dev d0 root", *(f"dtm pool del {name}" for name in pools))
    expect("qdiscs", kinds, [["dtm"]] * 4 + [["prio", "dtm", "dtm", "dtm"]])


def delete_under_load(parent: str) -> None:
    """A channel with a backlog is deleted completely, and the next channel works."""
    where = "root" if parent == "root" else "parent 1:1"
    with pool("bus", 20), wire(), arrivals() as watcher:
        run(*PARENTS[parent], f"tc qdisc add dev a0 {where} handle 12 dtm slots 1 pool bus")
        send_frames([MTU_FRAME] * 20)
        time.sleep(0.1)
        left = next(q for q in channels() if q.kind == "dtm").queued_packets
        # 100 ms at one slot are 4.2 of these frames.
        expect("backlog", left, 16)
        run(f"tc qdisc del dev a0 {where}")
        remaining = [q for q in channels() if q.handle.major]
        queued = [(q.queued_packets, q.backlog_bytes) for q in remaining]
        expect("backlog of the parents", queued, [(0, 0)] * len(queued))
        time.sleep(1)
        expect("frames", len(collect(watcher)), 4)
        run(f"tc qdisc add dev a0 {where} handle 13 dtm slots 19 pool bus")
        send_frames([MTU_FRAME] * 20)
        time.sleep(1)
        expect("frames through the next", len(collect(watcher)), 20)
        send_frames([MTU_FRAME] * 20)
    expect("users of the module", Path("/sys/module/sch_dtm/refcnt").read_text(), "0\n")
