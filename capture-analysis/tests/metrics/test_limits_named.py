"""The causes named for transfers against the truth of simulated captures."""

import pytest
from capture_analysis.metrics.utilisation import OTHER_PACE
from capture_analysis.one_capture.limit import CANNOT_TELL, LINK, limit_of
from capture_analysis.one_capture.single import measure
from limits_confusion import cases, is_right
from measured_captures import values
from simulated_path import Connection, Link, Simulation

pytestmark = pytest.mark.slow


def test_causes_are_true() -> None:
    """For 80 % of directions a cause is named, from each place, and 90 % of these are right."""
    found = list(cases(2, seed=7))
    named = [each for each in found if each.said != CANNOT_TELL]
    assert len(named) >= 0.8 * len(found)
    assert sum(map(is_right, named)) >= 0.9 * len(named)
    for place in ("near", "middle", "far"):
        there = [is_right(each) for each in named if each.place == place]
        assert sum(there) >= 0.85 * len(there) > 0


def test_transfers_that_pause_in_turn_fill_a_link() -> None:
    """A link that others fill while a transfer pauses is full, and its use is at most 1.

    Two transfers of one sender each pause for two of four seconds, in turn.
    """
    simulation = Simulation(
        (Link(1e7), Link(1e8)),
        [
            Connection(begin_ns=begin_ns, write=1600, write_ns=4_000_000_000, segments=4800)
            for begin_ns in (0, 2_000_000_000)
        ],
        "far",
    )
    measured = measure(simulation.run().captured())
    found = [values(measured, direction) for direction in (0, 2)]
    assert all(each.pauses > 3 for each in found)
    assert all(0.9 < each.link_use <= 1 for each in found)
    assert [limit_of(vars(each)).cause for each in found] == [LINK, LINK]


def test_link_that_changes_its_rate() -> None:
    """If a full link becomes four times as fast, its use is unknown, and no cause is named.

    On a link with one rate, a window smaller than the path is named.
    """
    changes = Link(1e6, 500_000, 500_000, change_ns=10**10, changed_bit=4e6, changed_ns=10**7)
    found = [
        values(measure(Simulation((link, Link(1e8)), [transfer], "far").run().captured()), 0)
        for link, transfer in (
            (changes, Connection(window=2, announced=1 << 20, segments=3000, tick_ns=0)),
            (Link(1e7, 20_000_000), Connection(window=10, announced=1 << 20, tick_ns=0)),
        )
    ]
    assert found[0].link_use == OTHER_PACE
    assert found[1].link_use < 0.9
    assert [limit_of(vars(each)).cause for each in found] == [CANNOT_TELL, "sender"]
