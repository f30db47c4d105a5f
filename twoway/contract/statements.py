"""Statements on one metric at one point, made before or after a run.

A prediction is a number from this project's code; a claim is from the paper, or its authors'
simulator; a finding was written after looking.
"""

import math
from datetime import date
from typing import Any, Literal, get_args

from pydantic import Field

from twoway.contract.model import Record


class Bounds(Record):
    """A value with a tolerance, or bounds."""

    value: float | None = Field(default=None, description="the value")
    tolerance: float | None = Field(
        default=None,
        description="the largest difference from the value; for a claim, its precision",
    )
    at_least: float | None = Field(default=None, description="a lower bound, in place of a value")
    at_most: float | None = Field(default=None, description="an upper bound, in place of a value")


class Statement(Bounds):
    """A statement on one metric at one point."""

    metric: str = Field(description="the metric's name")
    why: str = Field(description="the source of value and tolerance")


class Contradicted(Record):
    """A recorded case in which the run contradicts a prediction."""

    since: date = Field(description="the day of the first such run")
    why: str = Field(description="the reason, as far as it is known")


class Prediction(Statement):
    """A number of this project's own theory; a miss fails the run."""

    theory: str = Field(description="the code that computes it: twoway/theory/predictions/NAME.py")
    of_testbed: bool = Field(
        default=False,
        description="true: it says that the testbed does what the profile sets, which is counted "
        "as fidelity",
    )
    printed: float | None = Field(
        default=None, description="the result of the paper's own formula for the same parameters"
    )
    contradicted: Contradicted | None = Field(
        default=None,
        description="the case on record in which the run contradicts it; null: the run "
        "must meet it",
    )


class Differs(Record):
    """A difference that the experiment's file admits, with its reason."""

    why: str = Field(description="the reason")
    explained_by: str | None = Field(
        default=None,
        description="the experiment or point to which the "
        "reason does not apply, and where they agree",
    )
    removes: tuple[str, ...] = Field(
        default=(), description="the parameters in which that run differs from this one"
    )
    chance: bool = Field(
        default=False, description="true: those parameters are random, and explain nothing"
    )
    metric: str | None = Field(
        default=None, description="the name of the claim's metric there, if different"
    )
    comparable: bool = Field(
        default=True, description="false: the numbers measure different quantities"
    )


# The statements to compare with, the strictest first: a number in print, in digits or spelled out;
# the paper's formula; words.
Form = Literal["digits", "formula", "words"]
FORMS: tuple[Form, ...] = get_args(Form)


class Claim(Statement):
    """A claim that the paper prints."""

    claim: str = Field(description="the paper's claim in our words")
    where: str = Field(description="section, figure or table")
    by: Literal["paper", "simulation"] = Field(
        description="`paper`: its text and analysis; `simulation`: a number of its simulator"
    )
    formula: bool = Field(
        default=False, description="true if the paper's own formula gives the value or bound"
    )
    print: Form | None = Field(
        default=None,
        description="the form in print; null: `formula` if one gives it, `words` for a bound",
    )
    against: str | None = Field(
        default=None,
        description="an experiment or point: the claim is about the metric here minus the metric "
        "there",
    )
    differs: Differs | None = Field(default=None, description="null: the file says that they agree")

    @property
    def form(self) -> Form:
        """The form in print: a number, the paper's formula, or words and a bound of ours."""
        if self.print or self.formula:
            return self.print or "formula"
        return "words" if self.value is None else "digits"


class Finding(Statement):
    """A result of a run, written after looking."""

    finding: str = Field(description="the finding, as a sentence")


def in_words(said: Bounds, digits: int = 5) -> str:
    """Write a statement's bounds for people, as "0.65 +- 0.002" or "at most 4.95"."""
    if said.value is not None:
        return f"{said.value:.{digits}g} +- {said.tolerance or 0:.2g}"
    bounds = {"at least": said.at_least, "at most": said.at_most}
    return ", ".join(
        f"{word} {edge:.{digits}g}" for word, edge in bounds.items() if edge is not None
    )


def axis_number(value: object) -> float | None:
    """Read a value of an axis, or its name, as a number; None if it is none."""
    first = value[0] if isinstance(value, list) else value
    if isinstance(first, bool) or not isinstance(first, int | float | str):
        return None
    try:
        number = float(first)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def label(value: Any) -> str:
    """Write the value of a sweep's axis as names and tables have it."""
    if isinstance(value, list):
        return "+".join(label(each) for each in value)
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)
