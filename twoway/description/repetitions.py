"""Repetitions of an experiment: equal at all points, except that random values are drawn anew.

A repetition follows from its seed alone, a number from 1. The seed

- is the experiment's `seed`: the guest's kernel draws losses, marks, jitter, initial sequence
  numbers and the hashes of fair queues from it, and traffic its random times and sizes (draws.py);
- starts each connection and UDP flow later, by a time drawn from 0 to `start_jitter_ms`, and to a
  tenth of its duration at most;
- moves the ports of connections and UDP flows.

A draw depends on the seed and the flow's name alone: adding another flow does not change it.
"""

import re
from collections.abc import Iterable, Iterator

from twoway.description.draws import source
from twoway.description.experiment import MOST_SEEDS, Experiment
from twoway.description.matrix import AxisValues
from twoway.errors import SpecError
from twoway.manifest import SEED

# The most by which ports move.
_PORTS = 10_000


def repeated_points(
    where: object, experiment: Experiment, points: Iterable[AxisValues], seeds: int | None
) -> Iterator[AxisValues]:
    """List the points of an experiment, each with every seed.

    Args:
        where: the experiment's file, for errors.
        experiment: the experiment.
        points: points of its matrix.
        seeds: number of repetitions; by default as the file says, which may be none.

    Raises: SpecError if an axis of the experiment sets the seed.
    """
    count = seeds or experiment.seeds
    if count and (problems := seed_problems(experiment)):
        raise SpecError([f"{where}: {problem}" for problem in problems])
    for point in points:
        if count:
            yield from ({**point, SEED: seed} for seed in range(1, count + 1))
        else:
            yield point


def seed_problems(experiment: Experiment) -> list[str]:
    """List settings of the seed that conflict with repetitions, whose seeds count from 1."""
    problems = [
        f"seeds: the axis {name} of matrix sets the seed already"
        for name, axis in experiment.matrix.items()
        if name == SEED or SEED in axis.set
    ]
    if experiment.seed != 1:
        problems.append(f"seeds: the seeds of repetitions count from 1, got seed {experiment.seed}")
    return problems


def split(experiment: Experiment, name: str) -> tuple[str, int | None]:
    """Split a point's name into the point of the matrix and the repetition's seed."""
    values = name.split(",")
    seeds = [value for value in values if re.fullmatch(rf"{SEED}=[1-9]\d*", value)]
    if len(seeds) != 1 or seed_problems(experiment):
        return name, None
    seed = int(seeds[0].removeprefix(f"{SEED}="))
    values.remove(seeds[0])
    return (",".join(values), seed) if seed <= MOST_SEEDS else (name, None)


def at_matrix(experiment: Experiment, point: AxisValues) -> AxisValues:
    """Remove the seed of a repetition from a point."""
    return {axis: value for axis, value in point.items() if axis in experiment.matrix}


def set_seed(experiment: Experiment, seed: int) -> Experiment:
    """Set the seed of a repetition in an experiment."""
    return experiment.model_copy(update={SEED: seed, "seeds": experiment.seeds or seed})


def late_s(experiment: Experiment, name: str, duration_s: float) -> float:
    """Draw the delay of a flow's start in a repetition, s.

    Args:
        experiment: the experiment at its point.
        name: the flow's name.
        duration_s: the flow's duration.
    """
    if not experiment.seeds:
        return 0.0
    most_s = min(experiment.start_jitter_ms / 1e3, duration_s / 10)
    return source(experiment.seed, name).random() * most_s


def ports_later(experiment: Experiment) -> int:
    """Draw the number that a repetition adds to all ports; 0 without repetitions."""
    return source(experiment.seed, "").randrange(_PORTS) if experiment.seeds else 0
