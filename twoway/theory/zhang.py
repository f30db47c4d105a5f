"""Fixed windows over a bottleneck, one way and two ways, as the paper has them.

After Zhang, Shenker and Clark (1991), sections 3.1, 4.2 and 4.3.3.

Windows w1 >= w2 and the pipe P are in data packets; queues count ACKs, and the packet in service.
ACKs and hosts take no time here, unless stated otherwise.
"""

import math
from fractions import Fraction


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
