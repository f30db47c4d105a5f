"""Connections that share a link, and those that do not, in captures of simulated paths."""

from dataclasses import replace

import numpy as np
import pytest
from capture_analysis.columns import concatenate
from capture_analysis.facts.facts import Evidence, Facts
from capture_analysis.flow_table import FlowTable
from capture_analysis.one_capture.single import measure
from measured_captures import ColumnCapture
from simulated_path import Connection, Link, Place, Simulation


def download(
    rate_bit: float, place: Place, *hosts: int, begin_ns: int = 0, window: int = 60
) -> ColumnCapture:
    """Simulate transfers to hosts behind one link."""
    links = Link(rate_bit, 5_000_000, 5_000_000), Link(rate_bit, 5_000_000, 5_000_000)
    transfers = [
        Connection(
            hosts=host, window=window, segments=800, begin_ns=begin_ns + 700_000 * number, every=2
        )
        for number, host in enumerate(hosts)
    ]
    return Simulation(links, transfers, place).run().captured()


def merged(*captures: ColumnCapture) -> ColumnCapture:
    """Merge captures of different hosts into one."""
    rows, tables, flows = [], [], 0
    for each in captures:
        rows.append(replace(each.whole, flow=each.whole.flow + np.uint32(flows)))
        tables.append(each.flows.rows)
        flows += len(each.flows)
    whole = concatenate(rows)
    order = np.argsort(whole.time_ns, kind="stable")
    return ColumnCapture(whole.where(order), FlowTable(np.concatenate(tables)))


def facts(capture: ColumnCapture) -> Facts:
    """Return the facts of a capture."""
    return measure(capture).facts


@pytest.mark.parametrize("place", ["near", "middle", "far"])
def test_clients_of_one_server_have_rates_of_their_own(place: Place) -> None:
    """Two clients behind links of 7 and 40 Mbit/s have the rates that each has alone."""
    slow, fast = download(7e6, place, 1), download(40e6, place, 2, begin_ns=1_234_567)
    found = facts(merged(slow, fast))
    alone = [facts(slow), facts(fast)]
    assert [each.rate_bit[0] for each in alone] == pytest.approx([7e6, 40e6], rel=0.01)
    assert found.rate_bit[::2].tolist() == pytest.approx([7e6, 40e6], rel=0.01)
    # The slow path's pace of ACKs may be a share of the fast one's link.
    assert found.rate_evidence[2] == alone[1].rate_evidence[0]
    assert Evidence.GUESSED <= found.rate_evidence[0] <= alone[0].rate_evidence[0]
    assert found.link[[0, 2]].tolist() == [-1, -1]


@pytest.mark.parametrize("place", ["near", "far"])
def test_a_link_to_several_hosts_is_shared(place: Place) -> None:
    """Transfers to different hosts that follow each other at one pace share a link."""
    found = facts(download(20e6, place, 1, 2, 3))
    assert found.link[::2].tolist() == [0, 0, 0]
    assert found.rate_bit[::2].tolist() == pytest.approx([20e6] * 3, rel=0.01)


def test_one_of_three_paths_has_another_link() -> None:
    """Two of three clients share a link, and the third has a rate of its own."""
    capture = merged(download(20e6, "far", 1, 2), download(3e6, "far", 3, begin_ns=1_234_567))
    found = facts(capture)
    assert found.rate_bit[::2].tolist() == pytest.approx([20e6, 20e6, 3e6], rel=0.01)


def test_connections_of_a_path_share_its_link() -> None:
    """Connections between two hosts have a number, whatever others the capture has."""
    found = facts(merged(download(20e6, "far", 1, 1), download(3e6, "far", 3, begin_ns=1_234_567)))
    assert found.link[0] == found.link[2] >= 2
    assert found.link[4] == -1
    assert found.rate_bit[[0, 2, 4]].tolist() == pytest.approx([20e6, 20e6, 3e6], rel=0.01)


def test_a_train_that_the_path_spreads_measures_its_link() -> None:
    """Data sent together whose ACKs keep a pace measure a link, though nothing ever pauses."""
    assert facts(download(8e6, "near", 1, window=30)).rate_evidence[0] == Evidence.MEASURED
