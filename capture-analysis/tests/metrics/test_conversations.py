"""The limits of conversations, written packet by packet, near their sender and far from it."""

from types import SimpleNamespace

import numpy as np
import pytest
from capture_analysis.columns import FLAG_ACK, FLAG_FIN, Mark
from capture_analysis.facts.directions import Block
from capture_analysis.facts.facts import Facts
from capture_analysis.one_capture import single
from capture_analysis.one_capture.connections import Connections
from capture_analysis.one_capture.limit import limit_of
from capture_analysis.one_capture.single import measure
from capture_analysis.tracking import Tracker
from capture_analysis.waiting_times import WaitingTimes
from hypothesis import given, settings
from hypothesis import strategies as st
from measured_captures import START_NS, ColumnCapture, values
from scripted import MSS, PSH, Script

MS = 1000
PLACES = {"client": 20 * MS, "server": 0, "middle": 10 * MS}


def rpc(
    place: str, turns: int = 100, lost: int = -1, window: int = 65_000, fin: bool = False
) -> Script:
    """Make a client that asks every 40 ms, and whose ACKs ride on the next question.

    Args:
        place: of the tap, on a path with a round trip of 20 ms.
        turns: questions.
        lost: the question that is sent again after 250 ms; -1: none.
        window: bytes that both ends announce.
        fin: True to let the last ACK ride on a FIN.
    """
    to_server = PLACES[place]
    script, now = Script(20 * MS, to_server, window), 100 * MS
    for turn in range(turns):
        first = script.data(0, now, 200)
        if turn == lost:
            now += 250 * MS
            script.repeat(0, now, first, 200)
        script.hears(1)
        # The server takes 10 ms, the client as long.
        now += to_server + 10 * MS
        script.data(1, now, 300)
        script.hears(0)
        now += 20 * MS - to_server + 10 * MS
    script.ack(0, now, **({"flags": FLAG_FIN | FLAG_ACK} if fin else {}))
    return script


def limits(script: Script, end: int = 0) -> SimpleNamespace:
    """Return the quantities of a end's data."""
    return values(measure(script.captured()), end)


def shares(found: SimpleNamespace, cause: str) -> float:
    """Return the share of a cause, from whichever place it is seen."""
    each = getattr(found, f"limited_{cause}"), getattr(found, f"afar_{cause}", 0.0)
    return next(share for share in each if isinstance(share, float))


@pytest.mark.parametrize("window", [4096, 65_000])
@pytest.mark.parametrize("end", [0, 1])
@pytest.mark.parametrize("place", PLACES)
def test_a_conversation_waits_for_its_application(place: str, end: int, window: int) -> None:
    """If ACKs ride on answers, the application limits, seen from anywhere; the window moves."""
    found = limits(rpc(place, window=window), end)
    assert shares(found, "receive_window") == 0
    assert limit_of(vars(found)).cause == "application"
    assert shares(found, "application") > 0.99


@pytest.mark.parametrize("place", PLACES)
def test_a_repair_ends_with_the_ack_that_rides_on_an_answer(place: str) -> None:
    """One question of a hundred sent again is a repair of a quarter second, and no longer."""
    found = limits(rpc(place, lost=20))
    assert 0.25 / 4.5 < shares(found, "recovery") < 0.31 / 4.2
    assert limit_of(vars(found)).cause == "application"


def test_an_ack_rides_on_a_fin() -> None:
    """A FIN that acknowledges the last repair ends it: no later time is a repair."""
    script = rpc("client", turns=20, lost=19, fin=True)
    end = script.packets[-1]["time_ns"] // 1000
    script.hears(1)
    script.send(1, end + 400 * MS, script.next[1], ack=script.heard[1], flags=FLAG_FIN, window=100)
    found = limits(script)
    assert shares(found, "recovery") < 0.35 / 1.2


def sent_at(times_us: list[int], round_trip_us: int, payload: int = MSS, flags: int = 0) -> Script:
    """Make a sender of segments at some times, each with its ACK, seen near the sender."""
    script = Script(round_trip_us, round_trip_us)
    sent, acked = [(at, 0) for at in times_us], [(at + round_trip_us, 1) for at in times_us]
    for at, end in sorted(sent + acked):
        if end:
            script.heard[1] += payload
            script.ack(1, at)
        else:
            script.data(0, at, payload, flags=flags)
    return script


