"""Throughput of Tahoe or Reno through several nodes.

After Barakat and Altman (1999).
"""

import math

from twoway.contract.network import Connection
from twoway.theory.barakat import Node, filling_bursts, loses_in_slow_start, loss_window, slow_nodes
from twoway.theory.network import Bottleneck, Setup
from twoway.theory.window_cycle import Cycle, Path, reno_cycle, tahoe_cycle

# Linux's retransmission timer is a steady round trip plus this value, the default of `rto_min_ms`.
_LEAST_TIMEOUT_S = 0.2


def predict(setup: Setup) -> dict[str, float]:
    """Predict a flow's throughput and cycle, and its link's utilisation.

    Each packet counts once: packets that slow start sends again after its own losses do not count.
    After such losses, which are many, Tahoe waits for its timer; tahoe_rto's wait after every loss
    is neglected.

    Raises: ValueError if there are several flows, or one with another congestion control.
    """
    if len(setup.connections) != 1:
        raise ValueError(f"is about one flow, got {len(setup.connections)}")
    (flow,) = setup.connections
    link = setup.links[flow.direction]
    cycle = flow_cycle(setup, flow)
    share = cycle.rate * link.data_s
    mbit = share * link.rate_bit / 1e6
    return {
        f"efficiency.{flow.name}": share,
        f"throughput.{flow.name}": mbit,
        f"goodput.{flow.name}": mbit * link.payload_share,
        f"utilisation.{flow.direction}": share,
        f"sawtooth_efficiency.{flow.name}": share,
        f"sawtooth_period.{flow.name}": cycle.duration_s,
        f"window_peak.{flow.name}": cycle.path.largest_window,
    }


def flow_cycle(setup: Setup, flow: Connection) -> Cycle:
    """Compute a flow's cycle on its path.

    The nodes before the main bottleneck matter to Tahoe's slow start only. A queue's limit counts
    the packet in transmission, the paper's B does not.

    Raises: ValueError for congestion controls other than Tahoe and Reno.
    """
    links = [setup.links[name] for name in flow.directions]
    main = flow.directions.index(flow.direction)
    path = Path(1 / links[main].data_s, _trip_s(setup, flow), _node(links[main]).buffer_packets)
    if flow.congestion == "reno":
        return reno_cycle(path)
    if flow.congestion not in ("tahoe", "tahoe_rto"):
        raise ValueError(f"is about tahoe and reno, not {flow.congestion}")
    bottleneck = _node(links[main])
    nodes = slow_nodes([_node(link) for link in links[:main]], bottleneck)
    lost = math.inf
    if loses_in_slow_start(path.pipe, nodes, bottleneck):
        lost = loss_window(min(filling_bursts(nodes, bottleneck)))
    # tahoe_rto finds the first loss by its timer and sends everything again from there, as ns-2's
    # Tahoe.
    timer_s = path.trip_s + _LEAST_TIMEOUT_S if flow.congestion == "tahoe" else None
    return tahoe_cycle(path, lost, timer_s)


def overflow_window(setup: Setup, flow: Connection) -> float:
    """Compute W_B, the window at which slow start's burst fills a queue."""
    links = [setup.links[name] for name in flow.directions]
    main = flow.directions.index(flow.direction)
    bottleneck = _node(links[main])
    nodes = slow_nodes([_node(link) for link in links[:main]], bottleneck)
    return loss_window(min(filling_bursts(nodes, bottleneck)))


def _node(link: Bottleneck) -> Node:
    return Node(1 / link.data_s, link.buffer_packets - 1)


def _trip_s(setup: Setup, flow: Connection) -> float:
    """Compute the round trip of a packet and its ACK without queues, s."""
    there = [setup.links[name] for name in flow.directions]
    back = [setup.links[name] for name in flow.ack_directions]
    forward_s = sum(link.delay_ns / 1e9 + link.data_s for link in there)
    return forward_s + sum(link.delay_ns / 1e9 + link.ack_s for link in back)
