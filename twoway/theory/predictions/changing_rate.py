"""A link whose rate changes by a table, with one connection that always has a packet waiting.

The link's capacity is used up, apart from what the edges of the window cut off: throughput is the
mean rate, and the efficiency 1.
"""

from twoway.links.rate import Rate
from twoway.theory.network import Setup

NAME = "changing_rate"
TESTBED = ("throughput", "efficiency")


def predict(setup: Setup) -> dict[str, float]:
    """Predict throughput and efficiency of each connection that is alone on such a link.

    Raises: ValueError with a sentence if a connection is not alone on such a link.
    """
    found = {}
    for each in setup.connections:
        rate = setup.links[each.direction].elements.find(Rate)
        if len([c for c in setup.connections if c.direction == each.direction]) > 1 or not rate:
            raise ValueError(f"{each.name} is not alone on a link whose rate changes")
        start, stop = (round(s * 1e9) for s in (setup.warm_up_s, setup.duration_s))
        offered = rate.table.offered_bytes(0, start, stop)
        found[f"throughput.{each.name}"] = offered * 8e3 / (stop - start)
        found[f"efficiency.{each.name}"] = 1.0
    return found
