"""On a real clock, a channel's decisions must be possible and complete."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.dtm_host import STOP_NS, Host, arrivals, host, options
from support.queue_columns import queue_of

from twoway.measure.allocations import Agreement, Followed, Interval, agreement, latest_ns
from twoway.measure.channel import estimates
from twoway.theory.dtm import SLOT_BIT

LATE_NS = 300_000
CAME_NS = arrivals()
# Every third packet is late, by up to LATE_NS.
LATE = [LATE_NS * (n % 3 == 0) * (n % 7) // 6 for n in range(len(CAME_NS))]
HOLD = {"hold_on_loss_ms": 200}
DROPPED = range(150, len(CAME_NS), 100)


def off(made: Host, late_ns: int = LATE_NS, **changed: Any) -> int:
    """Count the decisions that contradict the paper's algorithm with other options."""
    own = made.slots.options.model_dump()
    own = {**own, **own.pop("rate"), **changed}
    slots = dataclasses.replace(made.slots, options=options(**own))
    return agreement(queue_of(), slots, made.passed, STOP_NS, late_ns=late_ns).off


def edited(made: Host, **columns: Any) -> Host:
    """Return the host with other reported slots."""
    return dataclasses.replace(made, slots=dataclasses.replace(made.slots, **columns))


def test_there_is_something_to_judge() -> None:
    """The traffic makes the channel grow and shrink at least five times."""
    slots = host(CAME_NS).slots.slots
    assert len(slots) > 5
    assert {-1, 1} <= set(np.sign(np.diff(slots)).tolist())


RATES: dict[str, Any] = {
    "shift_up": st.integers(0, 4),
    "shift_down": st.integers(0, 4),
    "rounding": st.sampled_from(["up", "nearest", "down"]),
    "margin_slots": st.sampled_from([0, 0.75, 1.5]),
    "corridor_slots": st.sampled_from([0, 1, 2]),
    "change_s": st.sampled_from([0, 0.1, 0.3]),
    "signalling_ms": st.sampled_from([0, 7, 50]),
    "hold_on_loss_ms": st.sampled_from([0, 120]),
    "count": st.sampled_from(["arrivals", "accepted"]),
    "estimate_mbit": st.sampled_from([0, 3]),
    "grain_kbit": st.sampled_from([0, 512]),
    "pace": st.sampled_from(["apart", "grid"]),
    "hold": st.sampled_from(["estimate", "slots"]),
}


@given(st.fixed_dictionaries(RATES), st.integers(0, 10**6))
@pytest.mark.slow
def test_without_lateness_it_is_the_paper_exactly(changed: dict[str, Any], seed: int) -> None:
    """If the host counts packets when captures see them, decisions are exactly the paper's."""
    made = host(arrivals(seed), dropped=DROPPED, **changed)
    found = agreement(queue_of(), made.slots, made.passed, STOP_NS, late_ns=0)
    assert (found.off, found.width_bit.max()) == (0, 0)
    wanted = estimates(queue_of(), made.slots, made.passed, STOP_NS)
    before = wanted.change_ns < STOP_NS
    assert wanted.change_ns[before].tolist() == made.slots.time_ns[1:].tolist()
    assert wanted.slots[before].tolist() == made.slots.slots[1:].tolist()


@given(
    st.fixed_dictionaries(RATES),
    st.integers(0, 10**6),
    st.sampled_from([1000, 10**5, 10**6, 10**7, 10**8]),
)
@pytest.mark.slow
def test_honest_host_is_never_wrong(changed: dict[str, Any], seed: int, most_ns: int) -> None:
    """However late a host counts its packets, no decision counts as wrong."""
    came = arrivals(seed)
    late = np.random.default_rng(seed).integers(0, most_ns, len(came), endpoint=True).tolist()
    made = host(came, late, DROPPED, **changed)
    # A late packet makes those behind it late as well.
    assert off(made, 2 * most_ns) == 0
    assert off(edited(made, estimate_bit=None), 2 * most_ns) == 0


TAMPERED: dict[str, list[Any]] = {
    "shift_up": [2, 0],
    "shift_down": [2, 0],
    "rounding": ["up", "down"],
    "margin_slots": [1.25, 0.25],
    "corridor_slots": [3, 1],
    "change_s": [0.2, 0.05],
    "estimate_mbit": [3],
    "sample_ms": [40],
    "signalling_ms": [10],
    "min_slots": [6],
    "max_slots": [10],
    "grain_kbit": [512],
    "pace": ["grid"],
}


@pytest.mark.parametrize("reported", [{}, {"estimate_bit": None}])
def test_other_algorithms_are_seen(reported: dict[str, None]) -> None:
    """A kernel with another allocator fails, even with a clock error of 0.3 ms, and by slots alone.

    Without reported estimates, the slots give the same result.
    """
    made = edited(host(CAME_NS, LATE), **reported)
    assert off(made) == 0
    tampered = [{name: value} for name, values in TAMPERED.items() for value in values]
    assert [changed for changed in tampered if off(made, **changed) == 0] == []


