"""A suite for reports: its situations, and the metrics shown for each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from twoway.contract.model import Model, Name

# The axis of a row's experiment that sets the control under test.
AXIS = "control"
Words = Annotated[str, Field(min_length=1, max_length=500)]
# Fields of an experiment (twoway/description/experiment.py), some of them or all.
Fields = dict[str, Any]


# Which values of a metric are better: more, less, or those nearer to a number.
Better = Literal["more", "less"] | Annotated[float, Field(gt=0)]


class Shown(Model):
    """A metric that a row shows."""

    metric: str = Field(description="a name from metrics.json")
    better: Better = Field(
        description="which values are better: more, less, or those nearer to a number, such as "
        "the fair share of the line's payload"
    )

    def best(self, values: Sequence[float]) -> float:
        """Return the best of some values, or the number that they should be near to."""
        if not isinstance(self.better, str):
            return self.better
        return max(values) if self.better == "more" else min(values)


class Row(Model):
    """One situation: an experiment, and the metrics shown."""

    experiment: Fields = Field(
        default={},
        description="the fields in which its experiment differs from `base`, as a JSON merge patch "
        "(RFC 7396): a mapping is merged, anything else replaces, null removes",
    )
    asks: Words = Field(description="the question, as a sentence")
    source: Words = Field(description="who asks for it")
    shows: list[Shown] = Field(default=[], description="the metrics to show")
    cannot: Words | None = Field(
        default=None,
        description="instead of metrics: the reason why no run shows it, printed in each cell; "
        "nothing runs for such a row",
    )


class HarmRows(Model):
    """The rows from which a card says which control harms which.

    All have the flow `flow` with the control under test, and the same other axes.
    """

    alone: str = Field(description="the row in which `flow` is alone; shows goodput.flow")
    itself: str = Field(
        description="the row in which a flow `other` of the same control is beside it; shows "
        "goodput.other"
    )
    beside: str = Field(
        description="the row in which `other` has the control that the axis `other` sets; shows "
        "goodput.other and goodput.flow"
    )


class Exercise(Model):
    """For `twoway class`: values of each student, and fields that students may set."""

    draws: list[Name] = Field(
        default=[],
        description="axes of the rows; each student has one value of each, by the student's number",
    )
    sets: list[str] = Field(
        default=[],
        description="fields that a student's file may set, by the paths that an axis has",
    )


class Suite(Model):
    """Situations that congestion controls are tried in: `suites/<name>.yml`."""

    schema_version: Literal[2] = Field(alias="schema", description="version of this format: 2")
    title: Words = Field(description="one line for people")
    columns: Annotated[list[Name], Field(min_length=1)] = Field(
        description="the controls with which every other control is compared: the values of the "
        "axis `control` of every row"
    )
    base: Fields = Field(
        default={},
        description="fields of an experiment that all rows have; its axis `control` sets the "
        "controls of the flows under test",
    )
    harm: HarmRows | None = Field(default=None, description="the rows for the matrix of harm")
    exercise: Exercise | None = Field(
        default=None, description="for a class: what students have of their own, and may change"
    )
    absent: Words | None = Field(
        default=None, description="what the suite does not try, and why, as sentences"
    )
    rows: Annotated[dict[Name, Row], Field(min_length=1)] = Field(
        description="the situations by name; the experiment of the row `alone` is NAME/alone on "
        "the command line, and its id is NAME-alone"
    )


@dataclass(frozen=True)
class ReadSuite:
    """A suite as read from its file.

    Attributes:
        name: the file's name.
        said: the content of the file.
        sha256: hash of the content, and of the files beside it that rows name.
    """

    name: str
    said: Suite
    sha256: str

    @property
    def rows(self) -> dict[str, Row]:
        """The rows by the ids of their experiments, in order."""
        return {self._id(row): each for row, each in self.said.rows.items()}

    @property
    def harm(self) -> HarmRows | None:
        """The rows for the matrix of harm, by the ids of their experiments."""
        rows = self.said.harm
        return rows and HarmRows(
            alone=self._id(rows.alone), itself=self._id(rows.itself), beside=self._id(rows.beside)
        )

    def _id(self, row: str) -> str:
        return f"{self.name}-{row}"
