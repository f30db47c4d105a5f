"""TCP with several bottleneck nodes, after Barakat and Altman (1999).

The main bottleneck sends mu packets/s; nodes before it send mu_1 > mu_2 > ... > mu_n > mu, all
below 2 mu, the rate of slow start's bursts. A burst fills each queue at the difference of the rates
before and behind it:

    S_i = in_i B_i / (in_i - mu_i)      packets, in_1 = 2 mu, in_i = mu_(i-1)

Mini-cycle k of slow start sends a burst of 2^k, so the smallest of the S_i, S_B, is reached in the
mini-cycle n_B with 2^(n_B - 1) < S_B <= 2^n_B, at a window of W_B = 2^(n_B - 1) + S_B/2.

The paper approximates 2^n_B by 2B. It says that it replaces 2^(n'_B - 1) by 2B', but its result, B'
> (mu T + B)/4, follows from replacing 2^n'_B. All rates have the same unit.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Node:
    """A node with its queue.

    Attributes:
        rate: its sending rate.
        buffer_packets: the most packets that may wait in its queue.
    """

    rate: float
    buffer_packets: float


def slow_nodes(nodes: Sequence[Node], main: Node) -> list[Node]:
    """Select the nodes in which bursts can queue, in order.

    These are the nodes before the main one that are each slower than all before them, below 2 mu
    and above mu: the paper's chain.
    """
    kept: list[Node] = []
    fastest = 2 * main.rate
    for node in nodes:
        if main.rate < node.rate < fastest:
            kept.append(node)
            fastest = node.rate
    return kept


def filling_bursts(nodes: Sequence[Node], main: Node) -> list[float]:
    """Compute the bursts that fill each node's queue, packets.

    S_1 .. S_n of the nodes, then S of the main bottleneck.

    Args:
        nodes: nodes before the main bottleneck, as `slow_nodes` returns them.
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
    """Compute n_B, slow start's first mini-cycle with such a burst.

    Args:
        burst: packets.
    """
    # Bursts are quotients of rates: rounding must not lift one above a power of two.
    return max(math.ceil(math.log2(round(burst, 6))), 0)


def loss_window(burst: float) -> float:
    """Compute W_B, the window at which slow start fills a queue.

    Args:
        burst: the burst that fills the queue, packets.
    """
    return (2.0 ** loss_cycle(burst) + burst) / 2


def largest_window(pipe: float, main: Node) -> float:
    """Compute W_max = mu T + B, at which avoidance overflows the queue.

    If several nodes have the same rate, the first is the main one, as in the paper's figure 2.
    """
    return pipe + main.buffer_packets


def loses_in_slow_start(pipe: float, nodes: Sequence[Node], main: Node) -> bool:
    """Tell whether a queue overflows before the window reaches half of W_max."""
    smallest = min(filling_bursts(nodes, main))
    return largest_window(pipe, main) / 2 >= loss_window(smallest)


def is_safe(pipe: float, main_packets: float, upstream_packets: float) -> bool:
    """Tell whether slow start loses no packets at any mu' (figure 6).

    The rate mu' is any from mu to 2 mu. The paper's exact condition follows from S >= 2B and
    S' >= 2B': mu T + B < 2^n_B + 2B for each buffer.
    """
    largest = pipe + main_packets
    return all(largest < 2 * loss_window(2 * buffer) for buffer in (main_packets, upstream_packets))


def least_buffers(pipe: float, main_packets: float) -> tuple[float, float]:
    """Compute figure 6's approximate region, which replaces 2^n_B by 2B.

    Returns: lower bounds of B and of B', packets.
    """
    return pipe / 3, (pipe + main_packets) / 4
