"""A DTM channel in a link profile: its fields, and tc's arguments.

The ranges are those of linux/pkt_dtm.h (kernel-modules/include/uapi). The channel's clock starts
with the traffic (docs/decisions/0017).
"""

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from twoway.contract.model import Model
from twoway.spec.graph import Interface
from twoway.spec.links import RatedQueue
from twoway.spec.shaper import Shaper, options

if TYPE_CHECKING:
    from twoway.spec.experiment import Direction, Profile

# 64 bits in each cycle of 125 us.
SLOT_MBIT = 0.512

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
        default=3, description="the estimate rises by 2^-shift of its distance to a sample"
    )
    shift_down: Annotated[int, Field(ge=0, le=10)] = Field(
        default=3, description="and falls by 2^-shift of it"
    )
    margin_slots: SlotShare = Field(default=0.75, description="added to the estimate")
    corridor_slots: SlotShare = Field(
        default=2, description="width within which the estimate may move without a change"
    )
    rounding: Literal["up", "nearest", "down"] = Field(
        default="up", description="of the sum to whole slots"
    )
    count: Literal["arrivals", "accepted"] = Field(
        default="arrivals", description="whether the estimator sees what the queue drops"
    )
    hold_on_loss_ms: Milliseconds = Field(
        default=0, description="for so long after a drop the estimate does not fall"
    )
    estimate_mbit: Annotated[float, Field(ge=0, le=1_000_000)] = Field(
        default=0, description="the estimate at the traffic's start"
    )

    def arguments(self) -> str:
        """Build tc's arguments for this allocator."""
        return (
            f"allocator rate sample {_ns(self.sample_ms)} shift-up {self.shift_up} "
            f"shift-down {self.shift_down} margin {self.margin_slots:.3f} "
            f"corridor {self.corridor_slots:.3f} rounding {self.rounding} count {self.count} "
            f"hold-on-loss {_ns(self.hold_on_loss_ms)} "
            f"estimate {round(self.estimate_mbit * 1e6)}bit"
        )

    def readback(self) -> dict[str, Any]:
        """List the options that tc must show for this allocator."""
        return {
            "sample_ns": round(self.sample_ms * 1e6),
            "shift_up": self.shift_up,
            "shift_down": self.shift_down,
            "margin": self.margin_slots,
            "corridor": self.corridor_slots,
            "rounding": self.rounding,
            "count": self.count,
            "hold_on_loss_ns": round(self.hold_on_loss_ms * 1e6),
            "estimate_bit": round(self.estimate_mbit * 1e6),
        }


class Buffer(Model):
    """An allocator that follows the backlog between two thresholds."""

    high_bytes: Annotated[int, Field(ge=1)] = Field(
        default=30_000, description="backlog above it, for rise_ms, asks for step_slots more"
    )
    low_bytes: Annotated[int, Field(ge=0)] = Field(
        default=3_000, description="backlog below it, for fall_ms, gives step_slots back"
    )
    rise_ms: Milliseconds = Field(default=10, description="how long above high_bytes")
    fall_ms: Milliseconds = Field(default=100, description="how long below low_bytes")
    step_slots: Slots = Field(default=1, description="slots per change")

    def arguments(self) -> str:
        """Build tc's arguments for this allocator."""
        return (
            f"allocator buffer high {self.high_bytes} low {self.low_bytes} "
            f"rise {_ns(self.rise_ms)} fall {_ns(self.fall_ms)} step {self.step_slots}"
        )

    def readback(self) -> dict[str, Any]:
        """List the options that tc must show for this allocator."""
        return {
            "high": self.high_bytes,
            "low": self.low_bytes,
            "rise_ns": round(self.rise_ms * 1e6),
            "fall_ns": round(self.fall_ms * 1e6),
            "step": self.step_slots,
        }


class Level(Model):
    """One level of the hysteresis allocator."""

    slots: Slots = Field(description="slots at this level; each level has more than the last")
    up_bytes: Annotated[int, Field(ge=0)] = Field(
        default=0, description="a backlog of so much leads to the next level"
    )
    down_bytes: Annotated[int, Field(ge=0)] = Field(
        default=0, description="one of so little to the level before"
    )


