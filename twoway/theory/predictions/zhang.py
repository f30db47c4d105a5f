"""Fixed windows with data in one or both directions, with and without delayed ACKs.

Predicted by the packet-level model of `tahoe`, beside the formulas of Zhang, Shenker and Clark
(1991), sections 3.1, 4.2 and 4.3.3. In these windows w1 >= w2 and the pipe P are in data packets, a
pipe of whole ones; queues count ACKs, and the packet in service. ACKs and hosts take no time,
unless stated otherwise.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from twoway.theory import tables
from twoway.theory.network import Bottleneck, Setup
from twoway.theory.tahoe.setting import outcome_of
from twoway.theory.tahoe.setting import parameters as parameters_of

NAME = "zhang"


def pipe(rate_bit: Fraction, delay_s: Fraction, packet_bit: Fraction) -> Fraction:
    """Compute P, the data packets in flight in one direction of the link (section 2.2)."""
    return rate_bit * delay_s / packet_bit


def one_way_queue(windows: int, pipe_packets: Fraction) -> int:
    """Compute q, between which and q + 1 the queue of one-way traffic alternates (section 3.1).

    Args:
        windows: sum of all windows.
        pipe_packets: P.
    """
    return max(0, math.floor(windows - 2 * pipe_packets))


def out_of_phase(w1: int, w2: int, pipe_packets: Fraction) -> bool:
    """Tell whether queues are out of phase: one link is never idle (section 4.3.3).

    Out of phase, only the second link is idle at times; otherwise the queues are in phase. ACKs
    have no length.
    """
    return w1 > w2 + 2 * pipe_packets


def out_of_phase_peaks(w1: int, w2: int, ack_share: Fraction) -> tuple[Fraction, Fraction]:
    """Compute both queues' peaks over a short pipe, from the chronology of section 4.2.

    The peaks are w1 + w2, everything in one queue, and w2 (1 - RD/RA) + 1: while the w2 data
    arrive with the rate of ACKs, some leave with their own.

    Args:
        w1: the larger window.
        w2: the smaller window.
        ack_share: RD/RA, transmission time of an ACK over that of data.
    """
    return Fraction(w1 + w2), w2 * (1 - ack_share) + 1


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
