"""The papers that experiments reproduce: `papers/<id>.yml`."""

from dataclasses import dataclass

import yaml
from pydantic import Field, ValidationError

from twoway.contract.model import Model
from twoway.errors import TwowayError
from twoway.paths import PAPERS, ROOT


class Untested(Model):
    """A claim of the paper that no experiment tests."""

    claim: str = Field(description="what the paper says, in our words")
    where: str = Field(description="section, figure or table")
    why: str = Field(description="why no experiment tests it")


class _File(Model):
    title: str = Field(description="authors, title, year")
    untested: list[Untested] = Field(description="claims that no experiment tests")


@dataclass(frozen=True)
class Source:
    """A paper.

    Attributes:
        id: the file's stem, or the title if there is no file.
        title: authors, title, year.
        untested: its claims that no experiment tests.
    """

    id: str
    title: str
    untested: tuple[Untested, ...] = ()


def find_paper(name: str) -> Source:
    """Find a paper by what experiments call it: its file's stem, or its title.

    Raises: TwowayError with a sentence if its file is not sound.
    """
    path = PAPERS / f"{name}.yml"
    if "/" in name or not path.is_file():
        return Source(name, name)
    where = path.relative_to(ROOT)
    try:
        file = _File.model_validate(yaml.safe_load(path.read_text("utf-8")))
    except yaml.YAMLError as error:
        raise TwowayError(f"{where}: not YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        found = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise TwowayError(f"{where}: {found}") from error
    return Source(name, file.title, tuple(file.untested))
