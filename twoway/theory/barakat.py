"""TCP with several bottleneck nodes, after Barakat and Altman (1999).

The main bottleneck sends mu packets/s; nodes before it send mu_1 > mu_2 > ... > mu_n > mu, all
below 2 mu, the rate of slow start's bursts. A burst fills each queue at the difference of the
rates before and behind it:

    S_i = in_i B_i / (in_i - mu_i)      packets, in_1 = 2 mu, in_i = mu_(i-1)

Mini-cycle k of slow start sends a burst of 2^k, so that the smallest of them, S_B, is reached in
the one with 2^(n_B - 1) < S_B <= 2^n_B, at a window of W_B = 2^(n_B - 1) + S_B/2.

The paper approximates 2^n_B by 2B, and writes 2^(n'_B - 1) by 2B' where its own result,
B' > (mu T + B)/4, has 2^n'_B. Rates may be in any one unit.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Node:
    """A node with its queue.

    Attributes:
        rate: at which it sends.
        buffer_packets: that may wait in it.
    """

    rate: float
    buffer_packets: float


def slowing(nodes: Sequence[Node], main: Node) -> list[Node]:
    """Those of the nodes before the main one in which bursts can queue, in order.

    They are slower than all before them, below 2 mu and above mu: the paper's chain.
    """
    kept: list[Node] = []
    fastest = 2 * main.rate
    for node in nodes:
        if main.rate < node.rate < fastest:
            kept.append(node)
            fastest = node.rate
    return kept


def filling_bursts(nodes: Sequence[Node], main: Node) -> list[float]:
    """S_1 .. S_n and S: the burst that fills each node's queue, the main one's last; packets.

    Args:
        nodes: as `slowing` has them.
        main: the main bottleneck.

    Raises: ValueError if rates do not fall from 2 mu to mu.
    """
    chain = [*nodes, main]
    before = [2 * main.rate, *(node.rate for node in nodes)]
    bursts = []
    for rate, node in zip(before, chain, strict=True):
        if node.rate >= rate:
            raise ValueError(f"rates must fall from twice the last, got {node.rate} after {rate}")
        bursts.append(rate * node.buffer_packets / (rate - node.rate))
    return bursts


def loss_cycle(burst: float) -> int:
    """n_B: the mini-cycle of slow start whose burst first reaches so many packets."""
    # Bursts are quotients of rates: a power of two must not become more by rounding.
    return max(math.ceil(math.log2(round(burst, 6))), 0)


def loss_window(burst: float) -> float:
    """W_B: the window at which slow start fills a queue that needs such a burst."""
    return (2.0 ** loss_cycle(burst) + burst) / 2


def largest_window(pipe: float, main: Node) -> float:
    """W_max = mu T + B, at which congestion avoidance overflows the main queue.

    Of several nodes of the same rate the first is the main one: that is the paper's figure 2.
    """
    return pipe + main.buffer_packets


def avoidance_rate(window: float, main: Node) -> float:
    """R_CA, at which avoidance sends above a window of mu T.

    A node before the main one that is slower takes a part of the queue.
    """
    return main.rate * (window + 1) / window


def loses_in_slow_start(pipe: float, nodes: Sequence[Node], main: Node) -> bool:
    """Whether a queue overflows before the window reaches half of W_max."""
    smallest = min(filling_bursts(nodes, main))
    return largest_window(pipe, main) / 2 >= loss_window(smallest)


def equivalent(nodes: Sequence[Node], main: Node) -> Node:
    """The one node before the main one with which bursts do as with all of them.

    It sends as fast as the last, mu' = mu_n, and the smallest of S_1..S_n fills it.

    Raises: ValueError without nodes.
    """
    if not nodes:
        raise ValueError("there are no nodes to replace")
    rate = nodes[-1].rate
    smallest = min(filling_bursts(nodes, main)[:-1])
    return Node(rate, smallest * (2 * main.rate - rate) / (2 * main.rate))


def uniform_chain(count: int, buffer_packets: float, main: Node) -> list[Node]:
    """Figure 4's nodes, mu_i = 2 mu - i mu / (n + 1).

    Their S_i are B_i (2 (n + 1) - (i - 1)), and S is B (n + 2).
    """
    step = main.rate / (count + 1)
    return [Node(2 * main.rate - i * step, buffer_packets) for i in range(1, count + 1)]


def is_safe(pipe: float, main_packets: float, upstream_packets: float) -> bool:
    """Whether slow start loses nothing at any mu' from mu to 2 mu (figure 6).

    The paper's exact condition, of S >= 2B and S' >= 2B': mu T + B < 2^n_B + 2B for each buffer.
    """
    largest = pipe + main_packets
    return all(largest < 2 * loss_window(2 * buffer) for buffer in (main_packets, upstream_packets))


def least_buffers(pipe: float, main_packets: float) -> tuple[float, float]:
    """Figure 6's region, with 2^n_B for 2B: B above the first, B' above the second; packets."""
    return pipe / 3, (pipe + main_packets) / 4
