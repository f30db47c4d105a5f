"""Expressions over metrics, and a row of verdicts in words."""

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from twoway.contract.expression import (
    LONGEST,
    Derived,
    ExpressionError,
    UndefinedError,
    derived_problems,
    read_asked,
    read_expression,
    with_derived,
)
from twoway.contract.metrics import Metric
from twoway.contract.model import demand

METRICS = {
    "goodput.bbr": Metric(value=6.0, unit="Mbit/s"),
    "goodput.cubic-1": Metric(value=1.0, unit="Mbit/s"),
    "goodput.cubic-2": Metric(value=3.0, unit="Mbit/s"),
    "rtt_p95.bbr": Metric(value=50.0, unit="ms"),
    "jain_index": Metric(value=None, unit="1"),
}


@pytest.mark.parametrize(
    ("formula", "value", "unit"),
    [
        ("goodput.bbr / sum(goodput.*)", 0.6, "1"),
        ("mean(goodput.cubic-*)", 2, "Mbit/s"),
        ("max(goodput.*) - min(goodput.*)", 5, "Mbit/s"),
        ("count(goodput.*)", 3, "1"),
        ("goodput.bbr/rtt_p95.bbr", 0.12, "Mbit/s/ms"),
        ("-goodput.bbr + 2*(goodput.cubic-1 + goodput.cubic-2)", 2, "Mbit/s"),
        ("1 - 2 - 3", -4, "1"),
        ("8 / 4 / 2", 1, "1"),
        ("2 + 3 * 4", 14, "1"),
        ("median(goodput.*) * buffer", 6, "Mbit/s"),
        ("goodput.bbr / bdp", 12, "Mbit/s"),
    ],
)
def test_values_and_units(formula: str, value: float, unit: str) -> None:
    """Products bind before sums, both to the left; a quotient of equal units has none."""
    expression = read_expression(formula)
    assert list(expression.problems(METRICS, ["buffer", "bdp"])) == []
    found = expression.metric(METRICS, {"buffer": 2, "bdp": "0.5"})
    assert found.value == pytest.approx(value)
    assert found.unit == unit
    assert found.error == 0


def test_errors_of_parts_add_up() -> None:
    """An error of a part becomes one of the whole; a part without a known error leaves none."""
    metrics = METRICS | {"goodput.bbr": Metric(value=6.0, unit="Mbit/s", error=0.5)}
    assert read_expression("2 * goodput.bbr").metric(metrics, {}).error == pytest.approx(1)
    metrics |= {"goodput.bbr": Metric(value=6.0, unit="Mbit/s", error=None)}
    assert read_expression("2 * goodput.bbr").metric(metrics, {}).error is None


@pytest.mark.parametrize(
    ("formula", "reason"),
    [
        ("jain_index * 2", "jain_index is undefined"),
        ("1 / (goodput.bbr - goodput.bbr)", "(goodput.bbr - goodput.bbr) is 0"),
        ("sum(goodput.reno-*)", "this run has no goodput.reno-*"),
        ("goodput.bbr + rtt_p95.bbr", "Mbit/s and ms are no units of one sum"),
        ("1e300 * 1e300", "it is beyond the largest number"),
        ("control * 2", "control is no number at this point"),
    ],
)
def test_an_undefined_part_is_the_reason(formula: str, reason: str) -> None:
    """An expression with an undefined part, a zero divisor or mixed units has that as reason."""
    asked = {"x": Derived(formula=formula)}
    found, reasons = with_derived(METRICS, asked, {"control": "reno"})
    assert found["x"].value is None
    assert reasons == {"x": reason}


