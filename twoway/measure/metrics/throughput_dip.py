"""The dip of a connection's throughput: the largest fall for a second.

Ge et al. (2011), section 5.2, see "negative pulses" of FAST's throughput beside films. The steady
window is cut into parts of one second; a shorter rest is left out.
"""

import math

import numpy as np
from capture_analysis.definition import Definition

from twoway.measure.analysis import Analysis
from twoway.measure.connection_view import ConnectionView
from twoway.measure.metric import Scope, estimates

_PART_NS = 1_000_000_000
THROUGHPUT_DIP = Definition(
    "throughput_dip",
    "1",
    "difference between the mean throughput and the lowest of any second, as a share of the mean",
    "Ge et al. 2011, section 5.2",
    most=1,
)


@estimates(Scope.CONNECTION, THROUGHPUT_DIP)
def throughput_dip(analysis: Analysis, view: ConnectionView) -> tuple[float, ...]:
    """Measure data at the receiver; NaN for windows below two seconds and without data."""
    run = analysis.run
    parts = run.window_ns // _PART_NS
    data = run.select_steady(view.segments_in)
    if parts < 2 or not len(data):
        return (math.nan,)
    edges = run.steady_ns + np.arange(parts + 1) * _PART_NS
    sizes = view.forward.queue.link_bytes(data.frame_bytes)
    each, _ = np.histogram(data.time_ns, edges, weights=sizes)
    return (float(1 - each.min() / each.mean()),)
