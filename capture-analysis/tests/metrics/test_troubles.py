"""Troubles that people look for in a capture, and repairs, written packet by packet."""

from types import SimpleNamespace

import numpy as np
import pytest
from capture_analysis.columns import FLAG_ACK, FLAG_FIN, FLAG_RST, FLAG_SYN, Mark
from capture_analysis.metrics import syn_cookies, tls
from capture_analysis.one_capture.connections import Connections
from capture_analysis.one_capture.limit import limit_of
from capture_analysis.one_capture.single import measure
from capture_analysis.tracking import Repair
from conversation import Conversation, NewTracker, each_tracker
from measured_captures import arriving, capture_of, compressed, values
from scripted import MSS, PSH, Script

# Troubles that people look for in a capture, each in a connection written packet by packet.

MS = 1000
START = 100 * MS


def found(script: Script, end: int = 0) -> SimpleNamespace:
    """Return the quantities of an end's data."""
    return values(measure(script.captured()), end)


def said(script: Script, end: int = 0) -> str:
    """Return the sentence on an end's limit."""
    return limit_of(vars(found(script, end))).sentence


def asking(place_us: int = 0, thinks_us: int = 300 * MS) -> Script:
    """Make a server that thinks before each of three answers, on a path of 20 ms."""
    script, now = Script(20 * MS, place_us), START
    for turn in range(3):
        script.data(0, now, 200)
        script.hears(1)
        now += place_us + thinks_us * (1 + (turn == 1))
        script.data(1, now, 500)
        script.hears(0)
        now += 20 * MS - place_us + 50 * MS
    return script


@pytest.mark.parametrize("place_us", [0, 10 * MS, 20 * MS])
def test_think_times(place_us: int) -> None:
    """A server's time to the first byte is its own wherever the tap is, and so is the longest."""
    server, client = (found(asking(place_us), end) for end in (1, 0))
    assert (server.answers, client.answers) == (3, 2)
    assert server.first_answer == pytest.approx(0.3 + place_us / 1e6)
    assert server.answer_own == pytest.approx(0.3, abs=2e-3)
    assert server.answer_longest_own == pytest.approx(0.6, abs=2e-3)
    assert client.answer_own == pytest.approx(0.05, abs=2e-3)


def encrypted(late_us: int) -> Script:
    """Make TLS whose server answers late; its first records after the hello are no answer."""
    script, now = Script(20 * MS, 0), START
    hello, answer, more = Mark.CLIENT_HELLO, Mark.SERVER_HELLO, Mark.ENCRYPTED
    for end, wait_us, mark in (
        *((0, 0, hello), (1, late_us, answer), (1, 1 * MS, more), (0, 25 * MS, more)),
        *((0, 1 * MS, more), (1, 40 * MS, more), (1, 1 * MS, more)),
    ):
        now += wait_us
        script.data(end, now, 500, marks=int(mark))
        script.hears(1 - end)
    return script


def test_parts_of_tls() -> None:
    """The parts are times between records, and a late ServerHello has a sentence."""
    script = encrypted(700 * MS)
    for end in (0, 1):
        each = found(script, end)
        assert (each.tls_hello, each.tls_finish, each.tls_answer) == (0.7, 0.026, 0.041)
    assert "TLS: the ServerHello came 0.7 s after the ClientHello." in said(script, 1)
    assert table(script).numbers("tls_answer").tolist() == [0.041]
    assert "TLS" not in said(encrypted(30 * MS), 1)
    script.packets = script.packets[:5]
    assert (found(script).tls_hello, found(script).tls_finish) == (0.7, tls.NOT_REACHED)
    assert found(asking()).tls_hello == tls.NO_TLS


def test_a_server_that_answers_its_syn_again_has_no_cookie() -> None:
    """A SYN-ACK that comes again shows that the server kept the connection; nothing shows more."""
    kept, plain = asking(), asking()
    kept.packets.insert(2, kept.packets[1] | {"time_ns": 5 * MS * 1000, "ip_id": 9999})
    assert found(kept, 1).syn_cookie == 0
    assert found(plain, 1).syn_cookie in {syn_cookies.NO_SCALE, syn_cookies.ALIKE}
    assert found(plain).syn_cookie == syn_cookies.NO_ANSWER


def table(script: Script) -> Connections:
    """Return the row of a connection."""
    return Connections(measure(script.captured()))


