"""The pictures of one direction and of two captures, whose answers are known by construction."""

from dataclasses import replace

import measured_captures as made
import numpy as np
import pytest
from capture_analysis.columns import FLAG_SYN, Mark
from capture_analysis.one_capture.single import measure
from capture_analysis.pictures.capture_figures import (
    NAMES,
    compressed_moment,
    figure,
    figures,
    note,
)
from capture_analysis.pictures.figure import Figure, Line
from capture_analysis.pictures.queue_figures import Crossing, one_way_delay, queues, spacing_change
from capture_analysis.pictures.selection import Selected, select

# The pictures of one direction, of captures whose answers are known by construction.

CYCLES, WINDOW, BUNCH = 50, 20, 8
# The pictures of a capture without ECN.
UNMARKED = [name for name in NAMES if name != "marks"]


def selected_of(exchange: made.Exchange, budget: int = 300_000, chunk: int = 1 << 16) -> Selected:
    """Return the direction of an exchange's data."""
    capture = made.capture_of(exchange)
    capture.chunk = chunk
    (found,) = select(capture, measure(capture), [0], budget)  # type: ignore[arg-type]
    return found


@pytest.fixture(scope="module")
def compressed() -> Selected:
    """Make a sender's capture of 50 cycles; 8 of the 20 ACKs of each come back to back."""
    return selected_of(made.compressed(cycles=CYCLES, window=WINDOW, bunch=BUNCH))


def line(drawn: Figure, name: str) -> Line:
    """Return the trace of that name."""
    return next(each for each in drawn.lines if each.name == name)


def test_all_pictures(compressed: Selected) -> None:
    """Every picture can be drawn by its name in the command."""
    assert [each.id for each in figures(compressed)] == UNMARKED
    assert note(compressed) == ""


def test_ack_spacing(compressed: Selected) -> None:
    """The last seven gaps of each cycle are an ACK's time and drawn as bunched."""
    drawn = figure(compressed, "ack-spacing")
    bunched = line(drawn, "bunched ACKs")
    assert len(bunched.y) == CYCLES * (BUNCH - 1)
    assert np.unique(bunched.y).tolist() == [made.ACK_NS / 1e6]
    assert len(line(drawn, "ACKs").y) == CYCLES * WINDOW - 1 - len(bunched.y)
    pace = line(drawn, "a segment's transmission")
    assert pace.y == pytest.approx(made.SEGMENT_NS / 1e6, rel=0.02)
    assert drawn.log_y


def test_compression_factors(compressed: Selected) -> None:
    """The curve rises at 1 and at the bound, a segment's time over an ACK's, up to 100 %."""
    drawn = figure(compressed, "compression-cdf")
    acks, bound = line(drawn, "ACKs"), line(drawn, "bound")
    share = CYCLES * (BUNCH - 1) / (CYCLES * WINDOW - 1)
    highest = made.SEGMENT_NS / made.ACK_NS
    assert acks.y[-1] == 100
    assert (acks.x > 0.9 * highest).mean() == pytest.approx(share, abs=0.002)
    assert acks.x[-1] == pytest.approx(highest, rel=0.02)
    # The bound is for a link that adds no header to an IP packet.
    assert bound.x[0] == pytest.approx((made.FRAME - 14) / (made.ACK_FRAME - 14), rel=1e-6)


def test_eight_acks_travel_in_a_bunch(compressed: Selected) -> None:
    """In each cycle eight ACKs travel in a bunch, and the others singly."""
    (bars,) = figure(compressed, "bunches").lines
    assert bars.x.tolist() == [1, BUNCH]
    assert bars.y.tolist() == pytest.approx([60.0, 40.0], abs=0.01)


def test_in_flight(compressed: Selected) -> None:
    """The flight never exceeds the window of segments."""
    drawn = figure(compressed, "in-flight")
    assert line(drawn, "in flight").y.max() == WINDOW * made.MSS


