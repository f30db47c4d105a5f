"""tc's words for a DTM channel, and contradictions between its fields."""

import itertools
from collections.abc import Mapping
from functools import singledispatch
from typing import TYPE_CHECKING, Any

from twoway.contract.links import dtm
from twoway.description.graph import Graph
from twoway.description.interface import Interface
from twoway.description.links import RatedQueue
from twoway.description.shaper import Shaper, options

if TYPE_CHECKING:
    from twoway.description.experiment import Direction, Profile


class Channel(dtm.Channel, RatedQueue):
    """A channel of n slots of 512 kbit/s."""

    def link_problems(self, direction: "Direction", profile: "Profile") -> list[str]:
        """List contradictions with the profile's pools."""
        del direction
        if self.pool is None:
            return []
        size = profile.pools.get(self.pool)
        if size is None:
            return [f".pool: none of the profile's pools, got {self.pool!r}"]
        asked = {"slots": self.slots, "owned_slots": self.owned_slots}
        return [
            f".{field}: must not exceed the pool's {size}, got {slots}"
            for field, slots in asked.items()
            if slots > size
        ]

    def problems(self) -> list[str]:
        """List contradictions between fields."""
        found = []
        if len(self.allocators) > 1:
            found.append(f": takes one allocator, got {', '.join(self.allocators)}")
        if self.owned_slots and not self.pool:
            found.append(f".owned_slots: needs a pool, got {self.owned_slots}")
        if 8_000_000 % self.slot_kbit:
            found.append(f".slot_kbit: must divide 8000000, got {self.slot_kbit}")
        if self.slot_kbit < dtm.SLOT_KBIT and (self.framed or self.pool):
            found.append(
                f".slot_kbit: must be {dtm.SLOT_KBIT} with framed or pool, got {self.slot_kbit}"
            )
        if self.min_slots > self.max_slots:
            found.append(
                f".min_slots: must not exceed max_slots ({self.max_slots}), got {self.min_slots}"
            )
        bounds = f"within min_slots and max_slots ({self.min_slots}..{self.max_slots})"
        wanted = {".slots": self.slots}
        if self.hysteresis:
            wanted |= {
                f".hysteresis.levels.{n}.slots": level.slots
                for n, level in enumerate(self.hysteresis.levels)
            }
            found += [f".hysteresis.levels{p}" for p in _level_problems(self.hysteresis.levels)]
        if self.trace:
            steps = self.trace.steps
            wanted |= {f".trace.steps.{n}.slots": step.slots for n, step in enumerate(steps)}
            found += [
                f".trace.steps.{n}.after_ms: must be above 0, got 0"
                for n, step in enumerate(steps)
                if n and not step.after_ms
            ]
        if self.buffer and self.buffer.low_bytes >= self.buffer.high_bytes:
            found.append(
                f".buffer.low_bytes: must be below high_bytes ({self.buffer.high_bytes}), "
                f"got {self.buffer.low_bytes}"
            )
        return found + [
            f"{field}: must lie {bounds}, got {slots}"
            for field, slots in wanted.items()
            if not self.min_slots <= slots <= self.max_slots
        ]

    def arguments(self, limit_packets: int, overhead_bytes: int) -> list[str]:
        """Build the arguments of `tc qdisc add dev X root`, from the kind on."""
        pool = f"pool {self.pool} owned {self.owned_slots} " if self.pool else ""
        words = (
            f"dtm slots {self.slots} limit {limit_packets} overhead {overhead_bytes} "
            f"{'framed' if self.framed else 'unframed'} min {self.min_slots} "
            f"max {self.max_slots} change {_ns(self.change_s * 1000)} "
            f"signalling {_ns(self.signalling_ms)} {pool}slot {self.slot_kbit}kbit "
            f"{_arguments(self.chosen)}"
        )
        return words.split()

    def readback(self, limit_packets: int, overhead_bytes: int) -> dict[str, Any]:
        """List what `tc -j qdisc show` must print for the channel, by option."""
        said: dict[str, Any] = {
            "initial": self.slots,
            "limit": limit_packets,
            "overhead": overhead_bytes,
            "framed": self.framed,
            "min": self.min_slots,
            "max": self.max_slots,
            "change_ns": round(self.change_s * 1e9),
            "signalling_ns": round(self.signalling_ms * 1e6),
            "slot_bit": self.slot_bit,
            "allocator": self.allocator,
        }
        if self.pool:
            said |= {"pool": self.pool, "owned": self.owned_slots}
        return said | _said(self.chosen)

    def shaper(self, interface: Interface, direction: "Direction") -> Shaper:
        """Build our qdisc dtm."""
        limits = (direction.queue_packets, direction.overhead_bytes)
        readback = options("dtm", self.readback(*limits))
        return Shaper(interface, tuple(self.arguments(*limits)), readback, is_ours=True)