def test_hold_is_seen() -> None:
    """A kernel fails if it does not hold its estimate after a loss, or wrongly holds it."""
    with_hold, without = (host(CAME_NS, LATE, DROPPED, **held) for held in (HOLD, {}))
    assert (off(with_hold), off(without)) == (0, 0)
    assert off(with_hold, hold_on_loss_ms=0) > 0
    assert off(without, **HOLD) > 0


def test_a_hold_of_slots_is_seen() -> None:
    """A kernel that holds slots after a loss fails if the estimate should be held."""
    estimate, slots = (
        host(CAME_NS, LATE, DROPPED, **HOLD, hold=what) for what in ("estimate", "slots")
    )
    assert (off(estimate), off(slots)) == (0, 0)
    assert off(slots, hold="estimate") > 0
    assert off(estimate, hold="slots") > 0


def test_count_is_seen() -> None:
    """A kernel that wrongly counts dropped packets, or wrongly leaves them out, fails."""
    dropped = range(0, len(CAME_NS), 2)
    made = host(CAME_NS, LATE, dropped, count="accepted")
    assert off(made) == 0
    assert off(made, count="arrivals") > 0


def test_missing_decision() -> None:
    """A decision that the algorithm must make, and the kernel did not make, counts as an error."""
    made = host(CAME_NS, LATE)
    slots = made.slots
    for row in range(1, len(slots.slots)):
        kept = np.arange(len(slots.slots)) != row
        assert slots.estimate_bit is not None
        gone = edited(
            made,
            time_ns=slots.time_ns[kept],
            slots=slots.slots[kept],
            estimate_bit=slots.estimate_bit[kept],
        )
        assert off(gone) > 0, row


def test_no_decisions_at_all() -> None:
    """A kernel that never decides has an error at each sample that needs a decision."""
    made = host(CAME_NS, LATE)
    assert off(edited(made, time_ns=made.slots.time_ns[:1], slots=made.slots.slots[:1])) > 5


@pytest.mark.parametrize("by", [-2, -1, 1, 2])
def test_other_slots(by: int) -> None:
    """A decision for slots that the estimate does not demand counts as an error."""
    made = host(CAME_NS, LATE)
    for row in range(1, len(made.slots.slots)):
        slots = made.slots.slots.copy()
        slots[row] += by
        assert off(edited(made, slots=slots)) > 0, row


@pytest.mark.parametrize(
    ("by_ns", "wrong"), [(1000, 0), (-1000, 0), (1001, 1), (-1001, 1), (25_000_000, 1)]
)
def test_decisions_are_on_time(by_ns: int, wrong: int) -> None:
    """A decision must come at a sample's end, to within 1 us for conversions between clocks."""
    made = host(CAME_NS, LATE)
    times = made.slots.time_ns.copy()
    times[2] += by_ns
    assert (off(edited(made, time_ns=times)) > 0) == bool(wrong)


@pytest.mark.parametrize("again", [False, True])
def test_a_decision_too_many(again: bool) -> None:
    """A decision before the first sample's end, or a second one at it, counts as an error."""
    made = host(CAME_NS, LATE)
    first = made.slots.time_ns[1], made.slots.slots[1]
    time_ns, count = first if again else (500, 20)
    times, slots = np.insert(made.slots.time_ns, 1, time_ns), np.insert(made.slots.slots, 1, count)
    assert off(edited(made, time_ns=times, slots=slots, estimate_bit=None)) == 1


@pytest.mark.parametrize("by_bit", [-200_000, 200_000])
def test_reported_estimates_must_be_possible(by_bit: int) -> None:
    """An estimate that the captured traffic cannot produce counts as an error."""
    made = host(CAME_NS, LATE)
    assert made.slots.estimate_bit is not None
    told = made.slots.estimate_bit.copy()
    told[2] += by_bit
    assert off(edited(made, estimate_bit=told)) > 0


def test_signalling_hides_the_estimate() -> None:
    """With signalling the kernel reports a later sample's estimate, which is not checked."""
    made = host(CAME_NS, LATE, signalling_ms=60)
    assert made.slots.estimate_bit is not None
    assert off(edited(made, estimate_bit=made.slots.estimate_bit + 10**6)) == 0
    assert off(made, signalling_ms=59) > 0


def width_bit(late_ns: int, **changed: Any) -> int:
    """Return the median uncertainty of the estimates on a host with a given lateness."""
    made = host(CAME_NS, **changed)
    found: Agreement = agreement(queue_of(), made.slots, made.passed, STOP_NS, late_ns=late_ns)
    return int(np.median(found.width_bit))


def test_what_a_late_host_leaves_open() -> None:
    """The estimate's uncertainty grows with the host's lateness; at 0.1 s it exceeds a slot."""
    widths = [width_bit(late_ns, max_slots=4) for late_ns in (0, 10**5, 10**6, 10**8)]
    assert widths == sorted(widths)
    assert widths[0] == 0
    assert widths[1] < SLOT_BIT < widths[-1]
    # departures show arrivals if no packet waits
    assert width_bit(10**8) < SLOT_BIT


