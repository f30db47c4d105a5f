"""Tahoe with chaotic dynamics: the mean of the model of `tahoe` over random starts.

A single start does not predict another one: only a mean can be predicted, with a deviation that
bounds a run's distance from it. Queues are alike, and so are connections, so each kind is pooled.
"""

import statistics
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from twoway.theory import tables
from twoway.theory.network import Setup
from twoway.theory.tahoe.setting import outcome_of, random_starts
from twoway.theory.tahoe.setting import parameters as parameters_of

NAME = "tahoe_starts"
STARTS = 12
WITHIN_S = 5.0
# Prefixes of metric names in the table: for the deviation between starts, and the first start's
# value.
DEVIATION, FIRST = "deviation ", "first "


def predict(setup: Setup) -> dict[str, float]:
    """Predict the mean of each metric.

    Raises: ValueError with a sentence if the model does not cover the setup.
    """
    return {name: value for name, value in _computed(setup).items() if " " not in name}


def deviations(setup: Setup) -> dict[str, float]:
    """Compute the standard deviation of each metric between starts, for the setup's window."""
    return _pick_marked(setup, DEVIATION)


def first_start(setup: Setup) -> dict[str, float]:
    """Return the metrics of the first start, for a comparison with the model."""
    return _pick_marked(setup, FIRST)


def parameters(setup: Setup) -> Mapping[str, Any]:
    """Collect the parameters that the model needs from a setup; starts are drawn."""
    taken = parameters_of(setup)
    flows = [[*each[:-1], None] for each in taken["connections"]]
    return {**taken, "connections": flows, "starts": STARTS, "within_s": WITHIN_S}


def compute(setup: Setup) -> dict[str, float]:
    """Run the model for each start; return means, and with prefixes deviations and the first start.

    Raises: ValueError as `predict`.
    """
    pooled: dict[str, list[float]] = defaultdict(list)
    names: dict[str, list[str]] = defaultdict(list)
    found: dict[str, float] = {}
    for seed in range(STARTS):
        outcome = outcome_of(setup, random_starts(setup, seed, WITHIN_S))
        for name, value in outcome.metrics().items():
            metric = name.partition(".")[0]
            pooled[metric].append(value)
            if not seed:
                found[FIRST + name] = value
            if name not in names[metric]:
                names[metric].append(name)
    for metric, values in pooled.items():
        for name in names[metric]:
            found[name] = statistics.fmean(values)
            found[DEVIATION + name] = statistics.stdev(values)
    return found


def _pick_marked(setup: Setup, mark: str) -> dict[str, float]:
    computed = _computed(setup).items()
    return {name.removeprefix(mark): value for name, value in computed if name.startswith(mark)}


def _computed(setup: Setup) -> dict[str, float]:
    return tables.look_up(NAME, parameters(setup)) or compute(setup)
