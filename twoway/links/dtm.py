"""A DTM channel of a link: its slots, and the allocator that changes them.

The ranges are those of linux/pkt_dtm.h (kernel-modules/include/uapi). The channel's clock starts
with the traffic (decision 0017).
"""

import itertools
from collections.abc import Mapping
from functools import singledispatch
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from twoway.contract.model import Model
from twoway.links.element import Link, RateShaper
from twoway.links.interface import Interface
from twoway.links.shaper import Shaper, options

# A slot carries 64 bits in each cycle of 125 us.
SLOT_KBIT = 512

Slots = Annotated[int, Field(ge=1, le=65535)]
Milliseconds = Annotated[float, Field(ge=0, le=60_000)]
# A number of thousandths of a slot, as the kernel keeps it.
SlotShare = Annotated[float, Field(ge=0, le=65535, multiple_of=0.001)]


class Rate(Model):
    """The rate estimator of Abrahamsson, Hagsand and Marsh (2002), figure 1."""

    sample_ms: Annotated[float, Field(ge=1, le=60_000)] = Field(
        default=100, description="interval of estimates"
    )
    shift_up: Annotated[int, Field(ge=0, le=10)] = Field(
        default=3, description="the estimate rises by 2^-shift of its distance from a higher sample"
    )
    shift_down: Annotated[int, Field(ge=0, le=10)] = Field(
        default=3, description="the estimate falls by 2^-shift of its distance from a lower sample"
    )
    margin_slots: SlotShare = Field(default=0.75, description="added to the estimate")
    corridor_slots: SlotShare = Field(
        default=2,
        description="width of the corridor in which the estimate may move without a "
        "change of slots",
    )
    rounding: Literal["up", "nearest", "down"] = Field(
        default="up", description="rounding of estimate and margin to whole slots"
    )
    count: Literal["arrivals", "accepted"] = Field(
        default="arrivals", description="whether the estimator counts packets that the queue drops"
    )
    hold_on_loss_ms: Milliseconds = Field(
        default=0, description="time for which a drop holds the quantity named by `hold`"
    )
    hold: Literal["estimate", "slots"] = Field(
        default="estimate",
        description="the quantity that a drop holds: the estimate, which does not fall, or the "
        "slots, which "
        "do not change while the estimate moves",
    )
    grain_kbit: Annotated[int, Field(ge=0, le=4_000_000)] = Field(
        default=0,
        description="estimates are cut to whole multiples of it; 512: whole slots; 0: not cut",
    )
    pace: Literal["apart", "grid"] = Field(
        default="apart",
        description="whether changes are change_s apart, or at multiples of it since the start",
    )
    estimate_mbit: Annotated[float, Field(ge=0, le=1_000_000)] = Field(
        default=0, description="the estimate at the traffic's start"
    )

    @property
    def sees_drops(self) -> bool:
        """True if a packet that the queue drops counts otherwise than one that it takes."""
        return self.count == "accepted" or bool(self.hold_on_loss_ms)


class Buffer(Model):
    """An allocator that follows the backlog between two thresholds."""

    high_bytes: Annotated[int, Field(ge=1)] = Field(
        default=30_000, description="a backlog above it for rise_ms adds step_slots"
    )
    low_bytes: Annotated[int, Field(ge=0)] = Field(
        default=3_000, description="a backlog below it for fall_ms returns step_slots"
    )
    rise_ms: Milliseconds = Field(default=10, description="time above high_bytes that adds slots")
    fall_ms: Milliseconds = Field(
        default=100, description="time below low_bytes that returns slots"
    )
    step_slots: Slots = Field(default=1, description="slots per change")


class Level(Model):
    """One level of the hysteresis allocator."""

    slots: Slots = Field(description="slots at this level; more than at the level before")
    up_bytes: Annotated[int, Field(ge=0)] = Field(
        default=0, description="backlog that leads to the next level"
    )
    down_bytes: Annotated[int, Field(ge=0)] = Field(
        default=0, description="backlog that leads to the level before"
    )


class Hysteresis(Model):
    """Levels, each with a backlog to enter and one to leave (after Krishnan and Sterbenz)."""

    levels: Annotated[list[Level], Field(min_length=2, max_length=32)] = Field(
        description="from the fewest slots to the most"
    )


class Step(Model):
    """One step of a trace."""

    after_ms: Annotated[float, Field(ge=0, le=3_600_000, multiple_of=0.001)] = Field(
        description="time since the step before, for the first since the traffic's start; whole us"
    )
    slots: Slots = Field(description="slots from then on")


class Trace(Model):
    """A list of times and slots, applied as it is."""

    steps: Annotated[list[Step], Field(min_length=1, max_length=1024)] = Field(
        description="in order"
    )