def test_far_window_is_not_drawn(compressed: Selected) -> None:
    """A receiver's window far above the flight is mentioned, not drawn."""
    far = replace(compressed, direction=replace(compressed.direction, window_shift=7))
    packets = replace(compressed.direction.packets, window=compressed.direction.packets.window // 2)
    direction = replace(compressed.direction, packets=packets, window_shift=0)
    near = replace(compressed, direction=direction)
    drawn = figure(far, "in-flight")
    assert [each.name for each in drawn.lines] == ["in flight"]
    assert f"{60000 << 7:,} bytes" in drawn.caption
    assert [each.name for each in figure(near, "in-flight").lines][1:] == ["receiver's window"]


def test_goodput_of_payload_throughput_of_frames(compressed: Selected) -> None:
    """Goodput includes all new payload, and throughput all frames."""
    drawn = figure(compressed, "rates")
    payload, frames = (line(drawn, name).y[:-1] for name in ("goodput", "throughput"))
    width = np.diff(line(drawn, "goodput").x)
    segments = (CYCLES + 1) * WINDOW
    assert (payload * width).sum() * 1e6 == pytest.approx(8 * made.MSS * segments, rel=1e-4)
    assert (frames * width).sum() * 1e6 == pytest.approx(8 * made.FRAME * segments, rel=1e-4)


def test_opens_on_a_bunch(compressed: Selected) -> None:
    """Detailed pictures open on a range with a bunch, shorter than the capture."""
    view = compressed_moment(compressed.direction)
    assert view is not None
    bunched = line(figure(compressed, "ack-spacing"), "bunched ACKs").x
    assert ((bunched > view[0]) & (bunched < view[1])).any()
    assert view[1] - view[0] < bunched[-1] / 2
    assert figure(compressed, "time-sequence").view == view


def test_unknown_rates(compressed: Selected) -> None:
    """Without rates there is neither bound nor bunch; the rest is drawn."""
    direction = replace(compressed.direction, data_service_ns=None, ack_service_ns=None, bound=None)
    drawn = [each.id for each in figures(replace(compressed, direction=direction))]
    assert drawn == ["time-sequence", "ack-spacing", "in-flight", "rtt", "rates"]


def test_most_compressed_part_is_kept() -> None:
    """Only the most compressed part of a long connection is kept, and the page says so."""
    calm, busy = made.compressed(bunch=0), made.compressed(bunch=BUNCH)
    later_ns = int(calm.ack_ns[-1] - busy.data_ns[0]) + 10_000_000
    both = made.Exchange(
        np.concatenate((calm.data_ns, busy.data_ns + later_ns)),
        1 + made.MSS * np.arange(len(calm.data_ns) + len(busy.data_ns)),
        np.concatenate((calm.ack_ns, busy.ack_ns + later_ns)),
        1 + made.MSS * np.arange(1, len(calm.ack_ns) + len(busy.ack_ns) + 1),
    )
    budget = 500
    found = selected_of(both, budget)
    assert len(found.direction.packets) == budget < found.total
    assert found.first >= len(calm.ack_ns) + len(calm.data_ns)
    assert f"{budget} of the connection's {found.total:,} packets" in note(found)
    rest = line(figure(found, "time-sequence"), "the rest")
    assert np.nanmin(rest.y) == 1
    assert np.nanmax(rest.y) == both.first[-1] + made.MSS
    start, stop = found.direction.seconds(np.array([0, -1]))
    assert np.isnan(rest.y[(rest.x > start) & (rest.x < stop)]).all()
    assert [each.id for each in figures(found)] == UNMARKED


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_chunks_do_not_matter(chunk: int) -> None:
    """The kept part does not depend on where chunks end."""
    exchange = made.compressed(cycles=10)
    whole, parts = selected_of(exchange, 100), selected_of(exchange, 100, chunk)
    assert parts.first == whole.first
    for name in ("packets", "tracked"):
        mine, theirs = getattr(parts.direction, name), getattr(whole.direction, name)
        for column in vars(mine):
            assert getattr(mine, column).tolist() == getattr(theirs, column).tolist()
    assert parts.overview.new_bytes.tolist() == whole.overview.new_bytes.tolist()


def test_silence_before_the_transfer_is_not_shown() -> None:
    """After a greeting and 20 s of silence, pictures over time open where data resumes.

    The first ACK's spacing, which began before the silence, is left out.
    """
    exchange = made.compressed(cycles=CYCLES, window=WINDOW, bunch=BUNCH)
    for times_ns in (exchange.data_ns, exchange.ack_ns):
        times_ns[1:] += 20_000_000_000
    selected = selected_of(exchange)
    for name in ("ack-spacing", "rtt", "rates"):
        drawn = figure(selected, name)
        assert drawn.view is None or 19.9 < drawn.view[0] < 20.1
        assert drawn.view is not None or min(each.x.min() for each in drawn.lines) > 19.9
    assert line(figure(selected, "ack-spacing"), "ACKs").y.max() < 1000


def test_marks(compressed: Selected) -> None:
    """Segments with CE, ACKs with ECE and AccECN's counter are drawn over time if there are any."""
    direction = compressed.direction
    every = np.flatnonzero(direction.data())[::10]
    packets = replace(direction.packets, marks=direction.packets.marks.copy())
    packets.marks[every] |= int(Mark.ECT_0 | Mark.ECT_1)
    drawn = figure(replace(compressed, direction=replace(direction, packets=packets)), "marks")
    counted = line(drawn, "segments with CE")
    assert counted.y.tolist() == list(range(1, len(every) + 1))
    assert figure(compressed, "marks").lines == []
    flags = direction.packets.flags.copy()
    flags[np.flatnonzero(flags & FLAG_SYN)] |= np.array([7, 2]) << 6
    acks = np.flatnonzero(direction.pure_acks())
    flags[acks] |= (5 + np.arange(len(acks)) // 4 & 7) << 6
    with_counter = replace(direction, packets=replace(direction.packets, flags=flags))
    (drawn_count,) = figure(replace(compressed, direction=with_counter), "marks").lines
    assert drawn_count.name == "CE counted by AccECN's ACKs"
    assert drawn_count.y.tolist() == [n // 4 for n in range(len(acks))]


# The pictures of two captures, from packets with known fates.

MS = 1_000_000


def crossing(entered_ms: list[float], left_ms: list[float], propagation_ms: int = 0) -> Crossing:
    """Make pure ACKs of one connection, from 1 s after the origin."""
    entered, left = (
        1000 * MS + np.rint(np.array(times) * MS).astype(np.int64)
        for times in (entered_ms, left_ms)
    )
    acks, lane = np.ones(len(entered), dtype=np.bool_), np.zeros(len(entered), dtype=np.int64)
    return Crossing("A to B", 0, entered, left, propagation_ms * MS, acks, lane)


def points(figure: Figure, name: str = "A to B") -> list[tuple[float, float]]:
    """Return a trace's points, with time in ms from the first second on."""
    (trace,) = (each for each in figure.lines if each.name == name)
    return list(zip(_ms(trace), trace.y.tolist(), strict=True))


def _ms(trace: Line) -> list[float]:
    return np.round(trace.x * 1e3 - 1000, 6).tolist()  # type: ignore[no-any-return]


def test_delay_drawn_over_entry_time() -> None:
    """A packet's delay beyond the shortest is drawn over its time of entry."""
    figure = one_way_delay([crossing([0, 1, 2], [5, 7, 7])])
    assert points(figure) == [(0, 0), (1, 1), (2, 0)]


def test_packets_queue_until_propagation_begins() -> None:
    """A packet queues from its entry until the propagation delay before its exit."""
    figure = queues([crossing([0, 0, 3], [5, 6, 8], propagation_ms=4)], view=(1.0, 1.1))
    assert points(figure) == [(0, 2), (1, 1), (2, 0), (3, 1), (4, 0)]
    assert figure.view == (1.0, 1.1)


def test_queue_never_negative() -> None:
    """A packet that leaves before it enters, by the clocks, does not count."""
    assert points(queues([crossing([0, 2], [1, 4], propagation_ms=2)])) == [(0, 0), (2, 0)]


def test_spacing_points_leave_out_ties() -> None:
    """Each pair of successive ACKs is a point; simultaneous ones are left out."""
    figure = spacing_change([crossing([0, 10, 20, 30], [100, 101, 111, 111])])
    (trace,) = (each for each in figure.lines if each.name == "ACKs A to B")
    assert trace.x.tolist() == [10, 10]
    assert trace.y.tolist() == [1, 10]
    assert [each.name for each in figure.lines][1:] == ["kept", "compressed below"]


def test_pictures_begin_with_the_traffic() -> None:
    """A few packets before a long silence are out of the first view, and make no spacing."""
    late = [*np.arange(20_000, 21_000, 1.0)]
    early = crossing([0, *late], [5, *(each + 5 for each in late)])
    delay = one_way_delay([early])
    assert delay.view is not None
    assert np.allclose(delay.view, (21 - 0.03 * 0.999, 21.999 + 0.03 * 0.999))
    assert spacing_change([early]).lines[0].x.tolist() == [1.0] * 999
    short = crossing([0, *late[:50]], [5, *(each + 5 for each in late[:50])])
    assert one_way_delay([short]).view is None  # one of 51 packets is more than a little


def test_no_packets_no_queue_figure() -> None:
    """Without packets nothing is drawn."""
    assert [f([]).lines for f in (one_way_delay, queues, spacing_change)] == [[], [], []]
