"""Transfers that arrive at random, from a seed.

Arrivals are a Poisson process, sizes are exponential. All transfers are part of the plan
(docs/decisions/0026).
"""

import math
import random
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from twoway.spec.base import Model, Positive

# The most transfers: each is a separate connection with two processes in the guest.
_MOST = 500


@dataclass(frozen=True)
class Transfer:
    """One transfer: its start after that of the flow, and its payload."""

    start_s: float
    payload_bytes: int


class Transfers(Model):
    """A flow whose connections arrive one by one, each with a payload to send."""

    per_s: Positive = Field(description="mean number of arrivals per second")
    mean_bytes: Annotated[float, Field(ge=1, le=1e12)] = Field(description="mean payload of one")
    seed: int = Field(default=1, description="which arrivals and sizes they are")

    def problems(self, seconds: float) -> list[str]:
        """List problems of a flow of this length, each starting with ".FIELD"."""
        expected = self.per_s * seconds
        if expected > _MOST:
            return [f".per_s: {expected:g} transfers in {seconds:g} s, at most {_MOST} can be run"]
        if not self.arrivals(seconds):
            return [f".per_s: none arrives in {seconds:g} s with seed {self.seed}"]
        return []

    def arrivals(self, seconds: float) -> list[Transfer]:
        """List the transfers within `seconds` of the flow's start, in order."""
        source = random.Random(self.seed)  # noqa: S311 - a repeatable one
        found, now = [], _exponential(source) / self.per_s
        while now < seconds:
            size = math.ceil(_exponential(source) * self.mean_bytes)
            found.append(Transfer(now, max(size, 1)))
            now += _exponential(source) / self.per_s
        return found


def _exponential(source: random.Random) -> float:
    """Draw an exponential number of mean 1.

    Not by `expovariate`: Python guarantees the sequence of `random()` alone.
    """
    return -math.log(1 - source.random())
