"""A constant window over changing delays, without a queue: one window in each round trip.

Throughput is the window over the sum of the transmissions of a segment and an ACK and both delays.
"""

import numpy as np

from twoway.links.delay import ChangingDelay
from twoway.theory.network import Setup

NAME = "changing_delay"
TESTBED = ("throughput",)


def predict(setup: Setup) -> dict[str, float]:
    """Predict the mean throughput of each connection, between the schedule's changes.

    Raises: ValueError with a sentence if a connection has no constant window or constant delay.
    """
    found = {}
    start, stop = (round(s * 1e9) for s in (setup.warm_up_s, setup.duration_s))
    for each in setup.connections:
        there, back = setup.links[each.direction], setup.links[each.ack_direction]
        changing = [link.elements.find(ChangingDelay) for link in (there, back)]
        tables = [delay.table for delay in changing if delay]
        if not each.window_packets or len(tables) < len(changing):
            raise ValueError(f"{each.name} has no constant window, or no delay that changes")
        edges = np.unique(np.concatenate([table.laps(0, start, stop)[0] for table in tables]))
        edges = np.clip(np.append(edges, stop), start, stop)
        delays = [table.value_at(0, edges[:-1]) for table in tables]
        trip_s = there.data_s + back.ack_s + sum(delays) / 1e9
        bit = each.window_packets * there.data_s * there.rate_bit / trip_s
        found[f"throughput.{each.name}"] = float(np.average(bit, weights=np.diff(edges))) / 1e6
    return found
