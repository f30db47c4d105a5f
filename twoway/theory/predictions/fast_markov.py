"""The paper's Markov chain of FAST transfers that come and go.

After Ge et al. (2011), section 6 and figure 5. The chain is an average over all arrivals; a run has
one series of them. The chain gets the run's offered loads, not the rates from which the run was
drawn.
"""

from functools import cache

from twoway.theory.fast_markov import Arrivals, Fractions, fractions
from twoway.theory.network import Bottleneck, Setup

# Enough for figure 5 up to a load of 0.8: compared with 140 no fraction differs by more than
# 0.0002.
_LARGEST = 60


def predict(setup: Setup) -> dict[str, float]:
    """Predict the share of time of each direction as the bottleneck, and of an empty link.

    Raises: ValueError unless all connections are FAST transfers with one alpha, over one link.
    """
    first = setup.connections[0]
    names = (first.direction, first.ack_direction)
    links = [setup.links[name] for name in names]
    sizes: dict[str, list[float]] = {name: [] for name in names}
    for each in setup.connections:
        if each.transfer_bytes is None or each.alpha_packets != first.alpha_packets:
            raise ValueError(f"is about FAST transfers with one alpha; {each.name} is not")
        if {*each.directions, *each.ack_directions} != set(names):
            raise ValueError(
                f"is about one link with both directions; {each.name} does not pass it alone"
            )
        link = setup.links[each.direction]
        sizes[each.direction].append(each.transfer_bytes * 8 / link.payload_share)
    found = _solved(*(tuple(sizes[name]) for name in names), *links, setup.duration_s)
    return {
        f"bottleneck_time.{names[0]}": found.forward,
        f"bottleneck_time.{names[1]}": found.backward,
        "neither_busy": found.empty,
    }


@cache
def _solved(
    forward: tuple[float, ...],
    backward: tuple[float, ...],
    forward_link: Bottleneck,
    backward_link: Bottleneck,
    duration_s: float,
) -> Fractions:
    """Solve the chain for the offered loads of some transfers, bit."""
    size_bit = (sum(forward) + sum(backward)) / (len(forward) + len(backward))
    arrivals = Arrivals(
        sum(forward) / size_bit / duration_s,
        sum(backward) / size_bit / duration_s,
        size_bit,
        forward_link.rate_bit,
        backward_link.rate_bit,
        forward_link.ack_s / forward_link.data_s,
    )
    return fractions(arrivals, _LARGEST)
