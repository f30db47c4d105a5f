"""The pictures of two captures, from packets with known fates."""

import numpy as np
from capture_analysis.pictures.figure import Figure, Line
from capture_analysis.pictures.queue_figures import Crossing, one_way_delay, queues, spacing_change

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
