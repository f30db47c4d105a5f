"""A constant window over delays that change, with no queue: a window in each round trip.

Throughput is the window over the sum of the transmissions of a segment and an ACK and both delays.
"""

import numpy as np

from twoway.theory.network import Setup
from twoway.theory.timetable import delay_table

NAME = "changing_delay"


def predict(setup: Setup) -> dict[str, float]:
    """Predict the mean throughput of each connection, between the schedule's changes.

    Raises: ValueError with a sentence if a connection has no constant window or constant delay.
    """
    found = {}
    start, stop = (round(s * 1e9) for s in (setup.warm_up_s, setup.duration_s))
    for each in setup.connections:
        there, back = setup.links[each.direction], setup.links[each.ack_direction]
        if not (each.window_packets and "delay" in there.elements.keys() & back.elements.keys()):
            raise ValueError(f"{each.name} has no constant window, or delays that never change")
        tables = [delay_table(link.elements["delay"]) for link in (there, back)]
        edges = np.unique(np.concatenate([table.laps(0, start, stop)[0] for table in tables]))
        edges = np.clip(np.append(edges, stop), start, stop)
        delays = [table.value_at(0, edges[:-1]) for table in tables]
        trip_s = there.data_s + back.ack_s + sum(delays) / 1e9
        bit = each.window_packets * there.data_s * there.rate_bit / trip_s
        found[f"throughput.{each.name}"] = float(np.average(bit, weights=np.diff(edges))) / 1e6
    return found
