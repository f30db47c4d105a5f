"""Scenarios for a queue inside each of our qdiscs, which dtm/queue_inside.yml names.

A qdisc at class 1 chooses which packet comes next, and the shaper when it leaves. See
qdisc_scenarios.py for the qdiscs, and dtm_scenarios.py for the cable.
"""

import contextlib
import itertools
import time

from dtm_claims import claim, expect, run
from dtm_scenarios import (
    MTU_FRAME,
    PARENTS,
    arrivals,
    channels,
    collect,
    send_frames,
    transfer,
    wire,
)
from qdisc_scenarios import Ours, expect_free_link, expect_gaps, kind
from rtnetlink import Qdisc

# The queues that Linux has for it, with limits below a burst of frames; tbf and netem are no queues
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


def shaper(device: str = "a0") -> Qdisc:
    """Find our qdisc at the root of a device."""
    return next(q for q in channels(device) if q.handle.number == 0x10000)


def put_inside(options: str, queue: str) -> None:
    """Add a shaper as the root of a0, and a queue inside."""
    run(
        f"tc qdisc add dev a0 root handle 1 {options}",
        f"tc qdisc add dev a0 parent 1:1 handle 2 {queue}",
    )


def compare_with_the_list(options: str) -> None:
    """Send two bursts through the shaper's own list, and through a pfifo with one place less."""
    seen = []
    for inside in (False, True):
        with wire(), arrivals() as watcher:
            if inside:
                put_inside(options, "pfifo limit 5")
            else:
                run(f"tc qdisc add dev a0 root handle 1 {options} limit 6")
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


def inside_as_the_list(qdisc: Ours) -> None:
    """A pfifo inside, and the shaper's own list with one place more, give the same link."""
    compare_with_the_list(qdisc["options"])


def inside_as_a_list(options: str) -> None:
    """A link that changes while packets wait loses none of the packets offered to it."""
    compare_with_the_list(options)


def inside_any_queue(qdisc: Ours) -> None:
    """Whatever queue is inside, packets leave at the link's rate, and each one is accounted for."""
    for queue in QUEUES:
        with wire(), arrivals() as watcher:
            put_inside(qdisc["options"], queue)
            send_frames([MTU_FRAME] * 20)
            time.sleep(5)
            left = {(q.queued_packets, q.backlog_bytes) for q in channels() if q.handle.major}
            expect(f"{queue}: left in all queues", left, {(0, 0)})
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
        put_inside(qdisc["options"], "fq_codel")
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


def inside_flap(qdisc: Ours) -> None:
    """A link that was switched off and on is idle, and so is the queue inside."""
    with wire():
        put_inside(qdisc["options"], "fq_codel")
        send_frames([MTU_FRAME] * 20)
        run("ip link set a0 down", "ip link set a0 up")
        left = {(q.queued_packets, q.backlog_bytes) for q in channels() if q.handle.major}
        expect("queued after a flap", left, {(0, 0)})
        expect_free_link(qdisc)


def inside_under(qdisc: Ours, parent: str) -> None:
    """Each packet of a large TCP buffer passes the queue inside; all parents count it the same."""
    with wire(), arrivals() as watcher, contextlib.ExitStack() as stack:
        where = "root" if parent == "root" else "parent 1:1"
        run(
            *PARENTS[parent],
            f"tc qdisc add dev a0 {where} handle 12 {qdisc['options']}",
            "tc qdisc add dev a0 parent 12:1 handle 13 fq_codel limit 20",
        )
        deepest = 0
        for _ in stack.enter_context(contextlib.closing(transfer(200_000))):
            queued = {
                (q.queued_packets, q.backlog_bytes)
                for q in channels()
                if q.handle.major and q.kind != "fq_codel"
            }
            claim(f"all levels have the same backlog: {queued}", len(queued) == 1)
            deepest = max(deepest, *(packets for packets, _ in queued))
        time.sleep(5)  # for the last segments of TCP
        left = {(q.queued_packets, q.backlog_bytes) for q in channels() if q.handle.major}
        expect("backlog in the end", left, {(0, 0)})
        frames = collect(watcher)
    claim(f"there was a backlog: {deepest}", deepest > 1)
    for first, second in itertools.pairwise(frames):
        gap, least = second.at_ns - first.at_ns, qdisc["frame_ns"] * len(second.data) // MTU_FRAME
        claim(f"{len(second.data)} bytes took {gap} ns, not {least}", gap >= least)


def inside_itself(qdisc: Ours) -> None:
    """A shaper inside a shaper of its own kind carries packets, and stops no processor."""
    with wire(), arrivals() as watcher:
        put_inside(qdisc["options"], qdisc["options"])
        send_frames([MTU_FRAME] * 9)
        time.sleep(5)
        frames = collect(watcher)
        left = {(q.queued_packets, q.backlog_bytes) for q in channels() if q.handle.major}
    expect("frames", len(frames), 9)
    expect("left in all queues", left, {(0, 0)})


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
