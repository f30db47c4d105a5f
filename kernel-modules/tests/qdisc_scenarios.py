"""Scenarios for each of our qdiscs, alone and with a queue inside, which dtm/cases.yml names.

Frames go from a0 through its qdisc to b0; see dtm_scenarios.py. A queue inside, at class 1, chooses
which packet comes next, and the shaper when it leaves.
"""

import contextlib
import itertools
import json
import subprocess
import time
from pathlib import Path
from typing import TypedDict

from claims import claim, expect, namespace, run
from dtm_scenarios import (
    ADDRESSES,
    HEADER,
    MTU_FRAME,
    PARENTS,
    Frame,
    arrivals,
    channels,
    collect,
    send_frames,
    transfer,
    wire,
)
from rtnetlink import Qdisc

# The queues that Linux has, with limits below a burst of frames; tbf and netem are no queues
# but hold packets back, copy and lose them.
QUEUES = (
    "pfifo limit 5",
    "bfifo limit 7570",
    "codel limit 5",
    "fq_codel limit 5",
    "fq_pie limit 5",
    "pie limit 5",
    "sfq limit 5",
    "fq limit 5",
    "red limit 30280 min 4542 max 13626 avpkt 1514 burst 6 bandwidth 1Mbit",
    "choke limit 40 bandwidth 1Mbit",
    "cake unlimited memlimit 30000",
    "cake bandwidth 500kbit",
    "prio",
    "tbf rate 500kbit burst 2000 limit 7570",
    "netem delay 10ms limit 5",
    "netem loss random 50%",
    "netem duplicate 50% limit 5",
)
SIZES = [MTU_FRAME, 60, 1000, MTU_FRAME, 61, 333, 1499, MTU_FRAME, 500]


class Ours(TypedDict):
    """A qdisc of the table.

    Attributes:
        options: the options with which it is added.
        there: further options for the other end of a wire.
        frame_ns: transmission time of a frame of MTU_FRAME bytes on its link.
        refusal: the kernel's answer if it is added without options; empty if it needs none.
    """

    options: str
    there: str
    frame_ns: int
    refusal: str


def backlogs(device: str = "a0", *, without: str = "") -> set[tuple[int, int]]:
    """Return packets and bytes that wait, as each level of a device's qdiscs counts them.

    Args:
        device: its name.
        without: a kind that does not count.
    """
    levels = [q for q in channels(device) if q.handle.major and q.kind != without]
    return {(q.queued_packets, q.backlog_bytes) for q in levels}


def add_root(options: str, inside: str = "") -> None:
    """Add a shaper as the root of a0, and perhaps a queue inside."""
    run(f"tc qdisc add dev a0 root handle 1 {options}")
    if inside:
        run(f"tc qdisc add dev a0 parent 1:1 handle 2 {inside}")


def kind(qdisc: Ours) -> str:
    """The qdisc's name."""
    return qdisc["options"].split()[0]


def expect_unused(qdisc: Ours) -> None:
    """Check that no queue of this kind exists."""
    users = Path(f"/sys/module/sch_{kind(qdisc)}/refcnt").read_text()
    expect("users of the module", users, "0\n")


def expect_gaps(frames: list[Frame], count: int, gap_ns: int) -> None:
    """Check that `count` frames arrived, `gap_ns` apart."""
    times = [frame.at_ns for frame in frames]
    gaps = [second - first for first, second in itertools.pairwise(times)]
    expect("gaps", gaps, [gap_ns] * (count - 1))


def expect_free_link(qdisc: Ours) -> None:
    """Check that frames leave as on a new link: the first one does not wait."""
    with arrivals() as watcher:
        before, after, _ = send_frames([MTU_FRAME] * 3)
        time.sleep(1)
        frames = collect(watcher)
    expect_gaps(frames, 3, qdisc["frame_ns"])
    begin = frames[0].at_ns - qdisc["frame_ns"]
    claim(f"the link is free, {before}..{after}: {begin}", before <= begin <= after)


def flap(qdisc: Ours, inside: str = "") -> None:
    """A link that was switched off and on is idle, and so is the queue inside."""
    with wire():
        add_root(qdisc["options"], inside)
        send_frames([MTU_FRAME] * 100)
        time.sleep(0.05)
        run("ip link set a0 down", "ip link set a0 up")
        expect("queued after a flap", backlogs(), {(0, 0)})
        expect_free_link(qdisc)


