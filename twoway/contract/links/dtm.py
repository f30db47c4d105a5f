"""A DTM channel of a link: its slots, and the allocator that changes them.

The ranges are those of linux/pkt_dtm.h (kernel-modules/include/uapi). The channel's clock starts
with the traffic (docs/decisions/0017).
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from twoway.contract.links import RatedQueue
from twoway.contract.model import Model

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


class Channel(RatedQueue):
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