def paced(gap_us: int, payload: int = MSS, flags: int = 0) -> Script:
    """Make an application that writes a segment at a pace of its own."""
    times = [100 * MS + number * gap_us for number in range(1000)]
    return sent_at(times, 22 * MS, payload, flags)


@pytest.mark.parametrize("gap_us", [900, 2 * MS, 2500, 3 * MS, 4 * MS, 7 * MS])
def test_an_application_with_a_pace_is_no_congestion_window(gap_us: int) -> None:
    """A pace whose flight never grows, without a loss, is the application's at any gap."""
    found = limits(paced(gap_us))
    assert found.limited_application > 0.85
    assert found.limited_congestion_window < 0.15


def test_small_data_with_psh_empty_the_buffer() -> None:
    """Data that come just after ACKs are the application's if each write was sent at once."""
    assert limits(paced(4440, 1000, PSH)).limited_application > 0.95
    assert limits(paced(4440)).limited_congestion_window > 0.95


def test_a_window_that_grows_is_no_application() -> None:
    """A sender whose paced flight grows with its ACKs waits for its congestion window."""
    times = [
        100 * MS + 40 * MS * turn + number * 40 * MS // (20 + turn)
        for turn in range(20)
        for number in range(20 + turn)
    ]
    assert limits(sent_at(times, 40 * MS)).limited_congestion_window > 0.8


def shut(place_us: int, *, scale_seen: bool = True, probes: bool = True) -> Script:
    """Make a transfer whose receiver shuts its window for 4 s, and then for 0.5 s."""
    script, now = Script(20 * MS, place_us), 100 * MS
    for shut_us in (4_000 * MS, 500 * MS):
        for _ in range(10):
            script.data(0, now, MSS)
            script.hears(1)
            now += place_us
            script.ack(1, now)
            now += 20 * MS - place_us
        script.data(0, now, MSS)
        script.hears(1)
        now += place_us
        script.ack(1, now, window=0)
        if probes:
            script.send(0, now + 250 * MS, script.next[0] - 1, ack=1, window=65_000)
            script.ack(1, now + 250 * MS + place_us, window=0)
        now += shut_us
        script.ack(1, now, window=40_000)
        now += 20 * MS - place_us
    script.data(0, now, MSS)
    script.hears(1)
    script.ack(1, now + place_us)
    if not scale_seen:
        del script.packets[:3]
    return script


@pytest.mark.parametrize("probes", [True, False])
@pytest.mark.parametrize("place_us", [20 * MS, 10 * MS, 0])
def test_a_shut_window_is_a_cause_and_no_pause(place_us: int, *, probes: bool) -> None:
    """A window of 0 limits the transfer for as long as it is shut, wherever it is seen."""
    found = limits(shut(place_us, probes=probes))
    limit = limit_of(vars(found))
    assert limit.cause == "zero window"
    assert limit.share == pytest.approx(4.5 / 4.97, abs=0.02)
    assert shares(found, "pause") == 0
    assert found.pauses == 0
    assert "idle" not in limit.sentence


def small_writes(waits: int = 60, to_server_us: int = 55) -> Script:
    """Make an application whose second small write waits for the delayed ACK of its first."""
    script, now = Script(80, to_server_us), 10 * MS
    for _ in range(waits):
        script.data(0, now, 100)
        script.hears(1)
        now += 41 * MS
        script.ack(1, now)
        script.data(0, now + 85 - to_server_us, 100)
        script.hears(1)
        now += 12 * MS
        script.data(1, now, 100)
        script.hears(0)
        script.ack(0, now + 30)
        now += 100
    return script