@singledispatch
def _arguments(allocator: Any) -> str:
    """Build tc's arguments for an allocator."""
    assert allocator is None
    return "allocator static"


@singledispatch
def _said(allocator: Any) -> dict[str, Any]:
    """List the options of an allocator as tc must show them."""
    assert allocator is None
    return {}


@_arguments.register
def _(rate: dtm.Rate) -> str:
    return (
        f"allocator rate sample {_ns(rate.sample_ms)} shift-up {rate.shift_up} "
        f"shift-down {rate.shift_down} margin {rate.margin_slots:.3f} "
        f"corridor {rate.corridor_slots:.3f} rounding {rate.rounding} count {rate.count} "
        f"hold-on-loss {_ns(rate.hold_on_loss_ms)} "
        f"estimate {round(rate.estimate_mbit * 1e6)}bit "
        f"grain {rate.grain_kbit}kbit pace {rate.pace} hold {rate.hold}"
    )


@_said.register
def _(rate: dtm.Rate) -> dict[str, Any]:
    return {
        "sample_ns": round(rate.sample_ms * 1e6),
        "shift_up": rate.shift_up,
        "shift_down": rate.shift_down,
        "margin": rate.margin_slots,
        "corridor": rate.corridor_slots,
        "rounding": rate.rounding,
        "count": rate.count,
        "hold_on_loss_ns": round(rate.hold_on_loss_ms * 1e6),
        "estimate_bit": round(rate.estimate_mbit * 1e6),
        "grain_bit": rate.grain_kbit * 1000,
        "pace": rate.pace,
        "hold": rate.hold,
    }


@_arguments.register
def _(buffer: dtm.Buffer) -> str:
    return (
        f"allocator buffer high {buffer.high_bytes} low {buffer.low_bytes} "
        f"rise {_ns(buffer.rise_ms)} fall {_ns(buffer.fall_ms)} step {buffer.step_slots}"
    )


@_said.register
def _(buffer: dtm.Buffer) -> dict[str, Any]:
    return {
        "high": buffer.high_bytes,
        "low": buffer.low_bytes,
        "rise_ns": round(buffer.rise_ms * 1e6),
        "fall_ns": round(buffer.fall_ms * 1e6),
        "step": buffer.step_slots,
    }


@_arguments.register
def _(hysteresis: dtm.Hysteresis) -> str:
    levels = ",".join(f"{v.slots}:{v.up_bytes}:{v.down_bytes}" for v in hysteresis.levels)
    return f"allocator hysteresis levels {levels}"


@_said.register
def _(hysteresis: dtm.Hysteresis) -> dict[str, Any]:
    levels = [{"slots": v.slots, "up": v.up_bytes, "down": v.down_bytes} for v in hysteresis.levels]
    return {"levels": levels}


@_arguments.register
def _(trace: dtm.Trace) -> str:
    steps = ",".join(f"{_ns(s.after_ms)}:{s.slots}" for s in trace.steps)
    return f"allocator trace steps {steps}"


@_said.register
def _(trace: dtm.Trace) -> dict[str, Any]:
    steps = [{"after_ns": round(s.after_ms * 1e6), "slots": s.slots} for s in trace.steps]
    return {"steps": steps}


def pool_nodes(profile: "Profile", graph: Graph) -> Mapping[str, str]:
    """Find each pool's node, the first with a channel; the pool lives in its network namespace."""
    nodes: dict[str, str] = {}
    for name, direction in profile.directions.items():
        channel = direction.elements.find(Channel)
        if channel and channel.pool and graph.queues[name]:
            nodes.setdefault(channel.pool, graph.queues[name][0].node)
    return nodes


def _level_problems(levels: list[dtm.Level]) -> list[str]:
    found = []
    for number, (lower, upper) in enumerate(itertools.pairwise(levels)):
        if upper.slots <= lower.slots:
            found.append(
                f".{number + 1}.slots: must exceed those of the level before ({lower.slots}), "
                f"got {upper.slots}"
            )
        if lower.up_bytes <= upper.down_bytes:
            found.append(
                f".{number}.up_bytes: must exceed down_bytes of the next level "
                f"({upper.down_bytes}), got {lower.up_bytes}"
            )
    return found


def _ns(ms: float) -> str:
    return f"{round(ms * 1e6)}ns"
