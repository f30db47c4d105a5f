"""Scenarios for each of our qdiscs, which dtm/qdiscs.yml lists and names.

Frames go from a0 through its qdisc to b0; see dtm_scenarios.py.
"""

import contextlib
import itertools
import json
import subprocess
import time
from pathlib import Path
from typing import TypedDict

from dtm_claims import claim, expect, run
from dtm_scenarios import (
    ADDRESSES,
    MTU_FRAME,
    PARENTS,
    Frame,
    arrivals,
    channels,
    collect,
    far,
    send_frames,
    transfer,
    wire,
)


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


def backlogs(device: str = "a0") -> set[tuple[int, int]]:
    """Return packets and bytes that wait, as each level of a device's qdiscs counts them."""
    return {(q.queued_packets, q.backlog_bytes) for q in channels(device) if q.handle.major}


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


def flap(qdisc: Ours) -> None:
    """A link that was switched off and on is idle."""
    with wire():
        run(f"tc qdisc add dev a0 root handle 1 {qdisc['options']}")
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


def gso_anywhere(qdisc: Ours, parent: str, address: str = "10.9.0.2") -> None:
    """Each packet of a large TCP buffer takes its own time; all parent qdiscs count it the same."""
    with wire(), arrivals() as watcher, contextlib.ExitStack() as stack:
        if ":" in address:
            speak_ipv6()
        where = "root" if parent == "root" else "parent 1:1"
        run(*PARENTS[parent], f"tc qdisc add dev a0 {where} handle 12 {qdisc['options']}")
        deepest = 0
        for _ in stack.enter_context(contextlib.closing(transfer(200_000, address))):
            queued = backlogs()
            claim(f"all levels have the same backlog: {queued}", len(queued) == 1)
            deepest = max(deepest, *(packets for packets, _ in queued))
        time.sleep(5)  # for the last segments of TCP
        expect("backlog in the end", backlogs(), {(0, 0)})
        frames = collect(watcher)
    claim(f"there was a backlog: {deepest}", deepest > 1)
    expect("the largest frame", max(len(frame.data) for frame in frames), MTU_FRAME)
    for first, second in itertools.pairwise(frames):
        gap, least = second.at_ns - first.at_ns, qdisc["frame_ns"] * len(second.data) // MTU_FRAME
        claim(f"{len(second.data)} bytes took {gap} ns, not {least}", gap >= least)


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
        run(f"tc qdisc add dev a0 root handle 1 {qdisc['options']}")
        send_frames([MTU_FRAME + 4] * 9, kind=bytes.fromhex("81000001 88b5"))
        expect("queued", backlogs(), {(9, 9 * (MTU_FRAME + 4))})
        time.sleep(1)
        expect_gaps(collect(watcher), 9, qdisc["frame_ns"] * (MTU_FRAME + 4) // MTU_FRAME)


def mtu_changes(qdisc: Ours) -> None:
    """If a device's MTU changes, waiting packets stay, and each frame leaves on time."""
    with wire(), arrivals() as watcher:
        run(f"tc qdisc add dev a0 root handle 1 {qdisc['options']}")
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
    with far():
        send_frames([MTU_FRAME] * 9, "c0")
        claim("packets wait", backlogs("c0") != {(0, 0)})
    run("ip netns del far")
    time.sleep(1)
    expect_unused(qdisc)


def unloaded(qdisc: Ours) -> None:
    """A module stays while its packets wait, and can be removed after the queue is deleted."""
    module = f"sch_{kind(qdisc)}"
    with wire():
        run(f"tc qdisc add dev a0 root handle 1 {qdisc['options']}")
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
            run(f"tc qdisc add dev a0 root handle 1 {qdisc['options']}")
            send_frames([MTU_FRAME] * 9)
            claim(f"packets wait: {backlogs()}", backlogs() != {(0, 0)})
    expect_unused(qdisc)


def horizon(options: str, sent: int, queued: int) -> None:
    """A packet that would leave too late is dropped, and the kernel continues."""
    with wire():
        run(f"tc qdisc add dev a0 root handle 1 {options}")
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
