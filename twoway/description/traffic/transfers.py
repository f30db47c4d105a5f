"""Transfers that arrive at random, from a seed.

Arrivals are a Poisson process. Sizes are exponential, equal, or Pareto: a few have most of the
bytes. All transfers are part of the plan (decision 0026).
"""

import math
import random
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from twoway.contract.model import Model
from twoway.contract.network import whole_ns
from twoway.description.draws import BY_DEFAULT, Draw
from twoway.description.traffic.traffic import Span, Traffic

# The most transfers: each is a separate connection with two processes in the guest.
_MOST_TRANSFERS = 500


class Transfers(Model, Traffic):
    """A flow whose connections arrive one by one, each with a payload to send."""

    FIELD: ClassVar = "transfers"
    DESCRIPTION: ClassVar = "connections that start one by one, each with its own payload"

    per_s: Annotated[float, Field(ge=0.001, le=1_000_000)] = Field(
        description="mean number of arrivals per second"
    )
    mean_bytes: Annotated[float, Field(ge=1, le=1e12)] = Field(description="mean payload of one")
    sizes: Literal["exponential", "constant", "pareto"] = Field(
        default="exponential", description="the distribution of payloads"
    )
    shape: Annotated[float, Field(gt=1, le=100)] | None = Field(
        default=None,
        description="Pareto's shape: the closer to 1, the larger the share of the few largest "
        "payloads",
    )
    seed: Draw = Field(default=None, description=f"seed of arrivals and sizes; {BY_DEFAULT}")

    @property
    @override
    def given_seed(self) -> int | None:
        return self.seed

    @override
    def problems(self, span: Span) -> list[str]:
        """Refuse settings that give no transfers, or more than can be run."""
        if (self.shape is None) == (self.sizes == "pareto"):
            given = "none" if self.shape is None else f"{self.shape:g}"
            return [f".shape: pareto alone has one; got {given} with {self.sizes}"]
        expected, seconds = self.per_s * whole_ns(span.seconds) / 1e9, span.seconds
        if expected > _MOST_TRANSFERS:
            return [
                (
                    f".per_s: {expected:g} transfers in {seconds:g} s, at most "
                    f"{_MOST_TRANSFERS} can be run"
                )
            ]
        if not self.arrivals(span):
            return [f".per_s: none arrives in {seconds:g} s with this seed"]
        return []

    @override
    def arrivals(self, span: Span) -> list[tuple[float, int]]:
        """Draw the transfers, in order."""
        source = random.Random(span.seed)  # noqa: S311 - a repeatable one
        found, now = [], _exponential(source) / self.per_s
        while now < span.seconds:
            size = math.ceil(self._relative_size(source) * self.mean_bytes)
            found.append((now, max(size, 1)))
            now += _exponential(source) / self.per_s
        return found

    def _relative_size(self, source: random.Random) -> float:
        """Draw a payload as a multiple of the mean."""
        # always drawn: arrivals are the same for all kinds of sizes
        exponential = _exponential(source)
        if self.sizes == "constant":
            return 1
        if self.shape is None:
            return exponential
        return (self.shape - 1) / self.shape * math.exp(exponential / self.shape)


def _exponential(source: random.Random) -> float:
    """Draw an exponential number of mean 1.

    It does not use `expovariate`: Python guarantees only the sequence of `random()`.
    """
    return -math.log(1 - source.random())