def test_latest_arrivals_by_hand() -> None:
    """A packet arrives before its transmission starts, and no later than the host's lateness.

    At 20 slots a transmission takes 390.625 us.
    """
    came = [0, 100_000, 300_000, 2_000_000]
    made = host(came)
    assert made.passed.left_ns.tolist() == [390_625, 781_250, 1_171_875, 2_390_625]
    found = latest_ns(queue_of(), made.slots, made.passed, 10**6)
    assert found.tolist() == [0, 390_625, 781_250, 2_000_000]
    found = latest_ns(queue_of(), made.slots, made.passed, 99)
    assert found.tolist() == [0, 100_099, 300_099, 2_000_000]


def test_dropped_packets_come_late() -> None:
    """A dropped packet may be counted up to the host's lateness after its capture, never before."""
    made = host([0, 10], dropped=[1])
    assert latest_ns(queue_of(), made.slots, made.passed, 500).tolist() == [0, 510]
    early = dataclasses.replace(made.passed, left_ns=made.passed.left_ns - 5)
    assert latest_ns(queue_of(), made.slots, early, 500).tolist() == [0, 510]


def test_drift_of_the_clock() -> None:
    """On a clock that is a thousandth fast, samples are a thousandth shorter on the plan's."""
    made = host(CAME_NS)
    fast = edited(made, time_ns=np.rint(made.slots.time_ns / 1.001).astype(np.int64))
    packets = dataclasses.replace(
        made.passed.packets, time_ns=np.rint(made.passed.packets.time_ns / 1.001).astype(np.int64)
    )
    left = np.rint(made.passed.left_ns / 1.001).astype(np.int64)
    passed = dataclasses.replace(made.passed, packets=packets, left_ns=left)
    stop_ns = round(STOP_NS / 1.001)
    for drift_ppb, wrong in ((1e6, False), (0, True)):
        found = agreement(
            queue_of(), fast.slots, passed, stop_ns, late_ns=10_000, drift_ppb=drift_ppb
        )
        assert (found.off > 0) is wrong


def followed(low: int, high: int, slots: int = 4) -> Followed:
    """Make the allocator with bounds of its estimate, and its corridor from 2 to 3 Mbit/s."""
    model = Followed(host([0], slots=slots).slots)
    model.estimate = Interval(low, high)
    model.lower, model.upper = Interval(2 * 10**6, 2 * 10**6), Interval(3 * 10**6, 3 * 10**6)
    return model


LATER_NS = 10**9


@pytest.mark.parametrize(
    ("low", "high", "at_ns", "good"),
    [
        (2_500_000, 2_600_000, LATER_NS, True),  # within the corridor
        (2_000_000, 3_000_000, LATER_NS, True),  # both bounds of the estimate are within
        (2_900_000, 3_100_000, LATER_NS, True),  # the estimate may be within
        (3_000_001, 3_100_000, LATER_NS, False),  # the estimate is certainly outside
        (3_000_001, 3_100_000, 99_999_999, True),  # outside, but too early for a decision
        (1_900_000, 1_999_999, LATER_NS, False),
        (1_900_000, 2_000_000, LATER_NS, True),
    ],
)
def test_when_a_decision_is_missing(low: int, high: int, at_ns: int, good: bool) -> None:
    """A decision is missing only if the estimate is certainly outside its corridor."""
    assert followed(low, high).decide(at_ns, None) is good


def test_undecided_corridor() -> None:
    """If an unseen decision for the same slots was possible, the corridor may be old or new.

    Estimates from 2.944 to 3.456 Mbit/s demand 8 slots; 4 slots would be far below.
    """
    model = followed(2_900_000, 3_100_000, slots=8)
    assert model.decide(LATER_NS, None)
    assert model.estimate == (2_900_000, 3_100_000)
    assert model.lower == (2_000_000, 3_100_000 - SLOT_BIT)
    assert model.upper == (3_000_000, 3_100_000 + SLOT_BIT)
    model = followed(2_900_000, 3_100_000)
    assert model.decide(LATER_NS, None)
    assert model.estimate == (2_900_000, 3_000_000)
    assert (model.lower, model.upper) == ((2_000_000, 2_000_000), (3_000_000, 3_000_000))


def test_certain_decision_for_the_same_slots() -> None:
    """A certain but unseen decision moves the corridor to the estimates that demand these slots."""
    model = followed(3_100_000, 3_500_000, slots=8)
    assert model.decide(LATER_NS, None)
    assert model.estimate == (3_100_000, 3_455_999)
    assert model.lower == (3_100_000 - SLOT_BIT, 3_455_999 - SLOT_BIT)
    assert model.upper == (3_100_000 + SLOT_BIT, 3_455_999 + SLOT_BIT)
