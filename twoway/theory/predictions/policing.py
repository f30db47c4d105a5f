"""UDP at a constant rate through a policer: its token bucket, packet by packet (RFC 2475)."""

import numpy as np

from twoway.contract.network import ETHERNET_BYTES, START_NS, mean_interval_ns
from twoway.links.policer import Policer
from twoway.theory.network import Setup

NAME = "policing"
TESTBED = ("policed", "datagram_loss", "queue_peak")


def predict(setup: Setup) -> dict[str, float]:
    """Predict the share that the policer drops, and the queue, where packets never meet.

    Raises: ValueError with a sentence if a flow is not at a constant rate, or more than the link's.
    """
    if len(setup.datagrams) != 1 or setup.connections:
        raise ValueError("it has one UDP flow and nothing else")
    (flow,) = setup.datagrams
    if len(flow.directions) != 1 or flow.poisson or flow.mean_on_s or flow.frames_per_s:
        raise ValueError(f"{flow.name} is random or a film, or passes several queues")
    (name,) = flow.directions
    link, size = setup.links[name], flow.packet_bytes + ETHERNET_BYTES
    policer = link.elements.find(Policer)
    if policer is None:
        raise ValueError(f"the queue {name} has no policer before it")
    interval_ns = mean_interval_ns(flow.packet_bytes, flow.rate_mbit)
    sent_ns = np.arange(flow.start_ns, flow.stop_ns, interval_ns)
    if link.link.link_bytes(size) * 8e9 / link.rate_bit >= interval_ns:
        raise ValueError(f"{flow.name} has a rate above the link's")
    steady = sent_ns >= START_NS + setup.warm_up_s * 1e9
    refused = policer.bucket.refuses(sent_ns, np.full(len(sent_ns), size))
    share = float(refused[steady].mean())
    return {
        f"policed.{name}": share,
        f"datagram_loss.{flow.name}": share,
        f"queue_peak.{name}": 1.0,
    }
