"""The rate allocator of a DTM channel.

After Abrahamsson, Hagsand and Marsh (2002), figure 1:

    current += (new - current) >> shift_up       or  -= (current - new) >> shift_down
    counted  = current, or its whole multiples of a grain
    if counted > upper or counted < lower:
        slots = counted + margin + corridor / 2     in slots, rounded
        upper, lower = counted +- corridor / 2

All values are in whole bit/s, as in the kernel. The paper prints neither the last line nor the
start, the bounds, the rounding, whether curr_slot is whole, or the meaning of "once a second".
These are parameters here and in kernel-modules/dtm/dtm_alloc_rate.c, or are decided as there: both
edges start at the initial estimate, so that the first traffic causes the first decision; a change
comes at least `change_s` after the last one, or after the start, or only at multiples of
`change_s`; a decision for the same slots is no change.
"""

import math
from collections.abc import Iterable
from typing import Literal

from twoway.links.dtm import SLOT_KBIT, Channel, Rate

SLOT_BIT = SLOT_KBIT * 1000
CYCLE_NS = 125_000

Rounding = Literal["up", "nearest", "down"]


def whole_slots(bit: int, rounding: Rounding = "up", slot_bit: int = SLOT_BIT) -> int:
    """Round a capacity in bit/s to slots."""
    return (bit + {"up": slot_bit - 1, "nearest": slot_bit // 2, "down": 0}[rounding]) // slot_bit


def response_s(share: float, shift: int = 3, sample_s: float = 0.1) -> float:
    """Compute the time to follow a share of a step of the rate, s.

    The rest of the step shrinks by 2^-shift at each sample, so the time is ln(1 - share) / ln(1 -
    2^-shift) samples; between samples the estimate is interpolated.
    """
    if shift == 0:
        return sample_s
    return sample_s * math.log(1 - share) / math.log(1 - 2.0**-shift)


def slots_bit(slots: float, channel: Channel) -> int:
    """Convert slots, in thousandths as in the kernel, to bit/s."""
    return int(round(slots * 1000) * channel.slot_kbit)


def half_corridor_bit(channel: Channel) -> int:
    """Compute half of an allocator's corridor, bit/s."""
    assert channel.rate
    return slots_bit(channel.rate.corridor_slots, channel) // 2


def counted_bit(estimate: int, rate: Rate) -> int:
    """Cut an estimate to whole grains, bit/s; the result grows with the estimate."""
    return estimate - estimate % (rate.grain_kbit * 1000 or 1)


def decision_ns(at_ns: int, channel: Channel) -> int:
    """Compute the time at which a decision from a sample's end applies.

    Args:
        at_ns: the sample's end, since the allocator's start.
        channel: a channel with the rate allocator.

    Returns: time since the start: the sample's end, or the last multiple of `change_s` up to it.
    """
    assert channel.rate
    change_ns = round(channel.change_s * 1e9)
    if channel.rate.pace == "apart" or not change_ns:
        return at_ns
    return at_ns // change_ns * change_ns


def move_estimate(estimate: int, new: int, rate: Rate) -> int:
    """Move an estimate towards a sample's rate; the result grows with both.

    Intervals therefore stay intervals. The formula is the first half of the paper's algorithm.
    """
    if new >= estimate:
        return int(estimate + ((new - estimate) >> rate.shift_up))
    return int(estimate - ((estimate - new) >> rate.shift_down))


class Allocator:
    """A channel's estimate and slots, sample by sample.

    Attributes:
        estimate: the estimated rate, bit/s, the paper's "current".
        slots: slots of the last decision, in effect after signalling.
        changes: the times, ns, and slots of all changes.
    """

    def __init__(self, start_ns: int, slots: int, channel: Channel) -> None:
        """Start the allocator.

        Args:
            start_ns: start of the traffic.
            slots: slots at the start.
            channel: the field `dtm` of a profile, with the rate allocator.
        """
        self.slots = slots
        assert channel.rate
        self.estimate: int = round(channel.rate.estimate_mbit * 1e6)
        self.changes: list[tuple[int, int]] = []
        self._channel, self._rate = channel, channel.rate
        self._lower = self._upper = self.estimate
        self._interval_ns = max(round(channel.change_s * 1e9), CYCLE_NS)
        self._signalling_ns = round(channel.signalling_ms * 1e6)
        self._sample_ns = round(channel.rate.sample_ms * 1e6)
        self._start_ns = self._decided_ns = self._effective_ns = start_ns

    def sample(self, at_ns: int, new: int, *, hold: bool = False) -> int:
        """Take a sample and decide on the slots.

        Args:
            at_ns: end of the sample.
            new: rate in the sample, bit/s.
            hold: whether a drop holds the estimate, or the slots.

        Returns: the estimate after the sample, bit/s.
        """
        holds_slots = self._rate.hold == "slots"
        if new >= self.estimate or not hold or holds_slots:
            self.estimate = move_estimate(self.estimate, new, self._rate)
        now = counted_bit(self.estimate, self._rate)
        if not self._lower <= now <= self._upper and not (hold and holds_slots):
            self._decide_within(at_ns, now)
        return self.estimate

    def _decide_within(self, at_ns: int, now: int) -> None:
        """Place the corridor and decide, if a decision is due."""
        due_ns = self._start_ns + decision_ns(at_ns - self._start_ns, self._channel)
        earliest_ns = max(self._decided_ns + self._interval_ns, self._effective_ns)
        if not max(earliest_ns, at_ns - self._sample_ns + 1) <= due_ns:
            return
        half = half_corridor_bit(self._channel)
        self._lower = max(now - half, 0)
        self._upper = now + half
        self._decide(at_ns)

    def _decide(self, at_ns: int) -> None:
        slots = slots_for(self.estimate, self._channel)
        if slots != self.slots:
            self.slots = slots
            self._decided_ns = at_ns
            self._effective_ns = at_ns + self._signalling_ns
            self.changes.append((self._effective_ns, slots))


def allocate(rates_bit: Iterable[int], channel: Channel) -> list[tuple[float, int]]:
    """Compute slots over time from the mean rate of each sample.

    Samples begin with the traffic.

    Returns: times in s, each with the slots from then on; the first is 0.
    """
    assert channel.rate
    allocator = Allocator(0, channel.slots, channel)
    sample_ns = round(channel.rate.sample_ms * 1e6)
    for number, rate in enumerate(rates_bit, start=1):
        allocator.sample(number * sample_ns, rate)
    return [(0.0, channel.slots), *((at / 1e9, slots) for at, slots in allocator.changes)]


def slots_for(estimate: int, channel: Channel) -> int:
    """Compute the slots for an estimate, bit/s, within the channel's bounds.

    The formula is the second half of the paper's algorithm. At a constant rate the slots of the
    last decision stay; the allocator made that decision while the estimate was within half a
    corridor of the rate.
    """
    rate = channel.rate
    assert rate
    margin = slots_bit(rate.margin_slots, channel)
    bit = counted_bit(estimate, rate) + half_corridor_bit(channel) + margin
    slots = whole_slots(bit, rate.rounding, channel.slot_bit)
    return int(min(max(slots, channel.min_slots), channel.max_slots))
