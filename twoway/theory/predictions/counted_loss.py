"""The mean windows of Reno and CUBIC when one packet in N is lost (RFC 9438, section 5).

The queue never fills, so a window of W packets leaves in each round trip T. From one loss to the
next a flow sends N packets. Reno's window grows by 1 a round trip from half of its largest:

    W = sqrt(3 N / 2)

CUBIC's grows as W_max - C (K - t)^3, with C = 0.4/s^3, from B = 0.7 of its largest, which it
reaches again after K = cbrt((1 - B) W_max / C):

    W = (C (3 + B) / (4 (1 - B)))^(1/4) (N T)^(3/4)

CUBIC's window never grows slower than Reno's: if Reno's mean is larger, CUBIC's is the same. The
lost packets do not arrive.
"""

import math
from collections.abc import Callable

from twoway.contract.network import Connection
from twoway.links.loss import Loss
from twoway.theory.network import Setup

NAME = "counted_loss"
_C, _KEPT = 0.4, 0.7
# The mean window as a share of the largest.
_RENO_MEAN, _CUBIC_MEAN = 0.75, (3 + _KEPT) / 4
# The mean window and its share of the largest, by control, for one loss in N packets and a round
# trip.
Windows = Callable[[int, float], dict[str, tuple[float, float]]]


def reno_window(packets: int) -> float:
    """Compute Reno's mean window, packets, for one loss in a number of packets."""
    return math.sqrt(1.5 * packets)


def cubic_window(packets: int, trip_s: float) -> float:
    """Compute CUBIC's mean window, packets, by its cubic function alone."""
    return math.pow(_C * (3 + _KEPT) / (4 * (1 - _KEPT)) * (packets * trip_s) ** 3, 1 / 4)


def cubic_alone(packets: int, trip_s: float) -> dict[str, tuple[float, float]]:
    """Compute the mean window of a CUBIC that may grow slower than Reno."""
    return {"cubic": (cubic_window(packets, trip_s), _CUBIC_MEAN)}


def predict(setup: Setup) -> dict[str, float]:
    """Predict the throughput of each connection of Reno or CUBIC.

    Raises: ValueError as `throughputs`.
    """
    return throughputs(setup, _windows)


def printed_values(setup: Setup) -> dict[str, float]:
    """Compute the values again as printed forms: the theory is the RFC's own.

    Raises: ValueError as `predict`.
    """
    return predict(setup)


def _windows(packets: int, trip_s: float) -> dict[str, tuple[float, float]]:
    reno = reno_window(packets), _RENO_MEAN
    return {"reno": reno, "cubic": max(reno, cubic_alone(packets, trip_s)["cubic"])}


def throughputs(setup: Setup, windows: Windows) -> dict[str, float]:
    """Compute the throughput of each connection from the mean window of its control.

    Raises: ValueError with a sentence if connections share a queue, ACKs are delayed, no packet in
        a number is lost, a control has no window here, or a window fills the link.
    """
    if not setup.acks_every_segment:
        raise ValueError("is about receivers that acknowledge each segment")
    if len({each.direction for each in setup.connections}) < len(setup.connections):
        raise ValueError("is about connections alone on their links")
    return {
        f"throughput.{each.name}": _throughput(setup, each, windows) for each in setup.connections
    }


def _throughput(setup: Setup, connection: Connection, windows: Windows) -> float:
    """Compute the throughput of a connection, Mbit/s."""
    name = connection.name
    there, back = setup.links[connection.direction], setup.links[connection.ack_direction]
    loss = there.elements.find(Loss)
    if not loss or not loss.every or back.elements.lose:
        raise ValueError(f"{name} loses no data by count, or loses ACKs")
    trip_s = there.data_s + back.ack_s + (there.delay_ns + back.delay_ns) / 1e9
    known = windows(loss.every, trip_s)
    if connection.congestion not in known:
        raise ValueError(f"{name} is not of {' or '.join(known)}: {connection.congestion}")
    window, over_largest = known[connection.congestion]
    pipe = trip_s / there.data_s
    if window / over_largest > pipe:
        raise ValueError(
            f"{name} fills the link: {window / over_largest:.0f} packets of {pipe:.0f}"
        )
    arrives = window * (1 - loss.share)
    return arrives * there.data_s * there.rate_bit / trip_s / 1e6
