"""comparison.json: the differences between runs."""

from typing import Any, Literal

from pydantic import Field

from twoway.contract.model import Document, Record


class Values(Record):
    """A parameter or a metric, one value for each run; null where a run has none."""

    values: tuple[Any, ...] = Field(description="in the order of the runs")
    unit: str = Field(default="", description="of a metric; empty for a parameter")


class Parting(Record):
    """The point where the captures of two runs at one interface begin to differ."""

    run: int = Field(description="number of the run that is compared with run 0")
    interface: str = Field(description="the interface")
    packet: int = Field(description="number of the first packet that differs, from 1")
    first: str | None = Field(description="the packet in run 0; null if run 0 has no more packets")
    second: str | None = Field(
        description="the packet in the other run; null if that has no more packets"
    )


class Comparison(Document):
    """The differences between two or more runs; equal parts are left out."""

    schema_: Literal[1] = Field(default=1, description="version of this format: 1")
    runs: tuple[str, ...] = Field(description="<experiment>/<run>, the first is the reference")
    parameters: dict[str, Values] = Field(
        description="of experiment, links, kernel, tools: by path"
    )
    metrics: dict[str, Values] = Field(description="by name")
    common_metrics: int = Field(description="number of metrics that are the same in all runs")
    partings: tuple[Parting, ...] = Field(description="by run, the earliest packet first")
    without_captures: tuple[int, ...] = Field(
        default=(),
        description="numbers of runs without captures; if there is one, no captures are compared",
    )
    common_captures: int = Field(description="number of captures that are the same in all runs")

    @property
    def same(self) -> bool:
        """True if metrics and captures are the same in all runs."""
        return not (self.metrics or self.partings)
