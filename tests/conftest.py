"""Fixtures for tests on the real guest, and the marks that folders of tests give."""

from pathlib import Path
from typing import get_args

import pytest
from running import SMALL, write_experiment

from twoway.guest.build import Flavour, Guest, find_guest

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is in tests/guest and tests/lab as needing the guest's kernel."""
    for item in items:
        if any(item.path.is_relative_to(_HERE / folder) for folder in ("guest", "lab")):
            item.add_marker("guest")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `make test-sanitized` put the same tests to another kernel."""
    parser.addoption(
        "--guest", choices=get_args(Flavour), default="guest", help="the guest that tests run in"
    )


@pytest.fixture(scope="session")
def guest(pytestconfig: pytest.Config) -> Guest:
    """The guest that `make setup` or `make test-sanitized` built."""
    flavour = pytestconfig.getoption("guest")
    built = find_guest(flavour)
    if built is None:
        pytest.fail(f"the {flavour} guest is not built: run `make setup` or `make test-sanitized`")
    return built


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """An experiment file with a short two-way exchange."""
    return write_experiment(tmp_path, SMALL)
