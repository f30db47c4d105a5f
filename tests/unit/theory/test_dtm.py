"""The DTM channel's estimator and slots, and predictions for experiments with one."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.connections import bottleneck, connection
from support.dtm_host import RATE

from twoway.contract.network import START_NS
from twoway.links.dtm import Channel
from twoway.theory.dtm import (
    SLOT_BIT,
    Allocator,
    allocate,
    half_corridor_bit,
    response_s,
    slots_for,
    whole_slots,
)
from twoway.theory.network import Bottleneck, Setup
from twoway.theory.predictions.barakat import flow_cycle
from twoway.theory.registry import predict, printed_values


def _channel(slots: int = 20, rate: dict[str, Any] | None = RATE, **fields: Any) -> Channel:
    bounds = {"min_slots": 1, "max_slots": 8192, "change_s": 1, "signalling_ms": 0}
    return Channel.model_validate({"slots": slots, "rate": rate, **bounds, **fields})


@pytest.mark.parametrize(
    ("share", "seconds"), [(0.5, 0.52), (1 - 1 / math.e, 0.75), (0.9, 1.72), (0.99, 3.45)]
)
def test_step_response(share: float, seconds: float) -> None:
    """The estimator reaches 50, 63, 90 and 99 % of a step in 0.52, 0.75, 1.72 and 3.45 s."""
    assert response_s(share) == pytest.approx(seconds, abs=0.005)


@pytest.mark.parametrize("shift", [0, 1, 3, 5])
def test_step_response_is_the_allocators(shift: int) -> None:
    """The estimator itself passes 90 % of a step in the sample of the closed form."""
    step = 10**9  # bit/s, large enough that whole bits do not matter
    allocator = Allocator(0, 20, _channel(rate={**RATE, "shift_up": shift}))
    count = 0
    while allocator.estimate < 0.9 * step:
        count += 1
        allocator.sample(count * 10**8, step)
    assert count == -(-response_s(0.9, shift) // 0.1)


@given(old=st.integers(0, 10**9), new=st.integers(0, 10**9), hold=st.booleans())
def test_estimate_moves_by_an_eighth(old: int, new: int, *, hold: bool) -> None:
    """A sample moves the estimate an eighth of the way, rounded down; holding stops its fall."""
    allocator = Allocator(0, 20, _channel(rate={**RATE, "estimate_mbit": old / 1e6}))
    moved = allocator.sample(10**8, new, hold=hold)
    if new >= old:
        assert moved == old + (new - old) // 8
    else:
        assert moved == (old if hold else old - (old - new) // 8)


def test_asymmetric_shifts() -> None:
    """With a shift of 5 for falls, a fall takes four times as long as a rise."""
    assert response_s(0.5, 5) / response_s(0.5, 3) == pytest.approx(4.2, abs=0.05)


@pytest.mark.parametrize(
    ("rounding", "slots", "whole"), [("up", 12, 11), ("nearest", 12, 11), ("down", 11, 10)]
)
def test_slots_of_figure_4(rounding: str, slots: int, whole: int) -> None:
    """5 Mbit/s are 9.77 slots; with margin and half the corridor 11.52; a whole 9 is 10.75."""
    for fields, expected in (({}, slots), (WHOLE, whole)):
        channel = _channel(rate={**RATE, **fields, "rounding": rounding})
        assert slots_for(5_000_000, channel) == expected


def test_figure_4_has_a_mbit_to_spare() -> None:
    """12 slots are 1.144 Mbit/s above 5, the paper's "about one Megabit per second more"."""
    slots = slots_for(5_000_000, _channel())
    assert slots * SLOT_BIT - 5_000_000 == 1_144_000


# Slots of 1 kbit/s; margin and corridor stay as many kbit/s as with slots of 512 kbit/s.
UNROUNDED = {**RATE, "margin_slots": 384, "corridor_slots": 1024}
WHOLE = {"grain_kbit": 512}


