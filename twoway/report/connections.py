"""Runs of many connections: those that are shown one by one, and the distributions of all.

A page of a thousand lines is useless. If there are more than MANY connections of a kind, transfers
that end or lasting ones, pages and pictures show the WORST one by one, and all as distributions.
"""

import math
from dataclasses import dataclass

import numpy as np
from capture_analysis.definition import Definition
from capture_analysis.metrics.fairness import JAIN_INDEX
from capture_analysis.metrics.goodput import GOODPUT
from capture_analysis.pictures.figure import Figure, FloatArray, Line

from twoway.contract.judge import Verdict
from twoway.contract.metrics import FidelityRow, Metrics
from twoway.contract.network import Connection
from twoway.measure.analysis import Analysis
from twoway.measure.metric import Scope
from twoway.measure.metrics.completion import COMPLETION_TIME
from twoway.measure.registry import of_scope

MANY = 16
WORST = 10


@dataclass(frozen=True)
class Spread:
    """The distribution of a metric over the connections that have it."""

    definition: Definition
    connections: int
    least: float
    median: float
    p95: float
    most: float


def shown_names(connections: tuple[Connection, ...], metrics: Metrics) -> list[str]:
    """List the connections that are shown one by one, the worst of a kind first.

    The worst transfers are the incomplete ones, then the slowest; the worst lasting connections are
    those with least goodput.
    """
    lasting = [each.name for each in connections if each.transfer_bytes is None]
    transfers = [each.name for each in connections if each.transfer_bytes is not None]
    if len(lasting) <= MANY and len(transfers) <= MANY:
        return [each.name for each in connections]
    return [
        *(lasting if len(lasting) <= MANY else _least(lasting, GOODPUT, 1, metrics)),
        *(transfers if len(transfers) <= MANY else _least(transfers, COMPLETION_TIME, -1, metrics)),
    ]


def _least(names: list[str], definition: Definition, sign: int, metrics: Metrics) -> list[str]:
    """List the WORST connections by a metric times a sign, undefined values first."""

    def rank(name: str) -> float:
        value = metrics.metrics[f"{definition.name}.{name}"].value
        return -math.inf if value is None else sign * value

    return sorted(names, key=rank)[:WORST]


def metrics_of(names: list[str]) -> set[str]:
    """List the names of all metrics of some connections."""
    definitions = [
        d.name for estimator in of_scope(Scope.CONNECTION) for d in estimator.definitions
    ]
    return {f"{definition}.{name}" for definition in definitions for name in names}


def checks_of(
    shown: list[str], connections: tuple[Connection, ...], fidelity: tuple[FidelityRow, ...]
) -> list[FidelityRow]:
    """Select the fidelity checks to show: all except passed ones of connections not shown."""
    others = {each.name for each in connections}.difference(shown)
    return [
        row
        for row in fidelity
        if row.verdict is not Verdict.PASS or row.check.split(":")[0] not in others
    ]


def spreads(connections: tuple[Connection, ...], metrics: Metrics) -> list[Spread]:
    """Describe the distribution of each metric that any connection has."""
    found = []
    for definition in (d for e in of_scope(Scope.CONNECTION) for d in e.definitions):
        values = _values(connections, definition, metrics)
        if len(values):
            least, median, p95, most = np.quantile(values, [0, 0.5, 0.95, 1]).tolist()
            found.append(Spread(definition, len(values), least, median, p95, most))
    return found


def summary(connections: tuple[Connection, ...], metrics: Metrics) -> list[str]:
    """Write in a few lines how many connections a run has, and which are the worst."""
    lines = [
        f"{each.definition.name:<15} over {each.connections} connections: {each.least:.4g} least, "
        f"{each.median:.4g} median, {each.most:.4g} most"
        f"{'' if each.definition.unit == '1' else ' ' + each.definition.unit}"
        for each in spreads(connections, metrics)
        if each.definition in (GOODPUT, COMPLETION_TIME)
    ]
    jain = metrics.metrics[JAIN_INDEX.name].value
    fairness = [] if jain is None else [f"{JAIN_INDEX.name:<15} {jain:.4g}"]
    worst = ", ".join(shown_names(connections, metrics)[:WORST])
    return [*lines, *fairness, f"in the report, the worst first: {worst}"]


def _values(
    connections: tuple[Connection, ...], definition: Definition, metrics: Metrics
) -> FloatArray:
    found = (metrics.metrics[f"{definition.name}.{each.name}"].value for each in connections)
    return np.array([value for value in found if value is not None])


def distributions(analysis: Analysis, metrics: Metrics) -> list[Figure]:
    """Draw the distributions of goodput, completion time and round-trip time."""
    lasting = [each for each in analysis.run.connections if each.transfer_bytes is None]
    transfers = [each for each in analysis.run.connections if each.transfer_bytes is not None]
    drawn = []
    for each, connections, title, about in (
        (GOODPUT, lasting, "Goodput of all connections", "New payload in the steady window"),
        (
            COMPLETION_TIME,
            transfers,
            "Completion times of all transfers",
            "From a transfer's start to its last byte; those that are not complete are left out",
        ),
    ):
        if len(connections) > MANY:
            ways = _by_direction(connections)
            lines = {
                direction: _values(tuple(some), each, metrics) for direction, some in ways.items()
            }
            name = f"{each.name.replace('_', '-')}-all"
            drawn.append(_distribution(name, title, about, each.unit, lines))
    ways = _by_direction([*analysis.run.connections])
    lines = {direction: _round_trips_ms(analysis, some) for direction, some in ways.items()}
    about = "Each connection's mean of the kernel's smoothed estimate (TCP_INFO)"
    title = "Round-trip times of all connections"
    return [*drawn, _distribution("rtt-all", title, about, "ms", lines)]


def _by_direction(connections: list[Connection]) -> dict[str, list[Connection]]:
    found: dict[str, list[Connection]] = {}
    for each in connections:
        found.setdefault(each.direction, []).append(each)
    return found


def _round_trips_ms(analysis: Analysis, connections: list[Connection]) -> FloatArray:
    """Average each connection's samples in the steady window; shape (n,)."""
    run, found = analysis.run, []
    for each in connections:
        time_ns, samples = analysis.samples_of(each)
        rtt_us = samples["rtt_us"][(time_ns >= run.steady_ns) & (time_ns < run.stop_ns)]
        if len(rtt_us):
            found.append(float(rtt_us.mean()) / 1e3)
    return np.array(found)


def _distribution(
    name: str, title: str, about: str, unit: str, values: dict[str, FloatArray]
) -> Figure:
    """Draw the share of the connections of each direction with at most each value."""
    lines = []
    for colour, (direction, found) in enumerate(values.items()):
        if len(found):
            x = np.sort(found)
            share = np.arange(len(x) + 1) * 100 / len(x)
            x = np.concatenate((x[:1], x))
            lines.append(Line(f"{direction}, {len(found)} connections", x, share, "steps", colour))
    caption = f"{about}. The share of the connections with at most the value on the x axis."
    return Figure(name, title, caption, unit, "share of connections, %", lines)