def replaced_by_itself(qdisc: Ours) -> None:
    """If an equal qdisc with the same handle replaces one, nothing changes."""
    command = f"tc qdisc replace dev a0 root handle 1 {qdisc['options']}"
    with wire(), arrivals() as watcher:
        run(command)
        shown = run("tc qdisc show dev a0")
        send_frames([MTU_FRAME] * 9)
        for _ in range(2):
            run(command)
            expect("after a replacement", run("tc qdisc show dev a0"), shown)
        expect("queued", backlogs(), {(9, 9 * MTU_FRAME)})
        time.sleep(1)
        expect_gaps(collect(watcher), 9, qdisc["frame_ns"])


def replaced_by_another(qdisc: Ours, parent: str) -> None:
    """If a qdisc with another handle replaces one, it drops the packets and the link idles."""
    where = "root" if parent == "root" else "parent 1:1"
    with wire():
        run(f"tc -n far qdisc add dev b0 root {qdisc['options']} {qdisc['there']}")
        run(*PARENTS[parent], f"tc qdisc add dev a0 {where} handle 11 {qdisc['options']}")
        for handle in (12, 13):
            send_frames([MTU_FRAME] * 9)
            run(f"tc qdisc replace dev a0 {where} handle {handle} {qdisc['options']}")
            expect("queued", backlogs(), {(0, 0)})
            expect_free_link(qdisc)


def by_default(qdisc: Ours) -> None:
    """A kind can be the default qdisc of each queue of a device, or reports what it needs."""
    refusal = qdisc["refusal"]
    sysctl = "sysctl -q -w net.core.default_qdisc="
    with contextlib.ExitStack() as undo:
        run("ip link add m0 numtxqueues 4 type dummy")
        undo.callback(run, "ip link del m0")
        run(f"{sysctl}{kind(qdisc)}")
        undo.callback(run, f"{sysctl}pfifo_fast")
        command = ["tc", "qdisc", "replace", "dev", "m0", "root", "handle", "1", "mq"]
        for _ in range(2):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            expect("the kernel's answer", done.stderr, refusal and f"Error: {refusal}.\n")
        shown = run("tc qdisc show dev m0")
    expect("qdiscs made", shown.count(f"qdisc {kind(qdisc)} "), 0 if refusal else 4)


def gso(
    qdisc: Ours, parent: str, address: str = "10.9.0.2", limit: int = 0, inside: str = ""
) -> None:
    """The large buffers of a TCP flow leave as packets, and all levels count them the same.

    Args:
        qdisc: ours.
        parent: its place, of PARENTS.
        address: that of the receiver.
        limit: of the qdisc, in packets, so small that it drops parts of buffers; 0: its own.
        inside: the kind of a queue inside, of 20 packets.
    """
    with wire(), arrivals() as watcher, contextlib.ExitStack() as stack:
        if ":" in address:
            speak_ipv6()
        run("tc qdisc add dev a0 root pfifo limit 1000")
        for _ in transfer(200_000, address):
            pass
        without = max(len(frame.data) for frame in collect(watcher))
        claim(f"without it there are buffers of many packets: {without}", without > MTU_FRAME)
        where = "root" if parent == "root" else "parent 1:1"
        run("tc qdisc del dev a0 root", *PARENTS[parent])
        limited = f"limit {limit}" if limit else ""
        run(f"tc qdisc add dev a0 {where} handle 12 {qdisc['options']} {limited}")
        if inside:
            run(f"tc qdisc add dev a0 parent 12:1 handle 13 {inside} limit 20")
        deepest = 0
        for _ in stack.enter_context(contextlib.closing(transfer(200_000, address))):
            queued = backlogs(without=inside)
            claim(f"all levels have the same backlog: {queued}", len(queued) == 1)
            deepest = max(deepest, *(packets for packets, _ in queued))
        time.sleep(5)  # for the last segments of TCP
        expect("backlog in the end", backlogs(), {(0, 0)})
        levels = [q for q in channels() if q.handle.major]
        frames = collect(watcher)
    claim(f"there was a backlog: {deepest}", deepest > 1)
    sizes = [len(frame.data) for frame in frames]
    expect("the largest frame", max(sizes), MTU_FRAME)
    at_once = 0
    for first, second in itertools.pairwise(frames):
        # Each end is rounded up to a nanosecond, so two ends may be up to one ns closer.
        gap, least = second.at_ns - first.at_ns, qdisc["frame_ns"] * len(second.data) // MTU_FRAME
        claim(f"{len(second.data)} bytes took {gap} ns, not {least}", gap >= least)
        at_once += gap <= least + 1
    # All but those that found the link idle: at the start and after a loss.
    claim(f"{at_once} of {len(frames)} follow at once", at_once > 0.9 * len(frames) or limit > 0)
    for level in levels:
        expect(level.kind, (level.sent_packets, level.sent_bytes), (len(frames), sum(sizes)))
    if not inside:
        drops = next(level.drops for level in levels if level.kind == kind(qdisc))
        claim(f"drops: {drops}", (drops > 0) == (limit > 0))


