"""Nodes that share the slots of a DTM bus, with windows that never let a channel idle.

A channel follows the rate of arrivals, which is that of its departures, and asks for margin and
half a corridor more, so it always wants more slots than it has. No slots are free, and the node
that started first holds all that the others do not own or keep. A channel that has never had
traffic keeps its initial slots.
"""

import math

from twoway.links.dtm import Channel
from twoway.theory.dtm import SLOT_BIT
from twoway.theory.network import Setup


def predict(setup: Setup) -> dict[str, float]:
    """Predict each node's slots and rate long after the last flow has started.

    Raises: ValueError for anything but fixed windows that fill one channel each of one pool.
    """
    flows = sorted(setup.connections, key=lambda flow: flow.start_s)
    links = [setup.links[flow.direction] for flow in flows]
    found = [link.elements.find(Channel) for link in links]
    channels = [channel for channel in found if channel]
    pools = {channel.pool for channel in channels}
    (pool,) = pools if len(pools) == 1 and len(channels) == len(links) else (None,)
    if pool is None:
        raise ValueError("is about channels of one pool, a flow each")
    slots = [_slots_left(channel) for channel in channels]
    slots[0] = setup.pools[pool] - sum(slots[1:])
    predicted: dict[str, float] = {}
    for flow, link, held in zip(flows, links, slots, strict=True):
        rate_bit = held * SLOT_BIT
        pipe = (link.delay_ns + setup.links[flow.ack_direction].delay_ns) / 1e9 / link.data_s
        pipe *= rate_bit / link.rate_bit
        if not flow.window_packets or flow.window_packets < math.ceil(pipe) + 1:
            raise ValueError(f"is about fixed windows above the pipe; {flow.name} is not")
        name = flow.direction
        predicted |= {f"slots_min.{name}": held, f"slots_max.{name}": held}
        predicted[f"utilisation.{name}"] = 1
        predicted[f"throughput.{flow.name}"] = rate_bit / 1e6
    return predicted


def _slots_left(channel: Channel) -> int:
    """Return the slots that a node keeps if another node has taken all others before."""
    return max(channel.owned_slots, channel.slots)
