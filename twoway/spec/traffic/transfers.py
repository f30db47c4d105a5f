"""Transfers that arrive at random: a Poisson process with exponential sizes, from a seed."""

import math
import random
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from twoway.spec.base import Model, Positive

# Each is a connection of its own, with two processes in the guest.
_MOST = 500


@dataclass(frozen=True)
class Transfer:
    """One of them: when it begins, after the start of the flow, and its payload."""

    start_s: float
    payload_bytes: int


class Transfers(Model):
    """A flow whose connections come one by one, each with so much to send."""

    per_s: Positive = Field(description="mean number of arrivals per second")
    mean_bytes: Annotated[float, Field(ge=1, le=1e12)] = Field(description="mean payload of one")
    seed: int = Field(default=1, description="which arrivals and sizes they are")

    def problems(self, seconds: float) -> list[str]:
        """What is wrong with them; each begins with the field, after a dot."""
        expected = self.per_s * seconds
        if expected > _MOST:
            return [f".per_s: {expected:g} transfers in {seconds:g} s, at most {_MOST} can be run"]
        if not self.arrivals(seconds):
            return [f".per_s: none arrives in {seconds:g} s with seed {self.seed}"]
        return []

    def arrivals(self, seconds: float) -> list[Transfer]:
        """Those that begin before a time, in order."""
        source = random.Random(self.seed)  # noqa: S311 - a repeatable one
        found, now = [], _exponential(source) / self.per_s
        while now < seconds:
            size = math.ceil(_exponential(source) * self.mean_bytes)
            found.append(Transfer(now, max(size, 1)))
            now += _exponential(source) / self.per_s
        return found


def _exponential(source: random.Random) -> float:
    """With mean 1; by hand, because only `random()` is promised to stay as it is."""
    return -math.log(1 - source.random())