@pytest.mark.parametrize(
    ("formula", "problem"),
    [
        ("goodput.*", '"goodput.*" is several numbers: sum(goodput.*)'),
        ("sum(goodput.* * 2)", '"goodput.*" is several numbers'),
        ("goodput.bbbr", 'no metric or axis "goodput.bbbr"; did you mean "goodput.bbr"?'),
        ("goodput.bbr-goodput.cubic-1", "have spaces around the sign"),
        ("goodput.bbr*100", "have spaces around the sign"),
        ("sum(gooodput.*)", 'no metric or axis "gooodput.*"'),
        ("sum(goodput.reno-*)", 'no metric or axis "goodput.reno-*"'),
        ("goodput.bbr / (2 - 2)", 'the divisor "(2 - 2)" is 0'),
        ("1e999 * goodput.bbr", "1e999 is beyond the largest number"),
        ("buffers * 2", 'no metric or axis "buffers"; did you mean "buffer"?'),
    ],
)
def test_names_that_do_not_exist(formula: str, problem: str) -> None:
    """A name of no metric or axis is a problem with a suggestion; a divisor of 0 is another."""
    (found,) = derived_problems({"x": Derived(formula=formula)}, METRICS, ["buffer"])
    assert found.startswith("metrics.x: ")
    assert problem in found


def test_a_name_that_every_run_has_is_refused() -> None:
    """A derived metric must not have the name of a metric; it may use those before it."""
    asked = {"goodput": Derived(formula="1"), "y": Derived(formula="1 + 1")}
    (problem,) = derived_problems(asked | {"z": Derived(formula="y * 2")}, METRICS, [])
    assert problem == "metrics.goodput: every run has a metric of this name; choose another"
    (problem,) = derived_problems({"y": asked["y"]}, METRICS, ["y"])
    assert problem == "metrics.y: an axis has this name; choose another"
    found, _ = with_derived(METRICS, {"y": asked["y"], "z": Derived(formula="y * 2")}, {})
    assert found["z"].value == 4


@pytest.mark.parametrize(
    ("formula", "error"),
    [
        ("", "expected a number, a name or a bracket at the end"),
        ("1 2", 'expected an operator before "2"'),
        ("(1 + 2", "expected a closing bracket at the end"),
        ("2 ** 3", 'expected a number, a name or a bracket at "* 3"'),
        ("exec(goodput.bbr)", 'no function "exec"; there are sum, mean,'),
        ("__import__('os')", "expected a number"),
        ("1" * (LONGEST + 1), f"has more than {LONGEST} characters"),
        ("(" * LONGEST, "at the end"),
    ],
)
def test_what_is_no_expression(formula: str, error: str) -> None:
    """Text outside the grammar is refused with the place at which it leaves it."""
    with pytest.raises(ExpressionError, match=re.escape(error)):
        read_expression(formula)


def test_a_bad_formula_is_named_with_its_field() -> None:
    """A file's error names the field, what is wrong with the formula, and the formula."""
    with pytest.raises(ValidationError) as refused:
        Derived(formula="1 2")
    (error,) = refused.value.errors()
    assert error["loc"] == ("formula",)
    assert demand(error) == 'expected an operator before "2"'


@pytest.mark.parametrize("name", ["", "a b", "<b>", "é", "x" * 33, "goodput.bbr"])
def test_a_name_on_the_command_line_is_one_of_a_file(name: str) -> None:
    """--metric NAME=FORMULA takes the names that `metrics:` of a file takes."""
    with pytest.raises(ExpressionError, match="must be at most 32 letters, digits, _ and -"):
        read_asked([f"{name}=1 + 1"])


def test_a_name_on_the_command_line_has_one_formula() -> None:
    """The second formula of a name would take the place of the first without a word."""
    with pytest.raises(ExpressionError, match=r"^x: given twice$"):
        read_asked(["x=1 + 1", "x=2 + 2"])


TOKENS = [*METRICS, "goodput.*", "buffer", "1", "0", "1e300", *"+-*/()", "sum(", "count(", "$"]


@given(st.lists(st.sampled_from(TOKENS), max_size=12).map(" ".join))
def test_any_text_is_read_or_refused(formula: str) -> None:
    """Any text is an expression with or without a value, or is refused; nothing else happens."""
    with suppress(ExpressionError, UndefinedError):
        expression = read_expression(formula)
        if not list(expression.problems(METRICS, ["buffer"])):
            assert expression.metric(METRICS, {"buffer": 2}).value is not None