def speak_ipv6() -> None:
    """Give both ends of the cable an IPv6 address at once."""
    for inside, device, own, peer, of in (
        ("", "a0", 1, 2, ADDRESSES["b0"]),
        ("ip netns exec far ", "b0", 2, 1, ADDRESSES["a0"]),
    ):
        run(
            f"{inside}sysctl -q -w net.ipv6.conf.{device}.disable_ipv6=0",
            f"{inside}ip address add fd09::{own}/64 dev {device} nodad",
            f"{inside}ip neigh add fd09::{peer} lladdr {of} dev {device}",
        )


def sized_by_stab(qdisc: Ours, overhead: int) -> None:
    """A packet takes the time of the size that a stab gives it, at least one byte."""
    counted = max(MTU_FRAME + overhead, 1)
    with wire(), arrivals() as watcher:
        run(f"tc qdisc add dev a0 root handle 1 stab overhead {overhead} {qdisc['options']}")
        send_frames([MTU_FRAME] * 9)
        queued = {bytes_ / packets for packets, bytes_ in backlogs() if packets}
        claim(f"bytes of a packet: {queued}", queued <= {counted})
        time.sleep(1)
        if counted > 1:
            expect_gaps(collect(watcher), 9, qdisc["frame_ns"] * counted // MTU_FRAME)
        expect("queued in the end", backlogs(), {(0, 0)})


def tagged(qdisc: Ours) -> None:
    """A frame's VLAN tag of four bytes takes its time as well."""
    with wire(), arrivals() as watcher:
        add_root(qdisc["options"])
        send_frames([MTU_FRAME + 4] * 9, header=HEADER[:12] + bytes.fromhex("81000001 88b5"))
        expect("queued", backlogs(), {(9, 9 * (MTU_FRAME + 4))})
        time.sleep(1)
        expect_gaps(collect(watcher), 9, qdisc["frame_ns"] * (MTU_FRAME + 4) // MTU_FRAME)


def mtu_changes(qdisc: Ours) -> None:
    """If a device's MTU changes, waiting packets stay, and each frame leaves on time."""
    with wire(), arrivals() as watcher:
        add_root(qdisc["options"])
        send_frames([MTU_FRAME] * 9)
        for mtu in (600, 9000, 1500):
            run(f"ip link set a0 mtu {mtu}")
            expect("queued", backlogs(), {(9, 9 * MTU_FRAME)})
        time.sleep(1)
        expect_gaps(collect(watcher), 9, qdisc["frame_ns"])


def ends_with_its_namespace(qdisc: Ours) -> None:
    """A network namespace that ends removes a qdisc that has packets."""
    run(
        "ip netns add far",
        "ip -n far link add c0 type dummy",
        "ip -n far link set c0 up",
        f"tc -n far qdisc add dev c0 root handle 1 {qdisc['options']}",
    )
    with namespace("far"):
        send_frames([MTU_FRAME] * 9, "c0")
        claim("packets wait", backlogs("c0") != {(0, 0)})
    run("ip netns del far")
    time.sleep(1)
    expect_unused(qdisc)


def unloaded(qdisc: Ours) -> None:
    """A module stays while its packets wait, and can be removed after the queue is deleted."""
    module = f"sch_{kind(qdisc)}"
    with wire():
        add_root(qdisc["options"])
        send_frames([MTU_FRAME] * 9)
        done = subprocess.run(["rmmod", module], capture_output=True, text=True, check=False)
        claim(f"in use: {done.stderr}", done.returncode != 0)
        claim("packets wait", backlogs() != {(0, 0)})
        run("tc qdisc del dev a0 root", f"rmmod {module}", f"insmod /mnt/bin/{module}.ko")


def large_packets(qdisc: Ours) -> None:
    """A packet that a stab makes the largest allowed is accepted, and a reset removes it."""
    with wire():
        run(f"tc qdisc add dev a0 root handle 1 stab overhead 1047000 {qdisc['options']}")
        send_frames([MTU_FRAME] * 5)
        expect("queued", backlogs(), {(5, 5 * (1_047_000 + MTU_FRAME))})
        run("ip link set a0 down", "ip link set a0 up")
        expect("queued after a flap", backlogs(), {(0, 0)})


def ends_with_its_device(qdisc: Ours) -> None:
    """A device that ends removes a qdisc that has packets, and the next qdisc works."""
    for _ in range(2):
        with wire():
            add_root(qdisc["options"])
            send_frames([MTU_FRAME] * 9)
            claim(f"packets wait: {backlogs()}", backlogs() != {(0, 0)})
    expect_unused(qdisc)


def horizon(options: str, sent: int, queued: int) -> None:
    """A packet that would leave too late is dropped, and the kernel continues."""
    with wire():
        add_root(options)
        send_frames([MTU_FRAME] * sent)
        qdisc = channels()[0]
    expect("queued and dropped", (qdisc.queued_packets, qdisc.drops), (queued, sent - queued))


def wall_clock_steps() -> None:
    """After the wall clock was set, changes leave a table's phase, and dumps follow the clock."""
    change = "tc qdisc change dev a0 root handle 1 timetable"
    start_real, clock = time.time_ns(), time.monotonic_ns()
    with wire(), arrivals() as watcher, contextlib.ExitStack() as undo:
        run("tc qdisc add dev a0 root handle 1 timetable rates 0s:1Mbit,10s:8Mbit period 20s")
        start_ns = json.loads(run("tc -j qdisc show dev a0"))[0]["options"]["start_ns"]
        undo.callback(
            lambda: time.clock_settime_ns(
                time.CLOCK_REALTIME, start_real + time.monotonic_ns() - clock
            )
        )
        for step_s, option in ((12, "limit 900"), (100, "overhead 0"), (-105, "limit 800")):
            run(f"date -s {step_s:+}seconds", f"{change} {option}")
            start_ns += step_s * 10**9
            shown = json.loads(run("tc -j qdisc show dev a0"))[0]["options"]["start_ns"]
            # date reads the clock some time before it sets it.
            claim(f"the start follows: {shown - start_ns} ns", abs(shown - start_ns) < 10**6)
            run(f"{change} start {shown}ns")
            again = json.loads(run("tc -j qdisc show dev a0"))[0]["options"]["start_ns"]
            expect("a start given back", again, shown)
            send_frames([MTU_FRAME] * 3)
            time.sleep(0.1)
            expect_gaps(collect(watcher), 3, 12_112_000)


# A queue inside


def shaper(device: str = "a0") -> Qdisc:
    """Find our qdisc at the root of a device."""
    return next(q for q in channels(device) if q.handle.number == 0x10000)


def inside_as_the_list(qdisc: Ours) -> None:
    """A pfifo inside, and the shaper's own list with one place more, give the same link."""
    options = qdisc["options"]
    seen = []
    for words in ((f"{options} limit 6",), (options, "pfifo limit 5")):
        with wire(), arrivals() as watcher:
            add_root(*words)
            for _ in range(2):
                send_frames(SIZES)
                queued, drops = shaper().queued_packets, shaper().drops
                time.sleep(1)
                frames = collect(watcher)
                first = frames[0].at_ns
                times = [(frame.at_ns - first, len(frame.data)) for frame in frames]
                seen.append((queued, drops, times))
            expect("left in the queue", shaper().backlog_bytes, 0)
    expect("with a pfifo inside", seen[2:], seen[:2])
    expect("queued and dropped", seen[0][:2], (6, 3))


def inside_any_queue(qdisc: Ours) -> None:
    """Whatever queue is inside, packets leave at the link's rate, and each one is accounted for."""
    for queue in QUEUES:
        with wire(), arrivals() as watcher:
            add_root(qdisc["options"], queue)
            send_frames([MTU_FRAME] * 20)
            time.sleep(5)
            expect(f"{queue}: left in all queues", backlogs(), {(0, 0)})
            frames, root = collect(watcher), shaper()
        expect(f"{queue}: packets sent", root.sent_packets, len(frames))
        if "duplicate" not in queue and "loss" not in queue:
            expect(f"{queue}: sent and dropped", root.sent_packets + root.drops, 20)
        claim(f"{queue}: packets arrive: {len(frames)}", len(frames) > 1)
        gaps = [after.at_ns - before.at_ns for before, after in itertools.pairwise(frames)]
        claim(f"{queue}: frames {min(gaps)} ns apart", min(gaps) >= qdisc["frame_ns"])


def inside_taken_out(qdisc: Ours) -> None:
    """A queue that goes takes its packets along, and the packet being sent leaves on time."""
    with wire(), arrivals() as watcher:
        add_root(qdisc["options"], "fq_codel")
        send_frames([MTU_FRAME] * 9)
        expect("queued", shaper().queued_packets, 9)
        run("tc qdisc replace dev a0 parent 1:1 handle 3 pfifo limit 20")
        expect("queued without fq_codel's", shaper().queued_packets, 1)
        send_frames([MTU_FRAME] * 4)
        run("tc qdisc del dev a0 parent 1:1")
        expect("queued without pfifo's", (shaper().queued_packets, shaper().drops), (1, 12))
        send_frames([MTU_FRAME] * 4)
        time.sleep(1)
        expect_gaps(collect(watcher), 5, qdisc["frame_ns"])
        expect("classes", run("tc class show dev a0"), f"class {kind(qdisc)} 1:1 parent 1: \n")
        put_back = "tc qdisc add dev a0 parent 1:1 handle 2 sfq"
        run(put_back, "ip link set a0 down", "ip link set a0 up")
        shown = run("tc class show dev a0").split("\n")[0]
        expect("class", shown, f"class {kind(qdisc)} 1:1 parent 1: leaf 2: ")
        expect_free_link(qdisc)


def inside_itself(qdisc: Ours) -> None:
    """A shaper inside a shaper of its own kind carries packets, and stops no processor."""
    with wire(), arrivals() as watcher:
        add_root(qdisc["options"], qdisc["options"])
        send_frames([MTU_FRAME] * 9)
        time.sleep(5)
        frames = collect(watcher)
        expect("left in all queues", backlogs(), {(0, 0)})
    expect("frames", len(frames), 9)


def inside_a_delay() -> None:
    """A delay takes each packet of a queue inside at once, and keeps their order."""
    with wire(), arrivals() as watcher:
        run(
            "tc qdisc add dev a0 root handle 1 timetable delays 0s:100ms,1s:20ms",
            "tc qdisc add dev a0 parent 1:1 handle 2 netem delay 1ms limit 9",
        )
        before, after, end = send_frames([MTU_FRAME] * 12)
        expect("queued", shaper().queued_packets, 9)
        time.sleep(0.5)
        frames = collect(watcher)
    expect("frames", len(frames), 9)
    travelled = [frame.at_ns - 101_000_000 for frame in frames]
    claim(f"{before}..{end}: {travelled}", before <= travelled[0] <= after)
    claim("no longer delay", travelled[-1] <= end)


def backlog_inside() -> None:
    """An allocator of slots sees the packets of a queue inside, and those that it drops."""
    with wire():
        run(
            "tc qdisc add dev a0 root handle 1 dtm slots 1 min 1 max 40 change 125us"
            " allocator buffer high 9000 low 3000 rise 10ms fall 10ms step 4",
            "tc qdisc add dev a0 parent 1:1 handle 2 pfifo limit 50",
        )
        send_frames([MTU_FRAME] * 60)
        channel = shaper()
        assert channel.xstats
        expect(
            "peak", (channel.xstats.peak_packets, channel.xstats.peak_bytes), (51, 51 * MTU_FRAME)
        )
        expect("dropped", channel.drops, 9)
        time.sleep(0.1)
        channel = shaper()
        assert channel.xstats
        claim(f"slots rise with the backlog: {channel.xstats.slots}", channel.xstats.slots > 1)
        run("tc qdisc del dev a0 parent 1:1")
        time.sleep(1)
        channel = shaper()
        assert channel.xstats
        expect("slots without a backlog", channel.xstats.slots, 1)
