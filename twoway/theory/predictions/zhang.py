"""Fixed windows with data in one or both directions, with and without delayed ACKs.

Predicted by the packet-level model of `tahoe`, beside the formulas of Zhang, Shenker and Clark
(1991). The paper's formulas leave out the time of ACKs, and assume a pipe of whole packets.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from twoway.theory import tables
from twoway.theory.network import Bottleneck, Setup
from twoway.theory.tahoe.setting import outcome_of
from twoway.theory.tahoe.setting import parameters as parameters_of
from twoway.theory.zhang import one_way_queue, out_of_phase, out_of_phase_peaks, pipe

NAME = "zhang"


def predict(setup: Setup) -> dict[str, float]:
    """Predict the metrics of a run.

    Raises: ValueError with a sentence if the model does not cover the setup.
    """
    return tables.look_up(NAME, parameters(setup)) or compute(setup)


def printed_values(setup: Setup) -> dict[str, float]:
    """Compute the paper's formulas.

    With data in one direction they give the queue's peak, q + 1. With data in both directions, out
    of phase, they give both peaks if the pipe is shorter than a packet. With an ACK for every
    segment, a cluster is a window.
    """
    forms = {}
    if setup.acks_every_segment:
        forms = {f"cluster_mean.{c.name}": float(c.window_packets or 0) for c in setup.connections}
    ways = sorted({each.direction for each in setup.connections})
    windows = {
        direction: sum(c.window_packets or 0 for c in setup.connections if c.direction == direction)
        for direction in ways
    }
    if len(ways) == 1:
        q = one_way_queue(windows[ways[0]], _pipe(setup.links[ways[0]]))
        return {**forms, f"queue_peak.{ways[0]}": float(q + 1)}
    larger, smaller = sorted(ways, key=lambda direction: -windows[direction])
    there = _pipe(setup.links[larger])
    w1, w2 = windows[larger], windows[smaller]
    if setup.acks_every_segment and there < 1 and out_of_phase(w1, w2, there):
        link = setup.links[larger]
        share = Fraction(str(link.ack_s)) / Fraction(str(link.data_s))
        first, second = out_of_phase_peaks(w1, w2, share)
        forms |= {f"queue_peak.{larger}": float(first), f"queue_peak.{smaller}": float(int(second))}
    return forms


def parameters(setup: Setup) -> Mapping[str, Any]:
    """Collect the parameters that the model needs from a setup."""
    return parameters_of(setup)


def compute(setup: Setup) -> dict[str, float]:
    """Run the model.

    Raises: ValueError as `predict`.
    """
    return outcome_of(setup).metrics()


def _pipe(link: Bottleneck) -> Fraction:
    """Compute P, from the transmission time of a packet."""
    return pipe(Fraction(1), Fraction(link.delay_ns, 10**9), Fraction(str(link.data_s)))
