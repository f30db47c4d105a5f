"""The page of all runs in a folder of results."""

from collections.abc import Sequence
from pathlib import Path

from twoway.contract.run_summary import RunSummary
from twoway.report import templated


def write_runs_page(runs: Sequence[RunSummary], path: Path) -> None:
    """Write a page that lists runs, with a field that filters them.

    Args:
        runs: the runs, in the page's order.
        path: the file, in the folder of results.
    """
    templated.write(path, "runs.html.j2", [], runs=runs)
