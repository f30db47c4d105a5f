"""Harm: the loss of a connection beside others compared with being alone.

    harm = (x - y) / x    where more is better, such as goodput
    harm = (y - x) / y    where less is better, such as a round trip

x is the metric's value alone, y beside others (Ware, Mukerjee, Seshan, Sherry 2019, "Beyond Jain's
Fairness Index"): 0 if nothing changes, 1 if all is lost, negative if the connection gains. A sweep
computes it for each point from the point with the connection alone: a point that differs in one
axis only, with the same connection, links and stack. At the point with the connection alone the
harm is 0.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from capture_analysis.definition import Definition
from capture_analysis.metrics.goodput import GOODPUT
from capture_analysis.metrics.retransmissions import RETRANSMITTED
from capture_analysis.metrics.round_trip_time import RTT_MEDIAN, RTT_P95

from twoway.contract.metrics import Metric, Metrics
from twoway.contract.network import Connection
from twoway.manifest import Manifest
from twoway.measure.metrics.completion import COMPLETION_TIME

Measured = tuple[Manifest, Metrics]
_SOURCE = "Ware, Mukerjee, Seshan, Sherry 2019"
# Fields of a connection in a manifest that depend on its place among others.
_OF_ITS_PLACE = {"source_port", "port"}


class Harm(NamedTuple):
    """Harm in one metric of connections."""

    definition: Definition
    of: Definition
    less_is_better: bool

    def compute(self, alone: Metric, beside: Metric) -> Metric:
        """Compute the harm, with the error of both; null if undefined."""
        better, worse = (alone, beside) if self.less_is_better else (beside, alone)
        value = error = None
        if better.value is not None and worse.value is not None:
            if better.value == worse.value:
                value = 0.0
            elif worse.value:
                value = 1 - better.value / worse.value
            if worse.value and better.error is not None and worse.error is not None:
                relative = abs(better.value / worse.value)
                error = (better.error + relative * worse.error) / abs(worse.value)
        exact = better.error == worse.error == 0
        return Metric(value=value, unit="1", error=0.0 if exact else error)


def _harm(of: Definition, *, less_is_better: bool) -> Harm:
    meaning = f"harm in {of.name}: how much worse than alone, as a share"
    defined = Definition(f"harm_{of.name}", "1", meaning, _SOURCE, least=-math.inf, most=1)
    return Harm(defined, of, less_is_better)


HARMS = (
    _harm(GOODPUT, less_is_better=False),
    _harm(COMPLETION_TIME, less_is_better=True),
    _harm(RTT_MEDIAN, less_is_better=True),
    _harm(RTT_P95, less_is_better=True),
    _harm(RETRANSMITTED, less_is_better=True),
)


def with_harm(runs: Mapping[str, Measured]) -> dict[str, Measured]:
    """Add the harm to each connection that one run has alone, to metrics by the point's name."""
    single = [
        (manifest, metrics)
        for manifest, metrics in runs.values()
        if len(manifest.connections) == 1 and not manifest.datagrams and not manifest.programs
    ]
    if len(single) in (0, len(runs)):
        return dict(runs)
    return {
        name: (manifest, metrics.model_copy(update={"metrics": {**metrics.metrics, **found}}))
        for name, (manifest, metrics) in runs.items()
        for found in [dict(_harms(manifest, metrics, single))]
    }


def _harms(
    manifest: Manifest, metrics: Metrics, single: Sequence[Measured]
) -> Iterable[tuple[str, Metric]]:
    for connection in manifest.connections:
        found = [m for there, m in single if _is_alone(manifest, connection, there)]
        if len(found) == 1:
            for harm in HARMS:
                name = f"{harm.of.name}.{connection.name}"
                alone = found[0].metrics[name]
                if alone.value is not None:
                    value = harm.compute(alone, metrics.metrics[name])
                    yield f"{harm.definition.name}.{connection.name}", value


def _is_alone(manifest: Manifest, connection: Connection, there: Manifest) -> bool:
    """Tell whether a run with one connection equals this run without its other connections."""
    axes = [axis for axis, value in manifest.point.items() if there.point.get(axis) != value]
    (other,) = there.connections
    return (
        len(axes) == (len(manifest.connections) > 1)
        and other.model_dump(exclude=_OF_ITS_PLACE) == connection.model_dump(exclude=_OF_ITS_PLACE)
        and there.profile == manifest.profile
        and there.experiment.stack == manifest.experiment.stack
        and there.experiment.hosts == manifest.experiment.hosts
    )
