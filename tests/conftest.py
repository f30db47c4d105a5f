"""Fixtures and the mark of tests on the real guest, and the order of test files on workers."""

import gc
import os
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import settings
from support.running import SMALL, write_experiment
from support.runs import complaints, finished_runs, remove_old_runs
from support.today import DAY, DAYS
from support.whereabouts import pytest_configure  # noqa: F401 - the hook

from twoway.guest.cache import Guest, find_guest
from twoway.guest.source import Flavour

# Hundreds of tests run `twoway`, and a machine may limit it to one compilation.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# A job in the background ignores Ctrl-C, and so would all processes that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
# No test asserts a time: on a loaded machine an example of Hypothesis may take any time.
settings.register_profile(
    "any machine", deadline=None, max_examples=int(os.environ.get("EXAMPLES", "25"))
)
settings.load_profile("any machine")

_HERE = Path(__file__).parent
# The longest files begin first, so that no worker has one left at the end.
_FIRST = ("lab", "guest", "slow")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Keep the runs of tests within their space; workers do not."""
    if not hasattr(session.config, "workerinput"):
        remove_old_runs()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect no garbage while tests are collected: modules and items stay, and there are many."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """Mark tests with the fixture `guest` as `guest`, and those of a LAYER as slow; order files.

    With SEVENTH in the environment the date chooses a seventh of the files that are left.
    """
    layers = {line.partition(":")[0] for line in config.getini("markers") if "LAYER=" in line}
    for item in items:
        if "guest" in getattr(item, "fixturenames", ()):
            item.add_marker("guest")
        if any(mark.name in layers for mark in item.iter_markers()):
            item.add_marker("slow")
    yield
    if os.environ.get("SEVENTH"):
        todays = set(sorted({item.path for item in items})[DAY::DAYS])
        config.hook.pytest_deselected(items=[item for item in items if item.path not in todays])
        items[:] = [item for item in items if item.path in todays]
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    names = {mark.name for mark in item.iter_markers()}
    if item.path.is_relative_to(_HERE / "lab"):
        names.add("lab")
    return next((rank for rank, name in enumerate(_FIRST) if name in names), len(_FIRST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give a worker all tests of a file that has fixtures of the scope "module", else any test.

    Each worker makes its own fixture of the scope "session", unless it uses `sharing.once`.
    """
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    @cache
    def is_whole(file: str) -> bool:
        return 'scope="module"' in (config.rootpath / file).read_text(encoding="utf-8")

    class ByFile(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::", 1)[0]
            return file if is_whole(file) else nodeid

    return ByFile(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option by which LAYER=sanitized and LAYER=newest run the tests on another kernel."""
    parser.addoption(
        "--guest", choices=get_args(Flavour), default="guest", help="the guest that tests run in"
    )


@pytest.fixture(scope="session")
def guest(pytestconfig: pytest.Config) -> Guest:
    """Return the guest that `make setup` or `make test LAYER=...` built."""
    flavour = pytestconfig.getoption("guest")
    built = find_guest(flavour)
    if built is None:
        layers = {"guest": "setup", "6.1": "test LAYER=newest"}
        target = layers.get(flavour, f"test LAYER={flavour}")
        pytest.fail(f"the {flavour} guest is not built: run `make {target}`")
    return built


@pytest.fixture(scope="module", autouse=True)
def sound_documents(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Check the documents of every run that a test of a guest or a lab makes."""
    if not any(request.path.is_relative_to(_HERE / folder) for folder in ("guest", "lab")):
        yield
        return
    made = tmp_path_factory.getbasetemp()
    before = finished_runs(made)
    yield
    assert [text for run in sorted(finished_runs(made) - before) for text in complaints(run)] == []


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Make an experiment file with a short two-way exchange."""
    return write_experiment(tmp_path, SMALL)
