"""A host with a DTM channel, made by hand: its kernel's counts, decisions and departures.

Traffic comes at a mean rate of 2 Mbit/s, then 5, then 1, in packets of 500 bytes. The host shows
each packet to a capture when it comes and counts it a little later; the same holds for departures.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from capture_analysis.columns import IntArray

from support.queue_columns import passage_of
from support.synthetic_run import START_NS, Crossing, edit_manifest, write_run
from twoway.links.dtm import Channel
from twoway.measure.channel import Slots
from twoway.measure.queues import Passage
from twoway.theory.dtm import Allocator, decision_ns

# The rate allocator, as a manifest describes it.
RATE: dict[str, Any] = {
    "sample_ms": 100,
    "shift_up": 3,
    "shift_down": 3,
    "margin_slots": 0.75,
    "corridor_slots": 2,
    "rounding": "up",
    "count": "arrivals",
    "hold_on_loss_ms": 0,
    "hold": "estimate",
    "estimate_mbit": 0,
    "grain_kbit": 0,
    "pace": "apart",
}
PACKET_BYTES = 500
STOP_NS = 2_000_000_000
PHASES = ((2e6, 0.5), (5e6, 0.6), (1e6, 0.9))
CHANNEL: dict[str, Any] = {
    "slots": 20,
    "min_slots": 1,
    "max_slots": 8192,
    "change_s": 0.1,
    "signalling_ms": 0,
    "framed": False,
    "rate": {**RATE, "sample_ms": 50, "shift_up": 1, "shift_down": 1, "rounding": "nearest"},
}
EVENTS = "qdisc/r1-reallocations.csv"


def options(**changed: Any) -> Channel:
    """Return the channel's options, with some of them or of its rate allocator's changed."""
    rate = {name: changed.pop(name) for name in list(changed) if name in CHANNEL["rate"]}
    given = {**CHANNEL, **changed, "rate": {**CHANNEL["rate"], **rate}}
    return Channel.model_validate(given)


def arrivals(seed: int = 1) -> list[int]:
    """Draw arrivals of packets, ns after the start of traffic, at each phase's mean rate."""
    random, times, at = np.random.default_rng(seed), list[int](), 0.0
    end = 0.0
    for bit, seconds in PHASES:
        end += seconds
        while at < end:
            times.append(round(at * 1e9))
            at += random.uniform(0.2, 1.8) * PACKET_BYTES * 8 / bit
    return times


@dataclass(frozen=True)
class Host:
    """The events of a host.

    Attributes:
        slots: the channel's slots, as its kernel reported them.
        passed: the packets as captures show them.
    """

    slots: Slots
    passed: Passage


def host(
    came_ns: Sequence[int],
    late_ns: Sequence[int] = (),
    dropped: Sequence[int] = (),
    start_ns: int = 0,
    **changed: Any,
) -> Host:
    """Let packets come to a channel.

    Args:
        came_ns: times at which captures saw them, after the start of traffic.
        late_ns: the delay of each packet's counting; in time by default.
        dropped: the numbers of packets that the channel drops.
        start_ns: start of the traffic.
        changed: options of the channel.
    """
    channel = options(**changed)
    came = np.array(came_ns, dtype=np.int64)
    late = np.array(late_ns or [0] * len(came), dtype=np.int64)
    counted = np.maximum.accumulate(came + late)
    slots, told = _decided(counted, np.isin(np.arange(len(came)), dropped), channel, start_ns)
    left = _sent(counted + start_ns, dropped, slots)
    passed = passage_of(
        (came + start_ns).tolist(), left.tolist(), frame_bytes=[PACKET_BYTES] * len(came)
    )
    return Host(Slots(slots.time_ns, slots.slots, start_ns, channel, told), passed)


def _decided(
    counted: IntArray, drops: Any, channel: Channel, start_ns: int
) -> tuple[Slots, IntArray]:
    rate = channel.rate
    assert rate
    sample_ns = round(rate.sample_ms * 1e6)
    allocator = Allocator(0, channel.slots, channel)
    told, seen = [0], 0
    for tick in range(sample_ns, STOP_NS, sample_ns):
        inside = (counted >= tick - sample_ns) & (counted < tick)
        if rate.count == "accepted":
            inside &= ~drops
        before = counted[drops & (counted < tick)]
        until = tick if rate.hold == "estimate" else decision_ns(tick, channel)
        held = len(before) > 0 and until - before[-1] < rate.hold_on_loss_ms * 1e6
        bit = int(inside.sum()) * PACKET_BYTES * 8 * 10**9 // sample_ns
        estimate = allocator.sample(tick, bit, hold=bool(held))
        told += [estimate] * (len(allocator.changes) - seen)
        seen = len(allocator.changes)
    changes = [(at, slots) for at, slots in allocator.changes if at < STOP_NS]
    times, numbers = zip((-(10**9), channel.slots), *changes, strict=True)
    slots = Slots(np.array(times) + start_ns, np.array(numbers), start_ns, channel)
    return slots, np.array(told[: len(changes) + 1], dtype=np.int64)


def _sent(counted: IntArray, dropped: Sequence[int], slots: Slots) -> IntArray:
    """Compute the end of each packet's transmission, ns; -1 if it was dropped."""
    left, done = [], 0
    for number, came in enumerate(slots.integral(counted).tolist()):
        if number not in dropped:
            done = max(came, done) + slots.options.byte_work * PACKET_BYTES
        left.append(-1 if number in dropped else int(slots.times_of(np.array([done]))[0]))
    return np.array(left, dtype=np.int64)


def channel_run(folder: Path, made: Host) -> Path:
    """Write the run's folder of a host that started at START_NS, with the channel forward."""
    forward = tuple(
        Crossing("first", "data", number, (came - START_NS) / 1000, (left - START_NS) / 1000)
        for number, (came, left) in enumerate(
            zip(made.passed.packets.time_ns.tolist(), made.passed.left_ns.tolist(), strict=True)
        )
    )
    write_run(folder, forward=forward)
    assert made.slots.estimate_bit is not None
    steps = list(zip(made.slots.time_ns, made.slots.slots, made.slots.estimate_bit, strict=True))
    rows = [(START_NS, "start", steps[0][1], steps[0][1], 0)]
    rows += [
        (at, "allocator", before, slots, told)
        for (_, before, _), (at, slots, told) in itertools.pairwise(steps)
    ]
    lines = [f"{at},r1-eth1,1:,{why},{a},{b},{b},{told},0" for at, why, a, b, told in rows]
    header = "time_ns,interface,handle,cause,from,to,wanted,estimate_bit,backlog_bytes"
    (folder / EVENTS).write_text("\n".join(["# slots", header, *lines, ""]), encoding="utf-8")

    def add_channel(manifest: dict[str, Any]) -> None:
        manifest["queues"][0].update(reallocations=EVENTS, limit_packets=1000)
        manifest["profile"]["directions"] = {
            "forward": {"queue_packets": 1000, "dtm": made.slots.options.model_dump()}
        }
        manifest["clock"].update(stop_ns=START_NS + STOP_NS)

    edit_manifest(folder, add_channel)
    return folder
