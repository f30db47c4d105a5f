"""The ACK compression factor: spacing sent over spacing on arrival.

The spacing sent is that of data, which is that of ACKs without compression.
"""

import math

import numpy as np
from capture_analysis import ack_compression

from twoway.measure.analysis import Analysis, ConnectionView
from twoway.measure.metric import Scope

SCOPE = Scope.CONNECTION
UNITS = {
    "compression_factor": "1",
    "compression_factor_bound": "1",
}


def measure(analysis: Analysis, view: ConnectionView) -> dict[str, float]:
    """Return the median, and the upper bound if neither link's rate changes."""
    del analysis
    factors = ack_compression.compression_factors(view.acks, view.data_service_ns)
    bounded = view.data_service_ns and view.ack_service_ns and view.has_one_rate
    return {
        "compression_factor": float(np.median(factors)) if len(factors) else math.nan,
        "compression_factor_bound": ack_compression.factor_bound(
            view.data_service_ns, view.ack_service_ns
        )
        if bounded
        else math.nan,
    }
