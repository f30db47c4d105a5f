"""The mean window of CUBIC's cubic function alone when one packet in N is lost.

The same as `counted_loss` (RFC 9438, section 5), without the region in which CUBIC grows as fast as
Reno (section 4.3), which Linux leaves out if tcp_cubic's parameter tcp_friendliness is 0:

    W = (C (3 + B) / (4 (1 - B)))^(1/4) (N T)^(3/4)
"""

from twoway.theory.network import Setup
from twoway.theory.predictions.counted_loss import cubic_alone, throughputs

NAME = "counted_loss_cubic"


def predict(setup: Setup) -> dict[str, float]:
    """Predict the throughput of each connection of CUBIC.

    Raises: ValueError as `counted_loss.throughputs`.
    """
    return throughputs(setup, cubic_alone)
