"""Expressions over a run's metrics and a point's parameters: a closed grammar, no code.

    sum      = product { (" + " | " - ") product }
    product  = factor { ("*" | "/") factor }
    factor   = ["-"] ( number | name | function "(" sum ")" | "(" sum ")" )
    function = sum, mean, median, min, max, count

A name is a metric's, such as goodput.left; or of several metrics, with "*" for any characters of
the part after the dot, such as goodput.*, which only a function takes; or an axis of the sweep.
Flows' names may have hyphens, so a minus has spaces around it.
"""

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from statistics import fmean, median
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError

from twoway.contract.metrics import Metric
from twoway.contract.model import Name, Record, demand
from twoway.contract.statements import axis_number
from twoway.messages import suggest

# The longest expression, characters; also bounds the depth of its brackets.
LONGEST = 200
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
    r"|(?P<name>[A-Za-z]\w*(?:\.[\w*.-]*[\w*])?)"
    r"|(?P<sign>[-+*/()]))",
    re.ASCII,
)
_FUNCTIONS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "sum": sum,
    "mean": fmean,
    "median": median,
    "min": min,
    "max": max,
    "count": len,
}
_COUNTS = "count"


class ExpressionError(ValueError):
    """An expression that does not follow the grammar, or names what does not exist."""


class UndefinedError(Exception):
    """The reason why an expression has no value at a point."""


@dataclass(frozen=True)
class Value:
    """A number with its unit: the powers of the units it is made of; None for a bare number."""

    number: float
    unit: Mapping[str, int] | None

    def unit_in_words(self) -> str:
        """Write the unit, such as Mbit/s or 1."""
        powers = self.unit or {}
        above = [_power(name, power) for name, power in powers.items() if power > 0]
        below = [_power(name, -power) for name, power in powers.items() if power < 0]
        return "/".join([" ".join(above) or "1", *below])


def _power(name: str, power: int) -> str:
    return name if power == 1 else f"{name}^{power}"


# Finds values by name, or the reasons why there are none.
Look = Callable[[str], list[Value | str]]


class _Node:
    """A part of an expression."""

    def names(self) -> Iterator[tuple[str, bool]]:
        """List names in it; with each, True if it may stand for several metrics."""
        yield from ()

    def value(self, look: Look) -> Value:
        """Compute it."""
        raise NotImplementedError


@dataclass(frozen=True)
class _Number(_Node):
    number: float

    def value(self, _: Look) -> Value:
        return Value(self.number, None)


@dataclass(frozen=True)
class _Name(_Node):
    name: str

    def names(self) -> Iterator[tuple[str, bool]]:
        yield self.name, False

    def value(self, look: Look) -> Value:
        (found,) = _require_defined(look(self.name))
        return found


@dataclass(frozen=True)
class _Call(_Node):
    function: str
    of: _Node

    def names(self) -> Iterator[tuple[str, bool]]:
        alone = isinstance(self.of, _Name)
        yield from ((name, several or alone) for name, several in self.of.names())

    def value(self, look: Look) -> Value:
        if isinstance(self.of, _Name):
            found = _require_defined(look(self.of.name))
        else:
            found = [self.of.value(look)]
        for each in found[1:]:
            _refuse_mixture(found[0], each)
        number = float(_FUNCTIONS[self.function]([each.number for each in found]))
        return Value(number, {} if self.function == _COUNTS else found[0].unit)


@dataclass(frozen=True)
class _Pair(_Node):
    left: _Node
    sign: str
    right: _Node

    def names(self) -> Iterator[tuple[str, bool]]:
        yield from self.left.names()
        yield from self.right.names()


class _Sum(_Pair):
    def value(self, look: Look) -> Value:
        left, right = self.left.value(look), self.right.value(look)
        _refuse_mixture(left, right)
        number = left.number + (right.number if self.sign == "+" else -right.number)
        return Value(number, left.unit if left.unit is not None else right.unit)


@dataclass(frozen=True)
class _Product(_Pair):
    divisor: str

    def value(self, look: Look) -> Value:
        left, right = self.left.value(look), self.right.value(look)
        over = self.sign == "/"
        if over and right.number == 0:
            raise UndefinedError(f"{self.divisor} is 0")
        number = left.number / right.number if over else left.number * right.number
        unit = dict(left.unit or {})
        for name, power in (right.unit or {}).items():
            unit[name] = unit.get(name, 0) + (-power if over else power)
        return Value(number, {name: power for name, power in unit.items() if power})


def _refuse_mixture(one: Value, other: Value) -> None:
    if None not in (one.unit, other.unit) and one.unit != other.unit:
        raise UndefinedError(
            f"{one.unit_in_words()} and {other.unit_in_words()} are no units of one sum"
        )


