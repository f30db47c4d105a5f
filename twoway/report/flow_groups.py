"""Flows of one name: `count: 3` makes cubic-1 to cubic-3, which a sweep shows as cubic-*."""

import re
from collections.abc import Sequence
from statistics import fmean

from twoway.contract.metrics import Metric, Metrics
from twoway.contract.network import Connection

_NUMBERED = re.compile(r"-[1-9]\d*$")


def flow_groups(connections: Sequence[Connection]) -> dict[str, list[Connection]]:
    """List groups of alike connections, by their name with "*" in place of their number."""
    found: dict[str, list[Connection]] = {}
    for each in connections:
        if _NUMBERED.search(each.name):
            found.setdefault(_NUMBERED.sub("-*", each.name), []).append(each)
    return {
        name: group
        for name, group in found.items()
        if len(group) > 1
        and len({(c.direction, c.congestion, c.transfer_bytes is None) for c in group}) == 1
    }


def as_groups(connections: Sequence[Connection]) -> list[Connection]:
    """Replace each group's connections by one with the group's name."""
    of = {each.name: name for name, group in flow_groups(connections).items() for each in group}
    named = {of.get(each.name, each.name): each for each in connections}
    return [each.model_copy(update={"name": name}) for name, each in named.items()]


def with_groups(metrics: Metrics, connections: Sequence[Connection]) -> Metrics:
    """Add the mean of each group's metrics, such as goodput.cubic-*; undefined if a part is."""
    every = dict(metrics.metrics)
    families = {name.partition(".")[0] for name in every}
    for group, members in flow_groups(connections).items():
        for family in sorted(families):
            found = [every.get(f"{family}.{each.name}") for each in members]
            parts = [each for each in found if each]
            if len(parts) == len(members):
                every[f"{family}.{group}"] = _mean(parts)
    return metrics.model_copy(update={"metrics": every})


def metrics_of(metrics: Metrics, wanted: str) -> dict[str, Metric]:
    """Select a metric by its name, or a family's, in which a group's mean stands for its flows."""
    every = metrics.metrics
    if wanted in every:
        return {wanted: every[wanted]}
    return {
        name: metric
        for name, metric in every.items()
        if name.partition(".")[0] == wanted
        and not (_NUMBERED.search(name) and _NUMBERED.sub("-*", name) in every)
    }


def _mean(parts: list[Metric]) -> Metric:
    values = [each.value for each in parts if each.value is not None]
    errors = [each.error for each in parts if each.error is not None]
    return Metric(
        value=fmean(values) if len(values) == len(parts) else None,
        unit=parts[0].unit,
        error=fmean(errors) if len(errors) == len(parts) else None,
    )