class Hysteresis(Model):
    """Levels, each with a backlog to enter and one to leave (after Krishnan and Sterbenz)."""

    levels: Annotated[list[Level], Field(min_length=2, max_length=32)] = Field(
        description="from the fewest slots to the most"
    )

    def arguments(self) -> str:
        """Build tc's arguments for this allocator."""
        levels = ",".join(f"{v.slots}:{v.up_bytes}:{v.down_bytes}" for v in self.levels)
        return f"allocator hysteresis levels {levels}"

    def readback(self) -> dict[str, Any]:
        """List the options that tc must show for this allocator."""
        levels = [{"slots": v.slots, "up": v.up_bytes, "down": v.down_bytes} for v in self.levels]
        return {"levels": levels}


class Step(Model):
    """One step of a trace."""

    after_ms: Annotated[float, Field(ge=0, le=3_600_000, multiple_of=0.001)] = Field(
        description="since the step before, the first since the traffic's start; whole us"
    )
    slots: Slots = Field(description="slots from then on")


class Trace(Model):
    """A list of times and slots, taken as it is."""

    steps: Annotated[list[Step], Field(min_length=1, max_length=1024)] = Field(
        description="in order"
    )

    def arguments(self) -> str:
        """Build tc's arguments for this allocator."""
        steps = ",".join(f"{_ns(s.after_ms)}:{s.slots}" for s in self.steps)
        return f"allocator trace steps {steps}"

    def readback(self) -> dict[str, Any]:
        """List the options that tc must show for this allocator."""
        steps = [{"after_ns": round(s.after_ms * 1e6), "slots": s.slots} for s in self.steps]
        return {"steps": steps}


class Channel(RatedQueue):
    """A channel of n slots of 512 kbit/s, n being reallocated by at most one allocator."""

    FIELD: ClassVar = "dtm"
    DESCRIPTION: ClassVar = "a channel of a DTM network, instead of a rate_mbit"

    slots: Slots = Field(default=20, description="slots at the traffic's start")
    framed: bool = Field(
        default=False, description="packets take whole slots and leave at the ends of cycles"
    )
    min_slots: Slots = Field(default=1, description="allocators go no lower")
    max_slots: Slots = Field(default=65535, description="and no higher")
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
        default=0, description="slots of the pool that are its own, lent while it needs them not"
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
    def allocators(self) -> list[str]:
        """The names of the allocators given; a valid channel has at most one."""
        return [n for n in ("rate", "buffer", "hysteresis", "trace") if getattr(self, n)]

    @property
    def start_mbit(self) -> float:
        """The rate at the start of traffic."""
        return self.slots * SLOT_MBIT

    @property
    def least_mbit(self) -> float:
        """The lowest rate that an allocator may choose."""
        return self.min_slots * SLOT_MBIT

    @property
    def most_mbit(self) -> float:
        """The highest rate that an allocator may choose."""
        return self.max_slots * SLOT_MBIT

    def model(self, profile: "Profile") -> dict[str, Any]:
        """Return the options, and the number of slots of the pool."""
        return self.model_dump() | {"pool_slots": profile.pools.get(self.pool or "")}

    def problems(self, direction: "Direction", profile: "Profile") -> list[str]:
        """List contradictions between fields, and with the profile's pools."""
        del direction
        return self._own_problems() + self._pool_problems(profile.pools)

    def _pool_problems(self, pools: Mapping[str, int]) -> list[str]:
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

    def _own_problems(self) -> list[str]:
        found = []
        if len(self.allocators) > 1:
            found.append(f": takes one allocator, got {', '.join(self.allocators)}")
        if self.owned_slots and not self.pool:
            found.append(f".owned_slots: needs a pool, got {self.owned_slots}")
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
        allocator = getattr(self, self.allocator, None)
        pool = f"pool {self.pool} owned {self.owned_slots} " if self.pool else ""
        words = (
            f"dtm slots {self.slots} limit {limit_packets} overhead {overhead_bytes} "
            f"{'framed' if self.framed else 'unframed'} min {self.min_slots} "
            f"max {self.max_slots} change {_ns(self.change_s * 1000)} "
            f"signalling {_ns(self.signalling_ms)} {pool}"
            f"{allocator.arguments() if allocator else 'allocator static'}"
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
            "allocator": self.allocator,
        }
        if self.pool:
            said |= {"pool": self.pool, "owned": self.owned_slots}
        allocator = getattr(self, self.allocator, None)
        return said | (allocator.readback() if allocator else {})

    def shaper(self, interface: Interface, direction: "Direction") -> Shaper:
        """Build our qdisc dtm."""
        limits = (direction.queue_packets, direction.overhead_bytes)
        readback = options("dtm", self.readback(*limits))
        return Shaper(interface, tuple(self.arguments(*limits)), readback)


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