def _require_defined(found: list[Value | str]) -> list[Value]:
    for each in found:
        if isinstance(each, str):
            raise UndefinedError(each)
    return [each for each in found if isinstance(each, Value)]


class Expression:
    """An expression, read.

    Raises: ExpressionError if the text does not follow the grammar.
    """

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise ExpressionError(f"has more than {LONGEST} characters")
        self.text = text
        self._at = 0
        self._faults: list[str] = []
        self._root = self._sum()
        if rest := text[self._at :].strip():
            raise ExpressionError(f'expected an operator before "{rest:.40}"')
        self.names = tuple(dict.fromkeys(self._root.names()))

    def problems(
        self, metrics: Collection[str], axes: Collection[str], *, whole: bool = True
    ) -> Iterator[str]:
        """List what leaves it undefined anywhere: names that do not exist, divisors of 0.

        Args:
            metrics: the names of all metrics.
            axes: the names of the matrix's axes.
            whole: False for one point of several, which may have none of several metrics, such as
                goodput.cubic-*, but must know the family.
        """
        yield from self._faults
        families = {each.partition(".")[0] for each in metrics}
        for name, several in self.names:
            if name in axes or name in metrics:
                continue
            spaces = "; a minus and a product of metrics have spaces around the sign"
            hint = spaces if re.search(r"[\w*][-*][A-Za-z0-9]", name) else ""
            if "*" in name and not several:
                one = f"sum({name}), mean({name}) and others are one"
                yield f'"{name}" is several numbers: {one}{hint}'
            elif "*" not in name or not (
                any(fnmatchcase(each, name) for each in metrics)
                if whole
                else name.partition(".")[0] in families
            ):
                yield f'no metric or axis "{name:.80}"{suggest(name, [*metrics, *axes])}{hint}'

    def metric(self, metrics: Mapping[str, Metric], point: Mapping[str, Any]) -> Metric:
        """Compute the expression at a point, with the error that its parts' errors allow.

        Args:
            metrics: the run's metrics by name.
            point: the point's values by axis.

        Raises: UndefinedError with the reason if a part is undefined or a divisor is 0.
        """
        found = self._root.value(lambda name: _values(name, metrics, point))
        error: float | None = 0.0
        for part in self._parts(metrics):
            error = _add_errors(error, self._change_by_error(metrics, point, part, found.number))
        if not math.isfinite(found.number):
            raise UndefinedError("it is beyond the largest number")
        return Metric(value=found.number, unit=found.unit_in_words(), error=error)

    def _parts(self, metrics: Mapping[str, Metric]) -> list[str]:
        """List the metrics with an error that it has."""
        return [
            metric
            for metric, found in metrics.items()
            if found.error != 0 and any(fnmatchcase(metric, name) for name, _ in self.names)
        ]

    def _change_by_error(
        self, metrics: Mapping[str, Metric], point: Mapping[str, Any], part: str, value: float
    ) -> float | None:
        """Return by how much it moves if a part moves by its error."""
        there = metrics[part]
        if there.value is None or there.error is None:
            return None
        moved = there.model_copy(update={"value": there.value + there.error})
        try:
            number = self._root.value(lambda name: _values(name, {**metrics, part: moved}, point))
        except UndefinedError:
            return None
        return abs(number.number - value)

    def _next(self, *signs: str) -> str:
        """Take one of some signs if it comes next; else return nothing."""
        found = _TOKEN.match(self.text, self._at)
        if found and found["sign"] in signs:
            self._at = found.end()
            return str(found["sign"])
        return ""

    def _sum(self) -> _Node:
        left = self._product()
        while sign := self._next("+", "-"):
            left = _Sum(left, sign, self._product())
        return left

    def _product(self) -> _Node:
        left = self._factor()
        while sign := self._next("*", "/"):
            start = self._at
            right, divisor = self._factor(), self.text[start : self._at].strip()
            if sign == "/" and not [*right.names()] and right.value(lambda _: []).number == 0:
                self._faults.append(f'the divisor "{divisor}" is 0')
            left = _Product(left, sign, right, divisor)
        return left

    def _factor(self) -> _Node:
        if self._next("-"):
            return _Sum(_Number(0), "-", self._factor())
        if self._next("("):
            return self._close_bracket(self._sum())
        found = _TOKEN.match(self.text, self._at)
        if not found or found["sign"]:
            rest = self.text[self._at :].strip()
            where = f'at "{rest:.40}"' if rest else "at the end"
            raise ExpressionError(f"expected a number, a name or a bracket {where}")
        self._at = found.end()
        if found["number"]:
            if math.isinf(number := float(found["number"])):
                self._faults.append(f"{found['number']:.40} is beyond the largest number")
            return _Number(number)
        if not self._next("("):
            return _Name(found["name"])
        if found["name"] not in _FUNCTIONS:
            known = ", ".join(_FUNCTIONS)
            raise ExpressionError(f'no function "{found["name"]:.40}"; there are {known}')
        return _Call(found["name"], self._close_bracket(self._sum()))

    def _close_bracket(self, inside: _Node) -> _Node:
        if not self._next(")"):
            rest = self.text[self._at :].strip()
            where = f' before "{rest:.40}"' if rest else " at the end"
            raise ExpressionError(f"expected a closing bracket{where}")
        return inside


