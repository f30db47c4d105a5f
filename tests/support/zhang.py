"""Fixed windows over a two-way bottleneck.

After Zhang, Shenker and Clark (1991), sections 4.2 and 4.3.3.

Windows w1 >= w2 and the pipe P are in data packets; queues count ACKs, and the packet in service.
"""

from fractions import Fraction


def out_of_phase(w1: int, w2: int, pipe: Fraction) -> bool:
    """Tell whether queues are out of phase: one link is never idle.

    Out of phase, only the second link is idle at times; otherwise the queues are in phase. ACKs
    have no length.
    """
    return w1 > w2 + 2 * pipe


def out_of_phase_peaks(w1: int, w2: int, ack_share: Fraction) -> tuple[Fraction, Fraction]:
    """Compute both queues' peaks over a short pipe.

    The peaks are w1 + w2 and w2 (1 - RD/RA) + 1.

    Args:
        w1: the larger window.
        w2: the smaller window.
        ack_share: RD/RA, transmission time of an ACK over that of data.
    """
    return Fraction(w1 + w2), w2 * (1 - ack_share) + 1