def test_an_idle_connection_does_not_wait_for_its_server() -> None:
    """Keep-alives, a close without data, and last words before a FIN are no stalls of a server."""
    idle = asking(thinks_us=20 * MS)
    idle.data(0, 2_000 * MS, 40)
    idle.hears(1)
    idle.ack(1, 2_001 * MS)
    idle.packets.append(idle.packets[-2] | {"time_ns": 47_000 * MS * 1000, "payload_bytes": 0})
    idle.ack(1, 47_020 * MS)
    assert table(idle).words("cause")[0] == "fine"
    assert table(idle).numbers("client_wait")[0] == pytest.approx(45, abs=0.1)
    silent = Script(20 * MS, 20 * MS)
    silent.ack(1, 9_000 * MS, flags=FLAG_FIN)
    silent.ack(0, 9_020 * MS, flags=FLAG_FIN)
    assert table(silent).words("cause")[0] == "fine"
    for payload, cause in ((31, "fine"), (500, "server")):
        closed = asking(thinks_us=20 * MS)
        closed.ack(0, 500 * MS)
        closed.data(1, 6_000 * MS, payload)
        closed.ack(1, 6_001 * MS, flags=FLAG_FIN)
        assert table(closed).words("cause")[0] == cause
    late = asking(thinks_us=20 * MS)
    late.ack(0, 500 * MS)
    late.data(1, 6_000 * MS, 31)
    assert table(late).words("cause")[0] == "server"


def test_an_answer_of_another_connection_is_no_connect() -> None:
    """A SYN that meets TIME_WAIT is answered by an ACK: the connect ends with the next SYN-ACK."""
    script = asking()
    for packet in script.packets[1:]:
        packet["time_ns"] += 1_000 * MS * 1000
    script.packets[1:1] = [
        script.packets[1] | {"time_ns": 300_000, "flags": FLAG_ACK, "seq": 77, "ip_id": 901},
        script.packets[0] | {"time_ns": 400_000, "flags": FLAG_RST, "seq": 99, "ip_id": 902},
        script.packets[0] | {"time_ns": 1_000 * MS * 1000, "ip_id": 903},
    ]
    assert table(script).numbers("connect")[0] == pytest.approx(1.02, abs=0.01)


def test_data_that_stay_unanswered_are_losses() -> None:
    """Data sent again up to the end of a capture, with no packet of the other end, were lost."""
    script = Script(20 * MS, 20 * MS)
    script.packets = []
    for at in (0, 300, 900, 2100):
        script.repeat(0, START + at * MS, 1, 500)
    assert table(script).words("cause")[0] == "losses"


def black_hole(passes: int, repeats: int, payload: int = MSS, silent_s: int = 0) -> Script:
    """Make a sender whose question passes, and then full segments as well, or not."""
    script, now = Script(20 * MS, 20 * MS), START
    for passing in [300] + [MSS] * passes:
        script.data(0, now, passing)
        script.hears(1)
        script.ack(1, now + 20 * MS)
        now += 30 * MS
    now += silent_s * 1000 * MS
    first = script.data(0, now, payload)
    for _ in range(repeats):
        now += 250 * MS
        script.repeat(0, now, first, payload)
    return script


@pytest.mark.parametrize(
    ("made", "size"),
    [((0, 5), MSS), ((0, 2), 0), ((3, 5), 0), ((0, 5, 500), 0), ((0, 5, MSS, 61), 0)],
)
def test_a_black_hole_needs_repeats_of_a_size_that_never_passed(
    made: tuple[int, ...], size: int
) -> None:
    """A size that is sent three times more, while none of it ever passed, is a black hole.

    A size that every path passes is none, and neither is a connection that died in a silence.
    """
    script = black_hole(*made)
    assert found(script).mtu_black_hole == size
    assert ("path MTU black hole" in said(script)) == bool(size)


def test_keep_alives_and_idle_death() -> None:
    """Unanswered keep-alives are counted, and data after a silence that are never acknowledged."""
    script = black_hole(1, 0)
    script.hears(1)
    script.ack(1, 200 * MS)
    for number in range(3):
        script.send(0, (1000 + 1000 * number) * MS, script.next[0] - 1, ack=1, window=65_000)
    lost = script.data(0, 120_000 * MS, 100)
    for number in range(2):
        script.repeat(0, (121_000 + 1000 * number) * MS, lost, 100)
    each = found(script)
    assert (each.keepalives, each.keepalives_unanswered) == (3, 3)
    assert each.idle_death == pytest.approx(117)
    assert each.pauses == pytest.approx(119.8, abs=0.1)
    assert found(black_hole(1, 2)).idle_death == 0


