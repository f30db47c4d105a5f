"""Distribution of the sizes of ACK bunches."""

import numpy as np

from capture_analysis.ack_compression import BUNCH_SERVICE_TIMES, bunch_sizes
from capture_analysis.columns import IntArray
from capture_analysis.pictures.direction import Direction
from capture_analysis.pictures.figure import Figure, Line


def bunch_bars(name: str, sizes: IntArray, colour: int) -> Line:
    """Make bars of the share of ACKs, %, that travel in a bunch of each size.

    Args:
        name: name in the legend.
        sizes: number of ACKs in each bunch.
        colour: number in the palette.
    """
    values, counts = np.unique(sizes, return_counts=True)
    share = 100.0 * values * counts / max(sizes.sum(), 1)
    return Line(name, values.astype(np.float64), share, "bars", colour)


def bunches(direction: Direction) -> Figure:
    """Draw the sizes of a direction's ACK bunches.

    There are no lines if the rate of the ACKs' bottleneck is unknown.
    """
    lines = []
    if direction.ack_service_ns is not None:
        arrived_ns = direction.packets.time_ns[direction.pure_acks()]
        sizes = bunch_sizes(arrived_ns, direction.ack_service_ns)
        lines.append(bunch_bars("ACKs", sizes, 1))
    return Figure(
        "bunches",
        "ACK bunch sizes",
        "Share of the acknowledgements that come in a bunch of each size; bunched means spaced by "
        f"at most {BUNCH_SERVICE_TIMES} ACK transmission times. A bunch lets the sender release "
        "as many segments at once.",
        "acks in a bunch",
        "share of ACKs, %",
        [line for line in lines if len(line.x)],
    )
