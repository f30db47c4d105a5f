"""A plugin of pytest: every ten seconds one line says where tests on several processes are."""

import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

EVERY_S = 10
_MOST_NAMED = 4

# A report's category, letter and word.
Status = tuple[str, str, Any]


class Whereabouts:
    """Counts ended tests, knows those that run, and prints both in place of dots."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._began = time.monotonic()
        self._running: dict[str, float] = {}
        self._ended = self._failed = 0
        self._over = threading.Event()

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Begin to print."""
        threading.Thread(target=self._print, args=(session,), daemon=True).start()

    def pytest_sessionfinish(self) -> None:
        """End printing before the summary."""
        self._over.set()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note that a test runs."""
        self._running[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Note that a test has ended."""
        self._running.pop(nodeid, None)
        self._ended += 1

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Name a failure at once."""
        if report.failed:
            self._failed += 1
            self._write(f"FAILED {report.nodeid}")

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Generator[None, Status, Status]:
        """Count a test, and print no letter."""
        category, _, word = yield
        return category, "", word

    def line(self, total: int) -> str:
        """Tell how far the tests are, and which ones run, the longest first."""
        now = time.monotonic()
        minutes, seconds = divmod(int(now - self._began), 60)
        oldest = sorted(self._running.items(), key=lambda each: each[1])
        names = [f"{Path(nodeid).name} {now - began:.0f} s" for nodeid, began in oldest]
        more = ["..."] if len(names) > _MOST_NAMED else []
        failed = f", {self._failed} failed" if self._failed else ""
        running = "; ".join(names[:_MOST_NAMED] + more)
        return (
            f"{minutes}:{seconds:02}  {self._ended} of {total or '?'}{failed}  {running}".rstrip()
        )

    def _print(self, session: pytest.Session) -> None:
        while not self._over.wait(EVERY_S):
            self._write(self.line(session.testscollected))

    def _write(self, line: str) -> None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter:
            reporter.ensure_newline()
            reporter.write_line(line)
            reporter.flush()


def pytest_configure(config: pytest.Config) -> None:
    """Print where tests are if several processes run them; workers print nothing."""
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Whereabouts(config))
