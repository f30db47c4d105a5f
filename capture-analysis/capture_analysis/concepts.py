"""The metrics of captures by concept, for manual, site and `metrics --list`."""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

from capture_analysis import metrics
from capture_analysis.definition import Definition
from capture_analysis.discovery import modules_of
from capture_analysis.one_capture.from_one import FromOne
from capture_analysis.one_capture.registry import all_from_one
from capture_analysis.two_captures.from_pair import FromPair
from capture_analysis.two_captures.registry import all_from_pair

Estimated = type[FromOne] | type[FromPair]


@dataclass(frozen=True)
class Concept:
    """A module of `capture_analysis.metrics`: definitions and their estimators."""

    module: ModuleType
    from_one: tuple[type[FromOne], ...]
    from_pair: tuple[type[FromPair], ...]

    @property
    def name(self) -> str:
        """The module's name, without its package's."""
        return self.module.__name__.rpartition(".")[2]

    @property
    def title(self) -> str:
        """First line of the module's docstring."""
        return (inspect.getdoc(self.module) or "").partition("\n")[0].rstrip(".")

    @property
    def text(self) -> str:
        """The module's docstring without its first line, and its estimators'."""
        found = [(inspect.getdoc(self.module) or "").partition("\n")[2].strip("\n")]
        for captures, estimators in (("one capture", self.from_one), ("two", self.from_pair)):
            found += [f"*From {captures}.* {inspect.getdoc(each)}" for each in estimators]
        return "\n\n".join(filter(None, found))

    @property
    def definitions(self) -> list[Definition]:
        """List the definitions that the estimators return, each once."""
        estimators: tuple[Estimated, ...] = (*self.from_one, *self.from_pair)
        return list(dict.fromkeys(each for made in estimators for each in definitions_of(made)))


def captures_for(definition: Definition) -> str:
    """Write from how many captures a quantity is estimated: one, two, or both."""
    one = any(definition in definitions_of(made) for made in all_from_one())
    two = any(definition in definitions_of(made) for made in all_from_pair())
    return "both" if one and two else "one" if one else "two"


def definitions_of(estimator: Estimated) -> Iterator[Definition]:
    """Yield the definitions of the quantities that an estimator returns."""
    for scope in (
        "per_direction",
        "per_path_direction",
        "per_pair",
        "per_capture",
        "per_datagrams",
    ):
        yield from getattr(estimator, scope, ())


def concepts() -> tuple[Concept, ...]:
    """List all concepts, by name."""
    return tuple(
        Concept(
            module,
            tuple(each for each in all_from_one() if each.__module__ == module.__name__),
            tuple(each for each in all_from_pair() if each.__module__ == module.__name__),
        )
        for module in modules_of(metrics)
    )