@pytest.mark.parametrize(
    ("rate", "spare_bit"),
    [({}, 896_000), (WHOLE, 504_000)],
    ids=["curr_slot is a real number", "curr_slot is whole"],
)
def test_unrounded_slots_of_figure_4(rate: dict[str, int], spare_bit: int) -> None:
    """Without rounding 5 Mbit/s leave 1.75 slots spare; a whole curr_slot takes 0.77 of them."""
    channel = Channel.model_validate({"slot_kbit": 1, "rate": {**UNROUNDED, **rate}})
    assert slots_for(5_000_000, channel) * channel.slot_bit - 5_000_000 == spare_bit


@pytest.mark.parametrize(("pace", "at_s"), [("apart", [1.0, 2.1]), ("grid", [1.0, 3.0])])
def test_once_a_second(pace: str, at_s: list[float]) -> None:
    """A change due at 2.1 s happens then; on a grid of whole seconds it happens at 3 s."""
    rates = [10**6] * 20 + [10**7] * 30
    channel = _channel(10, {**RATE, "shift_up": 0, "shift_down": 0, "pace": pace})
    assert [at for at, _ in allocate(rates, channel)[1:]] == at_s


@given(bit=st.integers(0, 10**8))
def test_margin_lies_above_the_corridor(bit: int) -> None:
    """Slots that are rounded up hold the corridor's upper edge plus the margin, and under one more.

    So the allocation never limits a rate within its corridor.
    """
    slots = slots_for(bit, _channel())
    assert 1.75 * SLOT_BIT <= slots * SLOT_BIT - bit < 2.75 * SLOT_BIT


@given(bit=st.integers(64, 10**8), start=st.integers(1, 300), shift=st.integers(0, 6))
def test_constant_rate_settles_where_said(bit: int, start: int, shift: int) -> None:
    """A constant rate settles where the estimate is at most half a corridor off.

    A shift leaves up to 2^6 - 1 bit/s, by which the estimate may miss the rate.
    """
    channel = _channel(start, {**RATE, "shift_up": shift, "shift_down": shift})
    changes = allocate([bit] * 3000, channel)
    half = half_corridor_bit(channel) + 63
    few, many = slots_for(max(bit - half, 0), channel), slots_for(bit + half, channel)
    assert few <= changes[-1][1] <= many
    assert changes[-1][0] < 100


def test_history_may_cost_a_slot() -> None:
    """A flow of 5 Mbit/s ends with 11 slots if it starts below, and with 12 if it starts at 5."""
    decided = [slots_for(5_000_000 + off, _channel()) for off in (-512_000, 0, 512_000)]
    assert decided == [11, 12, 13]
    assert allocate([5_000_000] * 200, _channel())[-1][1] == 11
    known = {**RATE, "estimate_mbit": 4.99}
    assert allocate([5_000_000] * 200, _channel(rate=known))[-1][1] == 12


def test_first_change_of_figure_2() -> None:
    """At 1 s the estimate of a constant 5 Mbit/s is 3.68: 9 slots; the next decision is at 2 s."""
    changes = allocate([5_000_000] * 50, _channel())
    assert changes == [(0.0, 20), (1.0, 9), (2.0, 11)]


def test_a_corridor_ignores_small_changes() -> None:
    """A rate within half a corridor, 512 kbit/s, of the decided one changes nothing."""
    start = [5_000_000] * 100
    known = _channel(rate={**RATE, "estimate_mbit": 4.99})
    assert len(allocate([*start, *[5_480_000] * 100], known)) == 2
    assert len(allocate([*start, *[5_530_000] * 100], known)) == 3


def test_bounds_and_signalling() -> None:
    """Slots stay within the channel's bounds, and take effect after signalling."""
    bounded = _channel(max_slots=10, min_slots=5, signalling_ms=250)
    assert allocate([9_000_000] * 20, bounded)[1:] == [(1.25, 10)]
    assert allocate([0] * 20, _channel(min_slots=5))[1:] == []
    assert allocate([1_000] * 20, _channel(min_slots=5))[1:] == [(1.0, 5)]


@pytest.mark.parametrize(("bit", "slots"), [(0, 0), (1, 1), (512_000, 1), (512_001, 2)])
def test_whole_slots(bit: int, slots: int) -> None:
    """Rounded up, a slot starts at its first bit/s; rounded down, it ends at its last."""
    assert whole_slots(bit) == slots
    assert whole_slots(bit, "down") == bit // 512_000
    assert whole_slots(511_999, "down") == 0


