"""Experiments with all that they refer to, checked, the names of metrics included.

Names of metrics are those that are measured, and a spec knows nothing of measuring.
"""

from twoway.measure.metric import metric_names
from twoway.spec import point


def load_case(name: str) -> point.Case:
    """Read an experiment, or a point of one (see `twoway.spec.point.load_case`)."""
    return point.load_case(name, metric_names)
