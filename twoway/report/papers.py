"""The papers that experiments reproduce: `papers/<id>.yml`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Self

import yaml
from pydantic import Field, ValidationError, model_validator

from twoway.contract.model import Model
from twoway.errors import TwowayError
from twoway.paths import PAPERS, ROOT


class Untested(Model):
    """A claim of the paper that no experiment tests."""

    claim: str = Field(description="the paper's claim in our words")
    where: str = Field(description="section, figure or table")
    why: str = Field(default="", description="the reason why no experiment tests it")
    run: str = Field(default="", description="in place of a reason, the run that would test it")

    @model_validator(mode="after")
    def _answer(self) -> Self:
        if bool(self.why) == bool(self.run):
            raise ValueError("needs either why or run")
        return self


class Reading(Model):
    """A value that the paper prints in a figure, without a claim."""

    line: str = Field(description="the name of its line in the legend")
    x: float | None = Field(default=None, description="its x; null: a level across the figure")
    y: float = Field(description="the value, in the figure's unit")
    error: float = Field(ge=0, description="the error of the reading, in the same unit")
    how: str = Field(description="the place in print, or how the value was read off")


class Redrawn(Model):
    """A figure or table of the paper, and the runs from which it is drawn again."""

    name: str = Field(pattern=r"^(figure|table) \S", description="figure 3.3, table 2, figure 9 b")
    shows: str = Field(description="its content in our words")
    runs: list[str] = Field(min_length=1, description="experiments, or points of experiments")
    metrics: list[str] = Field(default=[], description="metrics or families of them, to draw")
    across: str | None = Field(
        default=None, description="the sweep's axis that is x; null: the runs in order"
    )
    at: dict[str, list[Any]] = Field(default={}, description="the points drawn, by axis")
    picture: str = Field(default="", description="in place of metrics, a picture of a run's report")
    lines: list[str] = Field(default=[], description="the first letters of the lines to draw")
    levels: list[str] = Field(default=[], description="metrics to draw as levels in the picture")
    readings: list[Reading] = Field(default=[], description="printed values without a claim")

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if bool(self.metrics) == bool(self.picture):
            raise ValueError("needs either metrics or picture")
        return self

    @property
    def heading(self) -> str:
        """The figure's name at the start of a sentence."""
        return self.name[0].upper() + self.name[1:]

    @property
    def id(self) -> str:
        """The figure's name as a part of an address."""
        return self.name.replace(" ", "-")


# A sentence of the paper, short, by the section, figure or table where it stands.
Sentence = Annotated[dict[str, str], Field(min_length=1, max_length=1)]


class _File(Model):
    title: str = Field(description="authors, title, year")
    figures: list[Redrawn] = Field(
        default=[], description="figures and tables that are drawn again from runs"
    )
    claimed: dict[str, list[Sentence]] = Field(
        default={}, description="by the claims of experiments, the paper's sentences that say so"
    )
    untested: list[Untested] = Field(description="claims that no experiment tests")

    @model_validator(mode="after")
    def _once(self) -> Self:
        names = [each.name for each in self.figures]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"figures: {min(twice)} is there twice")
        return self


@dataclass(frozen=True)
class Source:
    """A paper.

    Attributes:
        id: the file's stem, or the title if there is no file.
        title: authors, title, year.
        untested: its claims that no experiment tests.
        claimed: by the claims of experiments, its sentences that say so.
        figures: those of its figures and tables that runs draw again.
    """

    id: str
    title: str
    untested: tuple[Untested, ...] = ()
    figures: tuple[Redrawn, ...] = ()
    claimed: Mapping[str, Sequence[Sentence]] = field(default_factory=dict)


def find_paper(name: str) -> Source:
    """Find a paper by the name that experiments use: its file's stem, or its title.

    Raises: TwowayError with a sentence if its file is invalid.
    """
    path = PAPERS / f"{name}.yml"
    if "/" in name or not path.is_file():
        return Source(name, name)
    where = path.relative_to(ROOT)
    try:
        read = yaml.load(path.read_text("utf-8"), Loader=yaml.CSafeLoader)
        file = _File.model_validate(read)
    except yaml.YAMLError as error:
        raise TwowayError(f"{where}: not YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        found = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise TwowayError(f"{where}: {found}") from error
    return Source(name, file.title, tuple(file.untested), tuple(file.figures), file.claimed)
