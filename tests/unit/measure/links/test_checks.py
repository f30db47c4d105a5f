"""Fidelity checks of elements are found by their type, not by their name."""

import typing
from types import FunctionType

import pytest
from capture_analysis.discovery import modules_of

from twoway.contract.metrics import FidelityRow
from twoway.measure import links
from twoway.measure.link_check import QueueCheck, RunCheck, checks_of_links


@pytest.mark.parametrize("module", modules_of(links), ids=lambda module: module.__name__)
def test_a_function_that_returns_rows_is_a_check(module: object) -> None:
    """No public function of an element's file returns fidelity rows without being a check."""
    functions = [each for each in vars(module).values() if isinstance(each, FunctionType)]
    returns = {each.__name__: typing.get_type_hints(each).get("return") for each in functions}
    rows = [name for name, kind in returns.items() if kind == list[FidelityRow]]
    assert [name for name in rows if not name.startswith("_")] == []


def test_each_element_with_a_check_is_found() -> None:
    """The checks of queues and of runs are found in the order of the elements' files."""
    queues = [each.rows.__module__.rpartition(".")[2] for each in checks_of_links(QueueCheck)]
    runs = [each.rows.__module__.rpartition(".")[2] for each in checks_of_links(RunCheck)]
    assert queues == sorted(queues)
    assert {"delay", "loss", "policer"} <= set(queues)
    assert "loss" in runs
