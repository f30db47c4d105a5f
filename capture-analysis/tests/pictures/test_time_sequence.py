"""The time-sequence graph of a connection written by hand."""

import numpy as np
import pytest
from capture_analysis.columns import FLAG_FIN, FLAG_SYN
from capture_analysis.pictures.direction import Direction
from capture_analysis.pictures.figure import Figure, Line
from capture_analysis.pictures.flight_figures import time_sequence
from capture_analysis.tracking import Tracker
from conversation import Conversation, columns, flow_table


def direction_of(talk: Conversation, half: int = 0, window_shift: int | None = 3) -> Direction:
    """Return the direction of `half`'s data."""
    packets = columns(talk.packets)
    tracked = Tracker().track(packets, flow_table(1))
    return Direction("a > b", half, 0, packets.widen(), tracked.widen(), window_shift)


def lossy() -> Conversation:
    """Make three segments; the first is lost after the tap and retransmitted."""
    talk = Conversation().handshake()
    for n in range(3):
        talk.send(0, 100 + n, 1 + 1000 * n, 1000, ack=1)
    talk.sack(200, 1, 1001, 2001)
    talk.sack(201, 1, 1001, 3001)
    talk.send(0, 300, 1, 1000, ack=1)
    talk.send(1, 400, 1, ack=3001)
    return talk


@pytest.fixture(scope="module")
def graph() -> Figure:
    """Return the graph of the lossy connection."""
    return time_sequence(direction_of(lossy()))


def line(figure: Figure, name: str) -> Line:
    """Return the trace of that name."""
    return next(each for each in figure.lines if each.name == name)


def points(trace: Line) -> list[tuple[int, ...]]:
    """Return a trace's points: microseconds, bytes and, for spans, their upper end."""
    ys = (trace.y,) if trace.top is None else (trace.y, trace.top)
    return [tuple(map(int, p)) for p in zip(np.rint(trace.x * 1e6), *ys, strict=True)]


def test_new_segments_are_bars(graph: Figure) -> None:
    """New segments are bars from their first byte to the byte after their last."""
    assert points(line(graph, "data")) == [(100, 1, 1001), (101, 1001, 2001), (102, 2001, 3001)]


def test_retransmission_has_an_r_on_top(graph: Figure) -> None:
    """A retransmission is a separate bar with an R on top."""
    assert points(line(graph, "sent again")) == [(300, 1, 1001)]
    assert points(line(graph, "R")) == [(300, 1001)]
    assert line(graph, "R").letter == "R"


def test_acknowledged_steps_begin_at_the_syn(graph: Figure) -> None:
    """The steps of acknowledged bytes begin with the SYN's acknowledgement."""
    assert points(line(graph, "acknowledged")) == [(10, 1), (400, 3001)]
    assert points(line(graph, "duplicate ACKs")) == [(200, 1), (201, 1)]


def test_only_a_syns_window_is_unscaled(graph: Figure) -> None:
    """Every window is scaled, except a SYN's."""
    assert points(line(graph, "window")) == [(10, 101), (200, 801), (400, 3801)]


def test_sack_block_is_a_bar(graph: Figure) -> None:
    """A SACK block is a bar from edge to edge."""
    assert points(line(graph, "SACK")) == [(200, 1001, 2001), (201, 1001, 3001)]


def test_unknown_scale() -> None:
    """Without the handshake no window is drawn, and the caption says why."""
    figure = time_sequence(direction_of(lossy(), window_shift=None))
    assert "window" not in [each.name for each in figure.lines]
    assert "not seen" in figure.caption


def test_syn_stands_below_first_byte(graph: Figure) -> None:
    """The handshake's SYN is an S at its sequence number, below the first byte."""
    assert points(line(graph, "SYN")) == [(0, 0)]
    talk = lossy()
    talk.send(0, 500, 3001, ack=1, flags=FLAG_FIN)
    assert points(line(time_sequence(direction_of(talk)), "FIN")) == [(500, 3001)]


def test_wrapped_numbers() -> None:
    """Sequence numbers and SACK edges that wrap continue to rise."""
    talk = Conversation(isn=((1 << 32) - 1500, 5000)).handshake()
    for n in range(3):
        talk.send(0, 100 + n, 1 + 1000 * n, 1000, ack=1)
    talk.send(1, 200, 1, ack=1001, marks=2, sack_left=501, sack_right=1501)
    figure = time_sequence(direction_of(talk))
    assert points(line(figure, "data"))[-1] == (102, 2001, 3001)
    assert points(line(figure, "SACK")) == [(200, 2001, 3001)]


def test_late_data() -> None:
    """Data that fills a hole is not marked as sent again."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1001, 1000, ack=1)
    talk.send(0, 101, 1, 1000, ack=1)
    figure = time_sequence(direction_of(talk))
    assert points(line(figure, "late data")) == [(101, 1, 1001)]
    assert "sent again" not in [each.name for each in figure.lines]


def test_other_direction() -> None:
    """A direction without data has the acknowledgement of its SYN, and no bars."""
    figure = time_sequence(direction_of(lossy(), half=1))
    assert [each.style for each in figure.lines] == ["letters", "steps", "steps"]


def test_no_packets_no_time_sequence() -> None:
    """No packets give an empty graph, not an error."""
    talk = Conversation()
    talk.send(0, 0, 0, flags=FLAG_SYN)
    figure = time_sequence(direction_of(talk, half=1))
    assert figure.lines == []
