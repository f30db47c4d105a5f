"""Repetitions of an experiment: the same at all points, with what chance decides drawn anew.

All of a repetition follows from its seed, a number from 1. Seed 1 is the experiment as its file
has it. Another seed

- is the experiment's `seed`: the guest's kernel draws losses, marks, jitter, initial sequence
  numbers and the hashes of fair queues from it;
- starts each connection and UDP flow later, by a time drawn from 0 to `start_jitter_ms`, and to a
  tenth of its duration at most;
- moves the ports of connections and UDP flows;
- draws films, transfers and UDP's random times from other seeds.

A draw depends on the seed and the flow's name alone: another flow beside it changes nothing.
"""

import random
import re
from collections.abc import Iterable, Iterator

from twoway.contract.manifest import SEED
from twoway.errors import SpecError
from twoway.spec.experiment import MOST_SEEDS, Experiment
from twoway.spec.matrix import Point

# By this the seeds of traffic differ between repetitions.
_APART = 1_000_000
# Ports move by less than this.
_PORTS = 10_000


def repeated_points(
    where: object, experiment: Experiment, points: Iterable[Point], seeds: int | None
) -> Iterator[Point]:
    """List points of an experiment, each with every seed.

    Args:
        where: the experiment's file, for errors.
        experiment: the experiment.
        points: points of its matrix.
        seeds: how many repetitions; by default as its file says, which may be none.

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
    """List what sets the seed beside repetitions, which have the seeds from 1 on."""
    problems = [
        f"seeds: the axis {name} of matrix sets the seed already"
        for name, axis in experiment.matrix.items()
        if name == SEED or SEED in axis.set
    ]
    if experiment.seed != 1:
        problems.append(f"seeds: repetitions have the seeds from 1 on, got seed {experiment.seed}")
    return problems


def split(experiment: Experiment, name: str) -> tuple[str, int | None]:
    """Split a point's name into that of the matrix and the seed of a repetition."""
    rest, _, last = name.rpartition(",")
    found = re.fullmatch(rf"{SEED}=([1-9]\d*)", last)
    if not found or seed_problems(experiment) or int(found[1]) > MOST_SEEDS:
        return name, None
    return rest, int(found[1])


def at_matrix(experiment: Experiment, point: Point) -> Point:
    """Leave the seed of a repetition out of a point."""
    return {axis: value for axis, value in point.items() if axis in experiment.matrix}


def repeated(experiment: Experiment, seed: int) -> Experiment:
    """Set the seed of a repetition in an experiment, and those of its traffic."""
    later = (seed - 1) * _APART
    flows = [
        flow.model_copy(update={n: each.drawn_anew(later) for n, each in flow.traffics.items()})
        for flow in experiment.flows
    ]
    datagrams = [each.model_copy(update={SEED: each.seed + later}) for each in experiment.datagrams]
    return experiment.model_copy(
        update={
            SEED: seed,
            "seeds": experiment.seeds or seed,
            "flows": flows,
            "datagrams": datagrams,
        }
    )


def late_s(experiment: Experiment, name: str, duration_s: float) -> float:
    """Draw how much later a connection or UDP flow starts in a repetition, s.

    Args:
        experiment: the experiment at its point.
        name: the flow's name.
        duration_s: how long it lasts.
    """
    if experiment.repetition == 1:
        return 0.0
    draw = random.Random(f"{experiment.repetition} {name}").random()  # noqa: S311 - repeatable
    return draw * min(experiment.start_jitter_ms / 1e3, duration_s / 10)


def ports_later(experiment: Experiment) -> int:
    """Draw by how much the ports of a repetition are higher."""
    if experiment.repetition == 1:
        return 0
    return random.Random(experiment.repetition).randrange(_PORTS)  # noqa: S311 - repeatable
