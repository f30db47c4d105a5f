"""ACK spacing: spacing on arrival over spacing when sent.

Zhang et al. (1991); Paxson (1997).
"""

import math

import numpy as np
from capture_analysis import ack_compression

from twoway.measure.analysis import Analysis, ConnectionView
from twoway.measure.metric import Scope

SCOPE = Scope.CONNECTION
UNITS = {
    "ack_spacing_ratio": "1",
    "acks_compressed": "1",
}


def measure(analysis: Analysis, view: ConnectionView) -> dict[str, float]:
    """Return the ratio's median and the share of ratios below 0.75."""
    del analysis
    ratio = ack_compression.ack_spacing_ratio(view.acks.sent_ns, view.acks.arrived_ns)
    ratio = ratio[~np.isnan(ratio)]
    if not len(ratio):
        return dict.fromkeys(UNITS, math.nan)
    compressed = ratio < ack_compression.COMPRESSED_BELOW
    return {"ack_spacing_ratio": float(np.median(ratio)), "acks_compressed": compressed.mean()}
