"""What somebody says of one metric at one point, before or after a run.

A prediction is this project's and a number of its code; a claim is the paper's, or its authors'
simulator's; a finding was written after looking.
"""

from datetime import date
from typing import Any, Literal, get_args

from pydantic import Field

from twoway.contract.model import Record


class Bounds(Record):
    """A value with a tolerance, or bounds."""

    value: float | None = Field(default=None, description="the value")
    tolerance: float | None = Field(
        default=None,
        description="the largest difference from it; of a claim, its precision",
    )
    at_least: float | None = Field(default=None, description="instead of a value, a bound")
    at_most: float | None = Field(default=None, description="likewise")


class Statement(Bounds):
    """What is said of one metric at one point."""

    metric: str = Field(description="the metric's name")
    why: str = Field(description="where value and tolerance come from")


class Contradicted(Record):
    """A contradiction of a prediction by its run that the experiment's file has on record."""

    since: date = Field(description="the day on which it was seen first")
    why: str = Field(description="what is known of the reason")


class Prediction(Statement):
    """What this project's own theory says; a miss fails the run."""

    theory: str = Field(description="the code that computes it: twoway/theory/predictions/NAME.py")
    of_testbed: bool = Field(
        default=False,
        description="true: it says that the testbed does what the profile sets, which is counted "
        "as fidelity",
    )
    printed: float | None = Field(
        default=None, description="what the paper's own formula gives for the same parameters"
    )
    contradicted: Contradicted | None = Field(
        default=None, description="null: the file says that the run keeps it"
    )


class Differs(Record):
    """A difference that the experiment's file admits, with its reason."""

    why: str = Field(description="the reason")
    explained_by: str | None = Field(
        default=None, description="the experiment or point without that reason, where they agree"
    )
    removes: tuple[str, ...] = Field(
        default=(), description="the parameters in which that run differs from this one"
    )
    chance: bool = Field(
        default=False, description="true: those parameters are chance's, and nothing is explained"
    )
    metric: str | None = Field(
        default=None, description="what the claim is about there, if its name is another"
    )
    comparable: bool = Field(default=True, description="false: the numbers are of different things")


# What a claim is compared with, the strictest first.
Form = Literal["number", "formula", "words"]
FORMS: tuple[Form, ...] = get_args(Form)


class Claim(Statement):
    """What the paper prints."""

    claim: str = Field(description="what the paper says, in our words")
    where: str = Field(description="section, figure or table")
    by: Literal["paper", "simulation"] = Field(
        description="`paper`: its text and analysis; `simulation`: a number of its simulator"
    )
    formula: bool = Field(
        default=False, description="the value is what the paper's own formula gives"
    )
    against: str | None = Field(
        default=None,
        description="an experiment or point: the claim is about the metric here less there",
    )
    differs: Differs | None = Field(default=None, description="null: the file says that they agree")

    @property
    def form(self) -> Form:
        """Its kind: a number in print, the paper's formula, or words with a bound of ours."""
        if self.value is None:
            return "words"
        return "formula" if self.formula else "number"


class Finding(Statement):
    """What a run showed, written after looking."""

    finding: str = Field(description="the finding, as a sentence")


def in_words(said: Bounds, digits: int = 5) -> str:
    """Write what is said for people, as "0.65 +- 0.002" or "at most 4.95"."""
    if said.value is not None:
        return f"{said.value:.{digits}g} +- {said.tolerance or 0:.2g}"
    bounds = {"at least": said.at_least, "at most": said.at_most}
    return ", ".join(
        f"{word} {edge:.{digits}g}" for word, edge in bounds.items() if edge is not None
    )


def label(value: Any) -> str:
    """Write a value of a sweep's axis as it stands in names and tables."""
    if isinstance(value, list):
        return "+".join(label(each) for each in value)
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)
