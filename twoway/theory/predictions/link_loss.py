"""Gilbert's model of a link with bursts of losses, and independent losses.

A share p of all packets is lost, in bursts of b on average (1960). Without bursts the next packet
is lost with the same probability p, which makes bursts of 1 / (1 - p).
"""

from twoway.links.loss import Loss
from twoway.theory.network import Setup

NAME = "link_loss"
TESTBED = ("link_loss", "link_loss_burst", "link_loss_deviation", "link_loss_burst_deviation")


def predict(setup: Setup) -> dict[str, float]:
    """Predict share and mean burst for each connection with losses only on its data's link.

    Raises: ValueError with a sentence if a connection passes several links, or one that loses
        packets by count or by a schedule.
    """
    found = {}
    for each, loss in setup.with_element(Loss):
        if not 0 < loss.share < 1 or not loss.percent:
            raise ValueError(f"{each.direction} loses no constant share of packets by chance")
        found[f"link_loss.{each.name}"] = loss.share
        found[f"link_loss_burst.{each.name}"] = loss.mean_burst
        found[f"link_loss_deviation.{each.name}"] = 0
        found[f"link_loss_burst_deviation.{each.name}"] = 0
    return found
