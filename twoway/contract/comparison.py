"""comparison.json: what differs between runs."""

from typing import Any, Literal

from pydantic import Field

from twoway.contract.model import Document, Record


class Values(Record):
    """A parameter or a metric, one value for each run; null where a run has none."""

    values: tuple[Any, ...] = Field(description="in the order of the runs")
    unit: str = Field(default="", description="of a metric; empty for a parameter")


class Parting(Record):
    """Where the captures of two runs at one interface part."""

    run: int = Field(description="number of the run that is compared with run 0")
    interface: str = Field(description="the interface")
    packet: int = Field(description="number of the first packet that differs, from 1")
    first: str | None = Field(description="that packet in run 0; null if it has no more")
    second: str | None = Field(description="that packet in the other; null if it has no more")


class Comparison(Document):
    """What differs between two runs or more; what they have in common is left out."""

    schema_: Literal[1] = Field(default=1, description="version of this format: 1")
    runs: tuple[str, ...] = Field(description="<experiment>/<run>, the first is the reference")
    parameters: dict[str, Values] = Field(
        description="of experiment, links, kernel, tools: by path"
    )
    metrics: dict[str, Values] = Field(description="by name")
    common_metrics: int = Field(description="how many metrics are the same in all runs")
    partings: tuple[Parting, ...] = Field(description="by run, the earliest packet first")
    without_captures: tuple[int, ...] = Field(
        default=(), description="numbers of runs whose captures were left out: none is compared"
    )
    common_captures: int = Field(description="how many captures are the same in all runs")

    @property
    def same(self) -> bool:
        """True if metrics and captures are the same in all runs."""
        return not (self.metrics or self.partings)