def test_slow_start_ends_with_the_last_doubling() -> None:
    """Five round trips of a doubling flight, and fifteen of a constant one, are a quarter."""
    script = Script(20 * MS, 20 * MS)
    for turn in range(20):
        now = START + turn * 25 * MS
        for number in range(2 ** min(turn + 1, 5)):
            script.data(0, now + number * 10, MSS, flags=0)
        script.hears(1)
        script.ack(1, now + 20 * MS)
    each = found(script)
    assert each.slow_start_time == pytest.approx(0.1, rel=0.01)
    assert each.slow_start_share == pytest.approx(0.1 / 0.475, rel=0.01)


def test_silly_windows() -> None:
    """Segments that fill a window of 100 bytes are silly, and the last of a message is none."""
    script, now = Script(20 * MS, 20 * MS), START
    script.data(0, now, MSS)
    for _ in range(12):
        script.hears(1)
        script.ack(1, now + 20 * MS, window=100)
        now += 20 * MS
        script.data(0, now + 1, 100)
    assert found(script).silly_segments == 12
    assert "silly windows" in said(script)
    assert found(asking()).silly_segments == 0


def test_the_last_segment_lost() -> None:
    """A repair of the last segment sent is a tail loss; six of a storm are in a row."""
    script = Script(20 * MS, 20 * MS)
    first = [script.data(0, START + number * 10, MSS, flags=0) for number in range(6)]
    for number, each in enumerate(first):
        script.repeat(0, START + 300 * MS + number, each, MSS)
    assert (found(script).tail_losses, found(script).again_in_a_row) == (0, 6)
    script.hears(1)
    script.ack(1, START + 320 * MS)
    last = script.data(0, START + 321 * MS, MSS)
    script.repeat(0, START + 700 * MS, last, MSS)
    assert found(script).tail_losses == 1


def test_a_reset_with_data_untaken() -> None:
    """A client's RST after a second of silence has its time, and the payload that it left."""
    script = asking()
    now = 2_000 * MS
    script.data(1, now, MSS)
    script.send(0, now + 1000 * MS, script.next[0], ack=1, flags=FLAG_RST)
    each = found(script)
    assert (each.resets_sent, each.reset_untaken) == (1, 500 + MSS)
    assert each.reset_after == pytest.approx(1)
    assert "reset the connection and left 1,960 bytes" in said(script)
    assert found(script, 1).resets_sent == 0


def lossy(every: int, gap_us: int) -> Script:
    """Make a sender that loses a segment of every few, and has one each gap in flight."""
    script, now = Script(20 * MS, 20 * MS), START
    for number in range(400):
        first = script.data(0, now, MSS, flags=0)
        if number % every == every - 1:
            script.repeat(0, now + 5 * MS, first, MSS)
        script.hears(1)
        script.ack(1, now + 20 * MS)
        now += gap_us
    return script


def test_losses_at_a_steady_rate() -> None:
    """Steady losses without a queue are a policer's if the window is large for their number.

    A window of 20 segments that halves at each random loss loses 0.4 %, one of 2 loses 40 %.
    """
    script = lossy(20, gap_us=MS)
    each = found(script)
    assert each.loss_events == 20
    assert each.loss_rate == pytest.approx(MSS * 8 / 1000, rel=0.05)
    assert "as a policer makes them" in said(script)
    assert "policer" not in said(lossy(20, gap_us=10 * MS))
    assert "policer" not in said(lossy(100, gap_us=MS))
    for needless in ("retransmissions_spurious", "duplicates_told"):
        assert "policer" not in limit_of(vars(each) | {needless: 18}).sentence
    for packet in script.packets[400:]:
        packet["time_ns"] += 300 * MS * 1000
    assert "policer" not in said(script)


def test_an_answer_at_once_on_a_lan() -> None:
    """A server on a LAN that answers within the round trip waits for questions, not for ACKs."""
    script, now = Script(200, 0), START
    for _ in range(40):
        script.data(0, now, 400)
        script.hears(1)
        script.data(1, now + 10, 800)
        script.hears(0)
        now += 300
    each = found(script, 1)
    assert each.limited_application > 0.99
    assert each.limited_nagle == 0


def test_a_window_without_a_scale() -> None:
    """A window of 65,535 bytes carries at most 26 Mbit/s over a round trip of 20 ms."""
    each = found(asking())
    assert (each.window_scale, each.window_most) == (0, 65535)
    assert each.window_most_rate == pytest.approx(65535 * 8 / 20_000, rel=0.01)


