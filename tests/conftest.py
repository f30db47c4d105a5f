"""Fixtures for tests on the real guest, and the marks that folders of tests give."""

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from documents import complaints, finished_runs
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


@pytest.fixture(scope="module", autouse=True)
def sound_documents(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Hold the documents of every run that tests of a guest or a lab make to their schemas."""
    if not any(request.path.is_relative_to(_HERE / folder) for folder in ("guest", "lab")):
        yield
        return
    made = tmp_path_factory.getbasetemp()
    before = finished_runs(made)
    yield
    assert [text for run in sorted(finished_runs(made) - before) for text in complaints(run)] == []


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """An experiment file with a short two-way exchange."""
    return write_experiment(tmp_path, SMALL)
