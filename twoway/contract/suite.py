"""A suite for reports: its situations, and the metrics shown for each."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from twoway.contract.model import Model, Name

# The axis of a row's experiment that sets the control under test.
AXIS = "control"
Words = Annotated[str, Field(min_length=1, max_length=500)]


# Which values of a metric are better: more, less, or those nearer to a number.
Better = Literal["more", "less"] | Annotated[float, Field(gt=0)]


class Shown(Model):
    """A metric that a row shows."""

    metric: str = Field(description="a name from metrics.json")
    better: Better = Field(
        description="which values are better: more, less, or those nearer to a number, such as "
        "the fair share of the line's payload"
    )


class Row(Model):
    """One situation: an experiment, and the metrics shown."""

    asks: Words = Field(description="the question, as a sentence")
    source: Words = Field(description="who asks for it")
    shows: list[Shown] = Field(default=[], description="the metrics to show")
    cannot: Words | None = Field(
        default=None,
        description="instead of metrics: the reason why no run shows it, printed in each cell; "
        "such a row has no experiment",
    )


class HarmRows(Model):
    """The rows from which a card says which control harms which.

    All have the flow `flow` with the control under test, and the same other axes.
    """

    alone: Name = Field(description="the row in which `flow` is alone; shows goodput.flow")
    itself: Name = Field(
        description="the row in which a flow `other` of the same control is beside it; shows "
        "goodput.other"
    )
    beside: Name = Field(
        description="the row in which `other` has the control that the axis `other` sets; shows "
        "goodput.other and goodput.flow"
    )


class Suite(Model):
    """Situations that congestion controls are tried in: `suites/<name>.yml`."""

    schema_version: Literal[1] = Field(alias="schema", description="version of this format: 1")
    title: Words = Field(description="one line for people")
    columns: Annotated[list[Name], Field(min_length=1)] = Field(
        description="the controls with which every other control is compared"
    )
    harm: HarmRows | None = Field(default=None, description="the rows for the matrix of harm")
    absent: Words | None = Field(
        default=None, description="what the suite does not try, and why, as sentences"
    )
    rows: Annotated[dict[Name, Row], Field(min_length=1)] = Field(
        description="the experiments of the suite's folder, by id"
    )


@dataclass(frozen=True)
class ReadSuite:
    """A suite as read from its files.

    Attributes:
        name: the file's name.
        said: the content of the file.
        folder: the folder of the rows' experiments.
        sha256: hash of the list and of all files of the folder.
    """

    name: str
    said: Suite
    folder: Path
    sha256: str

    @property
    def files(self) -> list[Path]:
        """The experiments of the rows that have one, in order."""
        return [self.folder / f"{row}.yml" for row, each in self.said.rows.items() if each.shows]
