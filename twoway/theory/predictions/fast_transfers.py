"""The bottleneck while FAST transfers come and go.

After Ge et al. (2011), section 6.
"""

from twoway.theory.fast import Direction
from twoway.theory.fast_transfers import Stretch, Transfer, delays, stretches
from twoway.theory.network import Setup


def predict(setup: Setup) -> dict[str, float]:
    """Predict the share of time of each direction as the bottleneck.

    Times are shares of the steady window.

    Raises: ValueError unless all connections are FAST transfers with one alpha, over one link.
    """
    first = setup.connections[0]
    names = (first.direction, first.ack_direction)
    links = [setup.links[name] for name in names]
    transfers = []
    for each in setup.connections:
        if each.transfer_bytes is None or each.alpha_packets != first.alpha_packets:
            raise ValueError(f"is about FAST transfers with one alpha; {each.name} is not")
        if {*each.directions, *each.ack_directions} != set(names):
            raise ValueError(
                f"is about one link with both directions; {each.name} does not pass it alone"
            )
        direction = Direction(names.index(each.direction))
        size_bit = each.transfer_bytes * 8 / links[direction].payload_share
        transfers.append(Transfer(direction, each.start_s, size_bit))
    capacity_bit = (links[0].rate_bit, links[1].rate_bit)
    ack_share = links[0].ack_s / links[0].data_s
    held_s = [0.0, 0.0]
    for stretch in stretches(transfers, capacity_bit, ack_share):
        forward, backward = delays(stretch.flows, capacity_bit, ack_share)
        if forward != backward:
            held_s[backward > forward] += _part_in_window(stretch, setup)
    window_s = setup.duration_s - setup.warm_up_s
    return {
        f"bottleneck_time.{name}": held / window_s for name, held in zip(names, held_s, strict=True)
    }


def _part_in_window(stretch: Stretch, setup: Setup) -> float:
    """Compute the part of a stretch that lies in the steady window, s."""
    start_s, stop_s = max(stretch.start_s, setup.warm_up_s), min(stretch.stop_s, setup.duration_s)
    return max(stop_s - start_s, 0.0)