def test_small_data_that_wait_for_their_ack() -> None:
    """Nagle's algorithm against delayed ACKs limits, not a congestion window that is open."""
    found = limits(small_writes())
    assert limit_of(vars(found)).cause == "Nagle"
    assert found.limited_nagle == pytest.approx(41 / 53.1, abs=0.02)
    afar = limits(small_writes(to_server_us=5))
    assert limit_of(vars(afar)).cause == "Nagle"
    assert afar.afar_nagle == pytest.approx(41 / 53.1, abs=0.02)


@pytest.mark.parametrize(("size", "cause"), [(1000, "application"), (MSS, "cannot tell")])
def test_small_data_that_empty_the_buffer_are_an_applications_from_afar(
    size: int, cause: str
) -> None:
    """A sender whose every segment could hold more has nothing to send; one of full ones may."""
    script = Script(20 * MS, 0)
    for at in range(100 * MS, 2100 * MS, 4 * MS):
        script.data(0, at, size)
        script.hears(1)
        script.ack(1, at + 10)
    assert limit_of(vars(limits(script))).cause == cause


@pytest.mark.parametrize("back_ns", [50_000_000, 998_000_000, 3_600_000_000_000])
def test_a_clock_that_is_set_back(back_ns: int) -> None:
    """A clock that is set back costs the gap that it touches, and changes no other number."""
    capture = rpc("client", lost=20).captured()
    capture.whole.time_ns[:] += START_NS
    before = values(measure(capture), 0)
    capture.whole.time_ns[len(capture.whole) // 2 :] -= back_ns
    after = values(measure(capture), 0)
    assert after.limited_application == pytest.approx(before.limited_application, abs=0.01)
    assert after.data_time == pytest.approx(before.data_time, abs=0.1)
    assert after.goodput == pytest.approx(before.goodput, rel=0.05)
    assert after.rtt_min == pytest.approx(before.rtt_min, rel=0.05)


def stamped() -> ColumnCapture:
    """Make a conversation with time stamps, in ticks of a millisecond."""
    capture = rpc("client", lost=20).captured()
    capture.whole.time_ns[:] += START_NS
    capture.whole.marks[:] |= int(Mark.TIMESTAMPS)
    capture.whole.ts_value[:] = (capture.whole.time_ns // 1_000_000).astype(np.uint32)
    return capture


@pytest.mark.parametrize("forward_ns", [2_000_000_000, 3_600_000_000_000])
@pytest.mark.parametrize("chunk", [7, 1 << 17])
def test_a_clock_that_is_set_forward(
    forward_ns: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time stamps show that a clock was set forward: then no time passes; without them it does."""
    monkeypatch.setattr(single, "HEAD_PACKETS", chunk)
    capture = stamped()
    before = values(measure(capture), 0)
    capture.whole.time_ns[len(capture.whole) // 2 :] += forward_ns
    measured = measure(capture)
    after = values(measured, 0)
    for name in ("limited_application", "data_time", "goodput", "answer_longest", "stall_longest"):
        assert getattr(after, name) == pytest.approx(getattr(before, name), abs=0.01), name
    assert Connections(measured).numbers("time") == pytest.approx(
        Connections(measure(stamped())).numbers("time"), abs=0.01
    )
    assert f"by {forward_ns / 1e9:.1f} s" in measured.times.warning()
    capture.whole.marks[:] = 0
    assert values(measure(capture), 0).stall_longest >= forward_ns / 1e9


def test_packets_out_of_order_in_the_file() -> None:
    """Packets that a file has a few places late change nothing."""
    capture = stamped()
    before = vars(values(measure(capture), 0))
    order = np.arange(len(capture.whole))
    order[1:-1] = order[1:-1].reshape(-1, 7)[:, ::-1].ravel()
    capture.whole = capture.whole.where(order)
    assert vars(values(measure(capture), 0)) == before


NS = st.sampled_from([0, 50_000, 900_000, 4_000_000, 30_000_000, 600_000_000, 2 * 10**9, -(10**6)])
EVENTS = st.lists(
    st.tuples(
        NS,
        st.integers(0, 1),
        st.sampled_from(["data", "data", "data", "ack", "ack", "again", "probe", "fin"]),
        st.sampled_from([1, 200, MSS]),
        st.sampled_from([0, 300, 3000, 60_000]),
        st.booleans(),
    ),
    min_size=5,
    max_size=60,
)


def random_script(events: list[tuple[int, int, str, int, int, bool]], to_server_us: int) -> Script:
    """Make any conversation, in which each end may hear all or nothing before it speaks."""
    script, now_ns = Script(20 * MS, to_server_us), 50_000_000
    for step_ns, end, what, size, window, hears in events:
        now_ns = max(now_ns + step_ns, 0)
        script.window[end] = window
        if hears:
            script.hears(end)
        flags = {"flags": FLAG_ACK | (8 if size == 200 else 0)}
        if what == "data":
            script.data(end, 0, size, **flags)
        elif what == "again":
            script.repeat(end, 0, max(script.next[end] - size, 1), size)
        elif what == "probe":
            script.send(end, 0, script.next[end] - 1, ack=script.heard[end], window=window)
        else:
            script.ack(end, 0, **({"flags": FLAG_FIN | FLAG_ACK} if what == "fin" else {}))
        script.packets[-1] |= {"time_ns": now_ns, "marks": 1, "ts_value": now_ns // 1_000_000 + end}
    return script


@settings(deadline=None)
@given(EVENTS, st.sampled_from([20 * MS, 19 * MS, 10 * MS, 0]))
def test_causes_divide_all_of_the_time(
    events: list[tuple[int, int, str, int, int, bool]], to_server_us: int
) -> None:
    """The times of the causes sum to all of the time of any packets, and none is below 0."""
    capture = random_script(events, to_server_us).captured()
    tracked = Tracker().track(capture.whole, capture.flows)
    facts = measure(capture).facts
    block = Block(capture.whole, tracked, facts)
    times = WaitingTimes()
    times.add(block)
    for direction in (0, 1):
        if facts.tap_at[direction] >= 0:
            assert min(times.by_cause(direction)) >= 0


def test_a_direction_that_only_receives_keeps_no_packets() -> None:
    """Data that acknowledge nothing new are not kept, however many there are."""
    script = Script(20 * MS, 20 * MS)
    for number in range(1000):
        script.data(0, 100 * MS + number, MSS)
    capture = script.captured()
    block = Block(
        capture.whole, Tracker().track(capture.whole, capture.flows), Facts.without_knowledge(2)
    )
    block.facts.tap_at[:] = 0, 1
    times = WaitingTimes()
    times.add(block)
    assert times._coming._taken <= 2


def timed_out(turns: int, flags: int = 0) -> Script:
    """Make a sender, seen at its receiver, that sends a segment a second after a loss."""
    script, now = Script(20 * MS, 0), 100 * MS
    lost = script.next[0]
    script.next[0] += MSS
    script.data(0, now, MSS, flags=flags)
    script.repeat(0, now + 20 * MS, lost, MSS)
    for _ in range(turns):
        script.hears(1)
        script.ack(1, now + 20 * MS)
        now += 1000 * MS
        script.data(0, now, MSS, flags=flags)
    return script


def test_silences_after_losses_are_repairs_from_afar() -> None:
    """A sender that waits for timers, far from the tap, repairs losses; one with PSH pauses."""
    assert limits(timed_out(100)).afar_recovery > 0.9
    assert limits(timed_out(100, flags=PSH)).afar_recovery < 0.1


def test_no_queue_stands_in_silences_at_the_end() -> None:
    """A queue that stood for a second has no share of the minute of repairs after it."""
    script, now = Script(20 * MS, 20 * MS), 100 * MS
    for number in range(100):
        script.data(0, now + number * MS, MSS, flags=0)
    for number in range(100):
        script.heard[1] += MSS
        script.ack(1, now + 20 * MS + number * 10 * MS)
    now += 1100 * MS
    first = script.data(0, now, MSS, flags=0)
    for _ in range(60):
        now += 1000 * MS
        script.repeat(0, now, first, MSS)
        script.hears(1)
        script.ack(1, now + 20 * MS)
        first = script.data(0, now + 21 * MS, MSS, flags=0)
    found = limits(script)
    assert found.standing_queue < 0.1
    assert limit_of(vars(found)).cause == "recovery"