def _add_errors(error: float | None, more: float | None) -> float | None:
    return None if error is None or more is None else error + more


def _values(
    name: str, metrics: Mapping[str, Metric], point: Mapping[str, Any]
) -> list[Value | str]:
    """Find a name's values, or the reasons why there are none."""
    found = {metric: each for metric, each in metrics.items() if fnmatchcase(metric, name)}
    if not found and name in point:
        number = axis_number(point[name])
        return [f"{name} is no number at this point" if number is None else Value(number, None)]
    if not found:
        return [f"this run has no {name}"]
    return [
        f"{metric} is undefined" if each.value is None else Value(each.value, _unit(each))
        for metric, each in found.items()
    ]


def _unit(metric: Metric) -> dict[str, int]:
    return {} if metric.unit == "1" else {metric.unit: 1}


def _check_formula(formula: str) -> str:
    read_expression(formula)
    return formula


@cache
def read_expression(text: str) -> Expression:
    """Read an expression, once.

    Raises: ExpressionError if the text does not follow the grammar.
    """
    return Expression(text)


class Derived(Record):
    """A metric that an experiment computes from others; in a file, the formula alone suffices."""

    formula: Annotated[str, AfterValidator(_check_formula)] = Field(
        description="numbers, metrics such as goodput.left, several such as goodput.* within sum, "
        "mean, median, min, max or count, and axes of the matrix, with + - * / and brackets"
    )
    meaning: str = Field(default="", max_length=300, description="what it means, for people")

    @property
    def expression(self) -> Expression:
        """The formula, read."""
        return read_expression(self.formula)


def _of_formula(given: Any) -> Any:
    return {"formula": given} if isinstance(given, str) else given


# Derived metrics by name; a formula alone stands for one.
DerivedByName = dict[
    Name, Annotated[Derived, BeforeValidator(_of_formula, json_schema_input_type=Derived | str)]
]


def derived_problems(
    asked: Mapping[str, Derived],
    metrics: Collection[str],
    axes: Collection[str],
    *,
    whole: bool = True,
) -> Iterator[str]:
    """List names that metrics or axes have already, and what their formulas do not find.

    Args:
        asked: derived metrics by name; a formula may have those before it.
        metrics: the names of all metrics of the run.
        axes: the names of the matrix's axes.
        whole: False if the metrics are those of one point of several.
    """
    known = [*metrics]
    families = {name.partition(".")[0] for name in metrics}
    for name, each in asked.items():
        if name in families:
            yield f"metrics.{name}: every run has a metric of this name; choose another"
        if name in axes:
            yield f"metrics.{name}: an axis has this name; choose another"
        for problem in each.expression.problems(known, axes, whole=whole):
            yield f"metrics.{name}: {problem}"
        known.append(name)


def with_derived(
    metrics: Mapping[str, Metric], asked: Mapping[str, Derived], point: Mapping[str, Any]
) -> tuple[dict[str, Metric], dict[str, str]]:
    """Add derived metrics to a run's metrics.

    Args:
        metrics: the run's metrics by name.
        asked: derived metrics by name, in the order in which they are computed.
        point: the point's values by axis.

    Returns: all metrics, and for undefined ones the reason by name.
    """
    found, reasons = dict(metrics), dict[str, str]()
    for name, each in asked.items():
        try:
            found[name] = each.expression.metric(found, point)
        except UndefinedError as reason:
            found[name] = Metric(value=None, unit="1")
            reasons[name] = str(reason)
    return found, reasons


_NAMED = TypeAdapter(DerivedByName)


def read_asked(given: Sequence[str]) -> tuple[list[str], dict[str, Derived]]:
    """Read metrics that a user asks for: names, and those given as NAME=FORMULA.

    Raises: ExpressionError, with the name, if a name or a formula is none of a file's.
    """
    names, derived = [], dict[str, Derived]()
    for each in given:
        name, equals, formula = (part.strip() for part in each.partition("="))
        if name in derived or (equals and name in names):
            raise ExpressionError(f"{name:.80}: given twice")
        names.append(name)
        if equals:
            try:
                derived |= _NAMED.validate_python({name: formula})
            except ValidationError as error:
                (problem, *_) = error.errors()
                raise ExpressionError(f"{name or each:.80}: {demand(problem)}") from error
    return names, derived