class Channel(RateShaper):
    """A channel of n slots of 512 kbit/s; at most one allocator changes n."""

    FIELD: ClassVar = "dtm"
    TITLE: ClassVar = "A DTM channel"
    DESCRIPTION: ClassVar = "a channel of a DTM network, instead of a rate_mbit"

    slots: Slots = Field(default=20, description="slots at the traffic's start")
    slot_kbit: Annotated[int, Field(ge=1, le=SLOT_KBIT)] = Field(
        default=SLOT_KBIT,
        description="rate of a slot, a divisor of 8 Gbit/s; with 1 an allocator's rates are hardly "
        "rounded",
    )
    framed: bool = Field(
        default=False, description="packets take whole slots and leave at the ends of cycles"
    )
    min_slots: Slots = Field(default=1, description="the fewest slots that allocators choose")
    max_slots: Slots = Field(default=65535, description="the most slots that allocators choose")
    change_s: Annotated[float, Field(ge=0, le=3600)] = Field(
        default=1, description="least time between two changes"
    )
    signalling_ms: Milliseconds = Field(
        default=0, description="from an allocator's decision to its effect"
    )
    pool: Annotated[str, Field(max_length=15)] | None = Field(
        default=None, description="the profile's pool of slots that it shares, if any"
    )
    owned_slots: Annotated[int, Field(ge=0, le=65535)] = Field(
        default=0,
        description="slots of the pool that belong to it; "
        "others may use them while it does not need "
        "them",
    )
    rate: Rate | None = Field(default=None, description="follow the rate of arrivals")
    buffer: Buffer | None = Field(default=None, description="follow the backlog")
    hysteresis: Hysteresis | None = Field(default=None, description="follow the backlog in levels")
    trace: Trace | None = Field(default=None, description="follow a list of times and slots")

    @property
    def allocator(self) -> str:
        """The allocator's name; "static" if there is none."""
        return next(iter(self.allocators), "static")

    @property
    def chosen(self) -> Rate | Buffer | Hysteresis | Trace | None:
        """The allocator's options; None if there is none."""
        return getattr(self, self.allocator, None)

    @property
    def allocators(self) -> list[str]:
        """The names of the allocators given; a valid channel has at most one."""
        return [n for n in ("rate", "buffer", "hysteresis", "trace") if getattr(self, n)]

    @property
    def slot_bit(self) -> int:
        """The rate of a slot, bit/s."""
        return self.slot_kbit * 1000

    @property
    def byte_work(self) -> int:
        """The time that one slot takes to send a byte, ns."""
        return 8_000_000_000 // self.slot_bit

    @property
    def start_mbit(self) -> float:
        """The rate at the start of traffic."""
        return self.slots * self.slot_kbit / 1000

    @property
    def least_mbit(self) -> float:
        """The lowest rate that an allocator may choose."""
        return self.min_slots * self.slot_kbit / 1000

    @property
    def most_mbit(self) -> float:
        """The highest rate that an allocator may choose."""
        return self.max_slots * self.slot_kbit / 1000

    def link_problems(self, link: Link, pools: Mapping[str, int]) -> list[str]:
        """List contradictions with the profile's pools."""
        del link
        if self.pool is None:
            return []
        size = pools.get(self.pool)
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
        if self.slot_kbit < SLOT_KBIT and (self.framed or self.pool):
            found.append(
                f".slot_kbit: must be {SLOT_KBIT} with framed or pool, got {self.slot_kbit}"
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

    def shaper(self, interface: Interface, link: Link) -> Shaper:
        """Build our qdisc dtm."""
        limits = (link.queue_packets, link.shaper_overhead)
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
def _(rate: Rate) -> str:
    return (
        f"allocator rate sample {_ns(rate.sample_ms)} shift-up {rate.shift_up} "
        f"shift-down {rate.shift_down} margin {rate.margin_slots:.3f} "
        f"corridor {rate.corridor_slots:.3f} rounding {rate.rounding} count {rate.count} "
        f"hold-on-loss {_ns(rate.hold_on_loss_ms)} "
        f"estimate {round(rate.estimate_mbit * 1e6)}bit "
        f"grain {rate.grain_kbit}kbit pace {rate.pace} hold {rate.hold}"
    )


@_said.register
def _(rate: Rate) -> dict[str, Any]:
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
def _(buffer: Buffer) -> str:
    return (
        f"allocator buffer high {buffer.high_bytes} low {buffer.low_bytes} "
        f"rise {_ns(buffer.rise_ms)} fall {_ns(buffer.fall_ms)} step {buffer.step_slots}"
    )


@_said.register
def _(buffer: Buffer) -> dict[str, Any]:
    return {
        "high": buffer.high_bytes,
        "low": buffer.low_bytes,
        "rise_ns": round(buffer.rise_ms * 1e6),
        "fall_ns": round(buffer.fall_ms * 1e6),
        "step": buffer.step_slots,
    }


@_arguments.register
def _(hysteresis: Hysteresis) -> str:
    levels = ",".join(f"{v.slots}:{v.up_bytes}:{v.down_bytes}" for v in hysteresis.levels)
    return f"allocator hysteresis levels {levels}"


@_said.register
def _(hysteresis: Hysteresis) -> dict[str, Any]:
    levels = [{"slots": v.slots, "up": v.up_bytes, "down": v.down_bytes} for v in hysteresis.levels]
    return {"levels": levels}


@_arguments.register
def _(trace: Trace) -> str:
    steps = ",".join(f"{_ns(s.after_ms)}:{s.slots}" for s in trace.steps)
    return f"allocator trace steps {steps}"


@_said.register
def _(trace: Trace) -> dict[str, Any]:
    steps = [{"after_ns": round(s.after_ms * 1e6), "slots": s.slots} for s in trace.steps]
    return {"steps": steps}


def _level_problems(levels: list[Level]) -> list[str]:
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
