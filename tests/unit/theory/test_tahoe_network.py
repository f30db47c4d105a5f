"""What Zhang's experiments expect of Tahoe in theory is what an independent packet model gives."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from tahoe_model import Tahoe
from tahoe_network import ENDLESS, BsdTimer, Connection, Link, LinuxTimer, Network, S

from twoway.runs.cases import load_case
from twoway.spec.point import Case, case_names
from twoway.spec.predictions import setup_of

EXPERIMENTS = ("zhang-fig2", "zhang-fig3", "zhang-fig4-5", "zhang-fig6-7")
POINTS = [point for name in EXPERIMENTS for point in case_names(name)]


def network(case: Case, timer: type[BsdTimer | LinuxTimer]) -> Network:
    """The model of an experiment's point."""
    setup = setup_of(case.experiment, case.profile, case.graph, list(case.connections))
    link = setup.links["forward"]
    through = setup.modules.get("tcp_tahoe", {}).get("slow_start") == "bsd"
    connections = [
        Connection(
            node=("forward", "reverse").index(each.direction),
            timer=timer(),
            start_ns=round(each.start_s * S),
            sender=Tahoe(1000, fast_retransmit=True, bsd=False, written=ENDLESS, through=through),
        )
        for each in setup.connections
    ]
    data_ns, ack_ns = round(link.data_s * S), round(link.ack_s * S)
    watched = (round(setup.warm_up_s * S), round(setup.duration_s * S))
    return Network(Link(data_ns, ack_ns, link.delay_ns, link.buffer_packets), connections, watched)


def drops(modelled: Network) -> list[tuple[int, int]]:
    """When packets of the watched window are dropped, and whose, in time order."""
    start_ns = modelled.watch_ns[0]
    return sorted(
        (drop.time_ns, drop.packet.connection)
        for side in modelled.sides
        for drop in side.drops
        if drop.time_ns >= start_ns
    )


@pytest.mark.parametrize("name", POINTS)
def test_model_predicts_the_experiment(name: str) -> None:
    """Utilisations and epochs expected in theory are the model's, within the tolerances stated."""
    case = load_case(name)
    modelled = network(case, LinuxTimer)
    sides = modelled.run()
    seconds = (modelled.watch_ns[1] - modelled.watch_ns[0]) / S
    longest_ns = 2 * (modelled.link.limit * modelled.link.data_ns + modelled.link.delay_ns)
    times = np.array([time for time, _ in drops(modelled)])
    starts = times[np.diff(times, prepend=-S * S) > longest_ns]
    found = {
        "utilisation.forward": sides[0].busy / S / seconds,
        "utilisation.reverse": sides[1].busy / S / seconds,
        "drops_per_epoch": len(times) / len(starts),
        "epoch_period": np.diff(starts).mean() / S,
    }
    expect = [each for entry in case.experiment.expect for each in entry.each()]
    theory = [e for e in expect if e.source == "theory" and e.metric in found]
    assert theory
    for each in theory:
        assert found[each.metric] == pytest.approx(each.value, abs=each.tolerance), each.metric


@pytest.mark.parametrize("name", case_names("zhang-fig4-5"))
def test_pairs_of_drops_by_turns(name: str) -> None:
    """In the model, too, no pair of one side's drops is next to another of its own."""
    modelled = network(load_case(name), LinuxTimer)
    modelled.run()
    victims = [connection for _, connection in drops(modelled)]
    assert victims[::2][: len(victims) // 2] == victims[1::2]
    assert all(a != b for a, b in pairwise(victims[::2]))


def test_bsd_timer_gives_the_papers_utilisation_but_not_its_pattern() -> None:
    """With 4.3BSD's timer lines are 70 % busy, and 132 of 207 epochs have two drops."""
    modelled = network(load_case("zhang-fig4-5@buffer=20"), BsdTimer)
    seconds = (modelled.watch_ns[1] - modelled.watch_ns[0]) / S
    busy = [side.busy / S / seconds for side in modelled.run()]
    assert busy == pytest.approx([0.7023, 0.7044], abs=0.0001)
    dropped = drops(modelled)
    longest_ns = 2 * (modelled.link.limit * modelled.link.data_ns + modelled.link.delay_ns)
    starts = np.diff([time for time, _ in dropped], prepend=-S * S) > longest_ns
    epochs = np.split([victim for _, victim in dropped], np.flatnonzero(starts)[1:])
    assert Counter(map(len, epochs)) == {2: 132, 3: 75}
    assert all(len(set(epoch)) == 1 for epoch in epochs)
