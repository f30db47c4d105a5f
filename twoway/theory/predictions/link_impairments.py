"""Uniform jitter, packets that overtake, and copies, all independent for each packet.

A uniform delay of D +- J has the standard deviation J / sqrt(3). On a busy link, with a packet
always on its path, each packet without delay overtakes another.
"""

import math

from twoway.links.impairments import Impairments
from twoway.theory.network import Setup

NAME = "link_impairments"
TESTBED = ("link_copies", "link_jitter", "link_overtaking")


def predict(setup: Setup) -> dict[str, float]:
    """Predict the effects, except loss, of each connection's only link on its data.

    Raises: ValueError with a sentence if a connection passes several links.
    """
    found = {}
    for each, given in setup.with_element(Impairments):
        found[f"link_copies.{each.name}"] = given.duplicate_percent / 100
        found[f"link_jitter.{each.name}"] = given.jitter_ms / math.sqrt(3)
        if not given.jitter_reorders:
            found[f"link_overtaking.{each.name}"] = given.reorder_percent / 100
    return found