def test_a_stall_has_its_time_and_cause() -> None:
    """The longest wait of a server's second answer is a stall by its application."""
    each = found(asking(thinks_us=1000 * MS), 1)
    assert each.stall_longest == pytest.approx(2)
    assert each.stall_cause == 0
    assert "the sender's application had nothing" in said(asking(thinks_us=1000 * MS), 1)


# After a SYN: end, time, number, acknowledgement and flags; connects, those refused and unanswered.
CONNECTS = {
    "refused": ([(1, 20, 0, 1, FLAG_RST | FLAG_ACK)], (1, 1, 0)),
    "sent again": ([(0, 1000, 0, 0, FLAG_SYN)], (1, 0, 1)),
    "reset by its own end": ([(0, 1000, 1, 0, FLAG_RST)], (1, 0, 1)),
    "probed": ([(1, 20, 0, 1, FLAG_SYN | FLAG_ACK), (0, 20, 1, 0, FLAG_RST)], (1, 0, 0)),
    "answered": ([], (1, 0, 0)),
}


@pytest.mark.parametrize("name", CONNECTS)
def test_connects(name: str) -> None:
    """A SYN that the other end answers with RST, or with nothing, counts so, in the table, too."""
    packets, counts = CONNECTS[name]
    script = asking()
    if packets:
        del script.packets[1:]
    for end, at_ms, seq, ack, flags in packets:
        script.send(end, at_ms * MS, seq, ack=ack, flags=flags)
    measured = measure(script.captured())
    (each,) = (each for each in measured.estimators if type(each).__name__ == "Connects")
    of = {d.name: v for d, v in each.of_capture(measured.tally, measured.facts).items()}
    names = ("connects", "connects_refused", "connects_unanswered")
    assert tuple(of[name] for name in names) == counts
    assert (Connections(measured).words("end")[0] in ("refused", "no answer")) == any(counts[1:])


def test_a_clock_that_is_set_back_in_the_handshake() -> None:
    """A handshake in which a clock is set back takes no negative time."""
    capture = asking().captured()
    capture.whole.time_ns[:2] += 3_600_000_000_000
    assert Connections(measure(capture)).numbers("connect")[0] == 0


def test_a_gap_beyond_64_bits_counts_as_none() -> None:
    """A gap of more ns than 64 bits hold is left out of a connection's time; the others count."""
    plain, capture = asking().captured(), asking().captured()
    plain.whole.time_ns[:] += 1
    capture.whole.time_ns[:5] -= 1 << 62
    capture.whole.time_ns[5:] += 1 << 62
    rows = [Connections(measure(each)) for each in (plain, capture)]
    gap_s = np.diff(plain.whole.time_ns)[4] / 1e9
    times = [row.numbers("time")[0] for row in rows]
    assert times[1] == pytest.approx(times[0] - gap_s)
    shares = vars(values(measure(capture), 1))
    known = [shares[name] for name in shares if name.startswith("limited_")]
    assert sum(each for each in known if not isinstance(each, str)) <= 1 + 1e-9


ECE, CWR, AE = 0x40, 0x80, 0x100
ECT_0, CE = int(Mark.ECT_0), int(Mark.ECT_0 | Mark.ECT_1)


def marked(*, accurate: bool) -> Script:
    """Make a sender of ten segments; the third and the fourth are marked."""
    script = Script(20 * MS, 20 * MS)
    for packet, bits in zip(
        script.packets, (AE | CWR | ECE, CWR if accurate else ECE), strict=False
    ):
        packet["flags"] |= bits
    for number in range(10):
        now = START + number * 30 * MS
        seen = min(max(number - 1, 0), 2)
        cwr = CWR if number == 4 and not accurate else 0
        script.data(0, now, MSS, marks=CE if number in {2, 3} else ECT_0, flags=PSH | cwr)
        script.hears(1)
        counter = (5 + seen) % 8
        bits = (counter & 1) * ECE | (counter >> 1 & 1) * CWR | (counter >> 2) * AE
        script.ack(
            1,
            now + 20 * MS,
            flags=bits if accurate else ECE * (number in {2, 3}),
            marks=int(Mark.ACCECN) * accurate,
        )
    return script


