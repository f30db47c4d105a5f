"""metrics.json: a run's metrics by name, and verdicts on them."""

from typing import Literal

from pydantic import Field

from twoway.contract.manifest import ClockSource
from twoway.contract.model import Document, Record
from twoway.contract.verdict import Expectation, Judged, in_words

METRICS = "metrics.json"


class Metric(Record):
    """A measured number."""

    value: float | None = Field(description="null if undefined: no ACK, no busy period")
    unit: str = Field(description="1 for shares and counts")


class ExpectationRow(Expectation, Judged):
    """An expectation, the measurement and the verdict."""

    measured: float | None = Field(description="the metric's value")
    unit: str = Field(description="the metric's unit")
    limit: str | None = Field(default=None, description="why the run's clock tells no more")


class FidelityRow(Judged):
    """A test of the testbed by the run's own captures."""

    check: str = Field(description="what was checked")
    value: int | float | None = Field(description="the value found")
    bound: str = Field(description="the bound, in words")


class Metrics(Document):
    """A run's metrics, and verdicts on them."""

    schema_: Literal[1] = Field(default=1, description="version of this format: 1")
    experiment: str = Field(description="the experiment's id, with its point")
    run: str = Field(description="the run's name")
    spec_sha256: str = Field(description="hash of experiment, profile and topology")
    backend: str = Field(description="as in manifest.json")
    clock_source: ClockSource = Field(description="as in manifest.json")
    kernel: str = Field(description="the kernel's release")
    analysis: str = Field(default="", description="hash of the code that measured and judged")
    metrics: dict[str, Metric] = Field(description="by name")
    expect: tuple[ExpectationRow, ...] = Field(description="verdicts on the expectations")
    fidelity: tuple[FidelityRow, ...] = Field(description="verdicts on the testbed")
    pass_: bool = Field(description="the verdict on the whole run")


def row_in_words(row: ExpectationRow | FidelityRow) -> str:
    """Write an expectation or a check as a line."""
    if isinstance(row, FidelityRow):
        return f"{row.check}: {row.value}, bound {row.bound}"
    measured = "none" if row.measured is None else f"{row.measured:.4g}"
    limit = f"; {row.limit}" if row.limit else ""
    return f"{row.metric:<32} {measured:>8} measured, {in_words(row)} {row.source}{limit}"
