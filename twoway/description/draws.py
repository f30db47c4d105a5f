"""Random draws: each follows from the run's seed and a flow's name.

So a draw does not depend on other flows, and two flows of one run never draw the same.
"""

import hashlib
import random
from typing import Annotated

from pydantic import Field

Draw = Annotated[int, Field(ge=0, le=10**15)] | None
BY_DEFAULT = (
    "by default from the run's seed and the flow's name, so that no two flows are in step; flows "
    "with the same seed are"
)
# The distance between the seeds that two runs make of one that is given.
_APART = 1_000_000


def source(seed: int, name: str) -> random.Random:
    """Make a repeatable source of random numbers for a name in a run with a seed."""
    return random.Random(f"{seed} {name}")  # noqa: S311 - a repeatable one


def traffic_seed(seed: int, name: str, given: int | None) -> int:
    """Compute the seed of a flow's random times and sizes.

    Args:
        seed: the run's seed, from 1.
        name: the flow's full name.
        given: the seed that the flow's field names; None if it names none.

    Returns: below 2^64; `given` in a run with seed 1.
    """
    if given is not None:
        return given + (seed - 1) * _APART
    return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:8], "big")
