"""Fixed windows over a half-duplex link that always has a packet waiting at either end.

With a gap g, turns of n packets, and t_d and t_a for the bits of a data packet and an ACK, n data
packets and n ACKs take

    n (t_d + t_a) + 2 g

if both ends' turns are full: what one end has sent more than the other, it has waiting less. With
turns of one packet each packet pays its gap, whoever sends it, so that a data packet with its
share of an ACK (1/2 with delayed ACKs) takes t_d + g + (t_a + g) / 2. Two-way traffic changes
nothing of that: what a packet takes does not depend on what else its end has to send. Connections
with equal windows have the same round trip, hence the same throughput. But their ACKs wait behind
data, and then pass together, at both ends at the same time: if that takes less than the data that
the first of them releases are under way, the medium is idle meanwhile: without a gap, and with
delayed ACKs, `half-duplex` contradicts this theory, which knows nothing of that.

In a full turn ACKs that came t_d apart leave t_a apart, n together.
"""

from twoway.contract.links import BehindQueue, Delay
from twoway.contract.links.medium import Medium
from twoway.theory.network import Setup

NAME = "half_duplex"
# So many times the packets that the medium and the delays hold keep a packet waiting at each end.
_AMPLE = 2


def predict(setup: Setup) -> dict[str, float]:
    """Predict throughput and the shares of the medium; of ACKs in turns, bunches and compression.

    Raises: ValueError with a sentence if the link has a medium for each direction, if windows
        differ, change, are too small or overflow a queue, or if delayed ACKs have turns of several
        packets.
    """
    medium, window = _covered(setup)
    turn = medium.turn_packets
    acks = 1 if setup.acks_every_segment else 0.5
    gap_s = medium.gap_ns / 1e9 / turn
    held_s = dict.fromkeys(setup.links, 0.0)
    for each in setup.connections:
        held_s[each.direction] += setup.links[each.direction].data_s + gap_s
        held_s[each.ack_direction] += acks * (setup.links[each.ack_direction].ack_s + gap_s)
    # A data packet of each connection, with its ACKs.
    round_s = sum(held_s.values())
    _check_busy(setup, turn, window * acks, round_s)
    found = {f"medium_busy.{name}": held / round_s for name, held in held_s.items()}
    for each in setup.connections:
        link, back = setup.links[each.direction], setup.links[each.ack_direction]
        found[f"throughput.{each.name}"] = link.data_s * link.rate_bit / round_s / 1e6
        if len(setup.connections) == 1:
            found[f"ack_bunch_max.{each.name}"] = turn
            if turn > 2:
                found[f"compression_factor.{each.name}"] = link.data_s / back.ack_s
    return found


def _covered(setup: Setup) -> tuple[Medium, int]:
    """Return the medium and the window of each connection.

    Raises: ValueError with a sentence if the theory does not cover links or connections.
    """
    medium = setup.medium
    if medium is None:
        raise ValueError("each direction has a medium of its own")
    if setup.datagrams or len({each.window_packets for each in setup.connections}) != 1:
        raise ValueError("it has connections with the same window and nothing else")
    if any(len(each.directions) + len(each.ack_directions) != 2 for each in setup.connections):
        raise ValueError("it has one link")
    if any(link.elements.has(BehindQueue, Delay) for link in setup.links.values()):
        raise ValueError("its delays are constant, and it loses no packets")
    window = setup.connections[0].window_packets
    if window is None or any(each.paced for each in setup.connections):
        raise ValueError("its windows are fixed, and full of data")
    if medium.turn_packets > 1 and not setup.acks_every_segment:
        raise ValueError("with turns of several packets each segment is acknowledged")
    windows = window * len(setup.connections)
    if windows > min(link.buffer_packets for link in setup.links.values()):
        raise ValueError(f"windows of {windows} packets overflow a queue")
    return medium, window


def _check_busy(setup: Setup, turn: int, acks: float, round_s: float) -> None:
    """Check that windows are large enough to keep the medium busy.

    Args:
        setup: the experiment's parameters.
        turn: packets of a turn at most.
        acks: ACKs of a window.
        round_s: what a data packet of each connection takes, with its ACKs.
    """
    count = len(setup.connections)
    delays_s = [link.delay_ns / 1e9 for link in setup.links.values()]
    # A turn at each end, and what is under way meanwhile.
    least = _AMPLE * (2 * turn + sum(delays_s) / round_s * count)
    if acks * count < least:
        raise ValueError(
            f"windows with {acks * count:g} ACKs may leave the medium idle; {least:.0f} do not"
        )