def _setup(limit: int, congestion: str, dtm: Channel, delay_s: float = 0.025) -> Setup:
    """Make dtm-fig4's path: 5 Mbit/s, then the channel, with delays, packets of 1040 bytes."""
    bit = 1040 * 8

    def link(mbit: float, delay_s: float, packets: int) -> Bottleneck:
        rate = mbit * 1e6
        return bottleneck(
            rate, round(delay_s * 1e9), packets, bit / rate, 320 / rate, share=1000 / 1040
        )

    links = {
        "access": link(10, 0, 1000),
        "bottleneck": link(5, 0, limit),
        "channel": link(dtm.slots * 0.512, delay_s, 100).with_fields(dtm=dtm),
        "return": link(0.512, delay_s, 1000),
    }
    way = ("access", "bottleneck", "channel")
    flow = connection("flow", way, ("return",), congestion, direction="bottleneck")
    return Setup(links, (flow,), 1000, True, 10, 60, {}, {})


def _bus(owned: int, windows: tuple[int, int] = (60, 60)) -> Setup:
    """Make two channels of a pool of 20 slots, with two slots each at first, and some owned."""
    dtm = _channel(slots=2, pool="bus", owned_slots=owned)
    rate = 2 * SLOT_BIT
    node = bottleneck(rate, 20_000_000, 100, 12000 / rate, 320 / rate, share=1460 / 1500)
    node = node.with_fields(dtm=dtm)
    back = bottleneck(1e8, 20_000_000, 1000, 12000 / 1e8, 320 / 1e8, share=1460 / 1500)
    flows = [
        connection(
            name,
            (name,),
            ("back",),
            "fixed",
            window_packets=window,
            start_ns=START_NS + start_s * 10**9,
        )
        for name, window, start_s in zip(("one", "two"), windows, (0, 50), strict=True)
    ]
    links = {"one": node, "two": node, "back": back}
    return Setup(links, tuple(flows), 1460, True, 80, 100, {}, {}, pools={"bus": 20})


@pytest.mark.parametrize(("owned", "slots"), [(0, (18, 2)), (1, (18, 2)), (5, (15, 5))])
def test_prediction_for_a_bus(owned: int, slots: tuple[int, int]) -> None:
    """The later node has the larger of owned and initial slots; the earlier node has the rest."""
    values = predict("dtm_bus", _bus(owned))
    assert (values["slots_min.one"], values["slots_max.two"]) == slots
    assert values["throughput.two"] == slots[1] * 0.512


def test_a_bus_that_idles_is_not_predicted() -> None:
    """A bus whose window is below its pipe leaves slots free at times and is not predicted."""
    with pytest.raises(ValueError, match="fixed windows above the pipe; one is not"):
        predict("dtm_bus", _bus(0, (31, 60)))


NEAREST = _channel(rate={**RATE, "rounding": "nearest"})


def test_prediction_for_figures_2_and_4() -> None:
    """Rounded to nearest, 5 Mbit/s end with 11 or 12 slots, depending on slow start's losses."""
    values = predict("dtm", _setup(50, "reno", NEAREST))
    assert (values["slots_min.channel"], values["slots_max.channel"]) == (11, 12)
    assert not values.keys() & {"slots_mean.channel", "capacity.channel", "reallocations.channel"}
    assert values["utilisation.bottleneck"] == values["efficiency.flow"] == pytest.approx(1)
    assert values["throughput.flow"] == pytest.approx(5)


def test_slots_have_a_mean_where_no_start_matters() -> None:
    """With 5 ms each way, a queue of 10 and rounding up, every start ends with 11 slots."""
    values = predict("dtm", _setup(10, "reno", _channel(), 0.005))
    assert values["slots_mean.channel"] == values["slots_min.channel"] == 11
    assert values["capacity.channel"] == pytest.approx(11 * 0.512)
    assert values["reallocations.channel"] == 0


def test_first_seconds_of_figure_2() -> None:
    """The estimate lags: the channel has 6 to 9 slots in second 2, and 9 to 11 in second 3."""
    setup = _setup(50, "reno", NEAREST)
    for start_s, fewest, most in ((0, 20, 20), (1.01, 6, 9), (2.01, 9, 11)):
        values = predict("dtm", replace(setup, warm_up_s=start_s, duration_s=int(start_s) + 1))
        assert (values["slots_min.channel"], values["slots_max.channel"]) == (fewest, most)