def test_marks_and_their_echoes() -> None:
    """Two segments with CE are counted, and so are the echoes of classic ECN and of AccECN."""
    classic, accurate = (found(marked(accurate=each)) for each in (False, True))
    for each in (classic, accurate):
        assert (each.ecn_capable, each.ecn_marked, each.ecn_marked_share) == (1, 2, 0.2)
    assert (classic.ecn_echoed, classic.ecn_reduced) == (2, 1)
    assert isinstance(classic.ecn_counted, str)
    assert (accurate.ecn_echoed, accurate.ecn_reduced, accurate.ecn_counted) == (0, 0, 2)
    assert (classic.ecn_options, accurate.ecn_options) == (0, 10)


# Packets of a connection whose source has sent five segments of 100 bytes, the last at 104 us: end,
# time, and the number that it sends, or acknowledges. Then the reasons of those sent again.
TWICE = (1, 200, 101), (1, 210, 101)
REPAIRS: dict[str, tuple[list[tuple[int, ...]], list[Repair]]] = {
    "after duplicate ACKs a repair is fast to its end": (
        [*TWICE, (0, 220, 101), (1, 300, 301), (0, 310, 301)],
        [Repair.FAST, Repair.FAST],
    ),
    "after silence a time-out starts a repair, whatever earlier ACKs reported": (
        [*TWICE, (0, 210 + 200 * MS, 101), (1, 300 * MS, 201), (0, 301 * MS, 201)],
        [Repair.TIMEOUT, Repair.TIMEOUT],
    ),
    "if a retransmission is lost, the time-out after it starts another repair": (
        [*TWICE, (0, 220, 101), (0, 219 * MS, 101), (0, 420 * MS, 101)],
        [Repair.FAST, Repair.TIMEOUT, Repair.TIMEOUT],
    ),
    "acknowledged data sent again are spurious, and start no repair": (
        [(1, 200, 501), (0, 300 * MS, 401), (0, 301 * MS, 501), (0, 302 * MS, 501)],
        [Repair.SPURIOUS, Repair.OTHER],
    ),
    "without silence or duplicate ACKs since the last new ACK the reason is another": (
        [*TWICE, (1, 220, 201), (0, 150 * MS, 401)],
        [Repair.OTHER],
    ),
    "a SACK block above its ACK reports a gap, even if the ACK is new": (
        [(1, 200, 101, 201), (0, 220, 101)],
        [Repair.FAST],
    ),
}


@each_tracker
@pytest.mark.parametrize("name", REPAIRS)
def test_reasons_for_sending_again(name: str, new_tracker: NewTracker) -> None:
    """Each segment that is sent again has the reason that the name of its case states."""
    steps, reasons = REPAIRS[name]
    talk = Conversation().handshake()
    for k in range(5):
        talk.send(0, 100 + k, 1 + 100 * k, 100, ack=1)
    for end, at, number, *block in steps:
        if block:
            talk.sack(at, number, block[0], block[0] + 100)
        elif end:
            talk.send(1, at, 1, ack=number)
        else:
            talk.send(0, at, number, 100, ack=1)
    found = talk.tracked(new_tracker()).repair
    assert [Repair(each) for each in found[found > 0].tolist()] == reasons


def test_kinds_sum_to_retransmissions() -> None:
    """Each retransmission near its sender is of one kind."""
    exchange = compressed(cycles=200)
    exchange.first = exchange.first.copy()
    exchange.first[500::97] = exchange.first[490:-10:97]
    found = values(measure(capture_of(exchange)), 0)
    kinds = ("fast", "timeout", "spurious", "other")
    counts = [getattr(found, f"retransmissions_{kind}") for kind in kinds]
    assert sum(counts) == found.retransmissions > 20


def test_elsewhere_it_cannot_be_told() -> None:
    """Near the receiver the kinds of retransmissions are undefined, but not duplicates."""
    found = values(measure(capture_of(arriving())), 0)
    assert found.duplicates_told == 0
    assert "not captured near the data's sender" in found.retransmissions_fast


@pytest.mark.parametrize(("left", "counted"), [(-200, 3), (1448, 0)])
def test_duplicate_sack_tells_of_data_twice(left: int, counted: int) -> None:
    """A first SACK block below the ACK's number reports data that arrived twice."""
    capture = capture_of(compressed())
    whole = capture.whole
    rows = np.flatnonzero(whole.half == 1)[50:53]
    whole.marks[rows] |= np.uint8(Mark.SACK)
    whole.sack_left[rows] = whole.ack[rows].astype(np.int64) + left
    whole.sack_right[rows] = whole.sack_left[rows] + 200
    assert values(measure(capture), 0).duplicates_told == counted
