"""UDP alone on a link: its waiting time and its losses, in closed form.

Packets of one size that leave as a Poisson process wait as in an M/D/1 queue: for a load rho and a
transmission time S, rho S / (2 (1 - rho)) on average (Pollaczek 1930, Khinchin 1932). At a constant
rate, a full queue loses the packets that the link cannot carry: 1 - 1 / rho.
"""

from twoway.contract.network import ETHERNET_BYTES, DatagramFlow
from twoway.theory.network import Setup

NAME = "datagrams"
TESTBED = ("datagram_delay", "datagram_loss")


def predict(setup: Setup) -> dict[str, float]:
    """Predict the delay of a Poisson process, or the share of packets lost at a constant rate.

    Raises: ValueError with a sentence if a flow pauses or is a film, or is not alone in one queue.
    """
    found: dict[str, float] = {}
    for flow in setup.datagrams:
        if len(flow.directions) != 1 or flow.mean_on_s or flow.frames_per_s:
            raise ValueError(f"{flow.name} pauses, is a film, or passes several queues")
        (name,) = flow.directions
        users = [c for c in setup.connections if name in (*c.directions, *c.ack_directions)]
        if users or sum(name in each.directions for each in setup.datagrams) > 1:
            raise ValueError(f"{flow.name} is not alone in the queue {name}")
        found |= _queue_of_one_flow(flow, setup)
    return found


def _queue_of_one_flow(flow: DatagramFlow, setup: Setup) -> dict[str, float]:
    link = setup.links[flow.directions[0]]
    size = link.link.link_bytes(flow.packet_bytes + ETHERNET_BYTES)
    service_s = size * 8 / link.rate_bit
    load = service_s * flow.rate_mbit * 1e6 / (flow.packet_bytes * 8)
    if not flow.poisson:
        return {f"datagram_loss.{flow.name}": max(1 - 1 / load, 0)}
    if load >= 1:
        raise ValueError(f"{flow.name} offers {load:g} of the link's capacity: its queue grows")
    waits_s = load * service_s / (2 * (1 - load))
    return {f"datagram_delay.{flow.name}": waits_s + service_s + link.delay_ns / 1e9}
