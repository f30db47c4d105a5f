"""Fixtures for tests on the real guest."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from twoway.build import Flavour, Guest, find_guest

ROOT = Path(__file__).resolve().parent.parent

# A second and a half of two-way traffic on a fast link: enough of everything, soon over.
SMALL: dict[str, Any] = {
    "schema": 1,
    "title": "A small two-way exchange",
    "summary": "For tests.",
    "topology": {"name": "two_node"},
    "profile": "atm-131mbit",
    "stack": {"mtu_bytes": 9180},
    "flows": [
        {"name": "left", "from": "h1", "to": "h2", "congestion": "fixed", "window_packets": 28},
        {"name": "right", "from": "h2", "to": "h1", "congestion": "fixed", "window_packets": 20},
    ],
    "duration_s": 1.5,
    "warm_up_s": 0.5,
}

Run = Callable[..., subprocess.CompletedProcess[str]]


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


def write_experiment(folder: Path, document: dict[str, Any], name: str = "small") -> Path:
    """Write an experiment file."""
    path = folder / f"{name}.yml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return path


def twoway(*arguments: str | Path, **settings: Any) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does, and keep what it says."""
    return subprocess.run(
        [sys.executable, "-m", "twoway.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=settings.pop("cwd", ROOT),
        **settings,
    )


def run_small(experiment: Path, results: Path, **settings: Any) -> Path:
    """Run an experiment that must end well; its folder."""
    done = twoway("run", experiment, "--results", results, **settings)
    assert done.returncode == 0, done.stderr
    return (results / "latest").resolve()


def metrics(folder: Path) -> dict[str, Any]:
    """A run's metrics.json."""
    document: dict[str, Any] = json.loads((folder / "metrics.json").read_text())
    return document


def guest_processes(folder: Path) -> list[str]:
    """Command lines of processes on the host that name a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in line and "bwrap" in line:
            found.append(line)
    return found