def test_printed_formula_for_slots() -> None:
    """The printed formula gives 11.52 slots for 5 Mbit/s, and none for a changing rate."""
    values = printed_values("dtm", _setup(50, "reno", NEAREST))
    assert values["slots_mean.channel"] == pytest.approx(5 / 0.512 + 1.75)
    assert printed_values("dtm", _setup(10, "reno", NEAREST)) == {}
    assert printed_values("dtm", _setup(50, "reno", _channel(rate=None))) == {}


@pytest.mark.parametrize(
    ("delay_s", "slots"), [(0.01, (10, 12)), (0.025, (10, 11)), (0.05, (9, 11))]
)
def test_prediction_for_figure_5(delay_s: float, slots: tuple[int, int]) -> None:
    """With a queue of 10 packets, a longer delay means a lower rate and fewer slots."""
    values = predict("dtm", _setup(10, "reno", NEAREST, delay_s))
    assert 4 < values["throughput.flow"] < 5
    assert (values["slots_min.channel"], values["slots_max.channel"]) == slots


@given(
    before=st.lists(st.integers(0, 20_000_000), max_size=40),
    phase_s=st.floats(0, 10),
    delay_ms=st.integers(10, 60),
)
def test_no_past_leaves_a_cycles_range(before: list[int], phase_s: float, delay_ms: int) -> None:
    """Whatever the earlier rates, Reno's cycle has slots within the predicted range."""
    setup = _setup(10, "reno", NEAREST, delay_ms / 1e3)
    values = predict("dtm", setup)
    cycle = flow_cycle(setup, setup.connections[0])
    edges_s = np.linspace(phase_s, phase_s + 30, 301, dtype=np.float64)
    rates = cycle.rates(edges_s) * 8320
    past = len(before) / 10
    changes = allocate([*before, *(round(rate) for rate in rates)], NEAREST)
    late = [slots for at, slots in changes if at >= past + 10] or [changes[-1][1]]
    assert values["slots_min.channel"] <= min(late)
    assert values["slots_max.channel"] >= max(late)


def test_prediction_for_figure_6() -> None:
    """Tahoe's slow start makes the allocation follow its sawtooth further than Reno's."""
    swing = {}
    for congestion in ("reno", "tahoe"):
        values = predict("dtm", _setup(10, congestion, NEAREST, 0.05))
        swing[congestion] = values["slots_max.channel"] - values["slots_min.channel"]
    assert swing["tahoe"] > swing["reno"] + 1


def test_prediction_for_a_static_channel() -> None:
    """Without an allocator the channel keeps its slots, and each flow its bottleneck (figure 8)."""
    values = predict("dtm", _setup(50, "reno", _channel(rate=None)))
    assert values["slots_mean.channel"] == 20
    assert values["throughput.flow"] == pytest.approx(5)
    assert values["capacity_unused.channel"] == pytest.approx(5.24)
    assert values["capacity_goodput.channel"] == pytest.approx(5 / 10.24 * 1000 / 1040)
    assert values["drops_data.channel"] == 0


def test_refuses_what_has_no_closed_form() -> None:
    """Losses at the channel, several flows on one bottleneck and other allocators are refused."""
    with pytest.raises(ValueError, match="wider than its flows' bottlenecks"):
        predict("dtm", _setup(50, "reno", _channel(slots=9)))
    with pytest.raises(ValueError, match="rate allocator and static"):
        predict("dtm", _setup(50, "reno", _channel(buffer={"high_bytes": 1})))
    setup = _setup(50, "reno", _channel())
    other = setup.connections[0].model_copy(update={"name": "other"})
    with pytest.raises(ValueError, match="flow, other share one"):
        predict("dtm", replace(setup, connections=(*setup.connections, other)))
    plain = {name: link.with_fields(dtm=None) for name, link in setup.links.items()}
    with pytest.raises(ValueError, match="one DTM channel, got none"):
        predict("dtm", replace(setup, links=plain))
