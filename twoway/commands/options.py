"""Options and output functions that several subcommands share."""

import argparse
import os
import sys
from pathlib import Path

from twoway.backends.registry import kinds
from twoway.paths import EXPERIMENTS, ROOT


def at_least_one(text: str) -> int:
    """Read a whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'must be a whole number from 1, got "{text}"')
    return int(text)


JSON = ("--json", {"action": "store_true", "help": "machine-readable output on stdout"})
RESULTS = (
    "--results",
    {
        "type": Path,
        "default": ROOT / "results",
        "metavar": "FOLDER",
        "help": "where runs are kept (default: results/)",
    },
)
BACKEND = (
    "--backend",
    {
        "choices": tuple(kinds()),
        "default": "uml",
        "help": "where it runs: "
        + "; ".join(f"{kind.name}, {kind.help}" for kind in kinds().values() if kind.help),
    },
)
WORKERS = (
    "--workers",
    {
        "type": at_least_one,
        "default": len(os.sched_getaffinity(0)),
        "metavar": "N",
        "help": "how many points of a sweep run at once (default: a processor each, %(default)s)",
    },
)

SCHEDULER = (
    "--scheduler",
    {
        "metavar": "ADDRESS",
        "help": "have a lab's workers run the points: Dask's scheduler, as tls://lab1:8786",
    },
)
CERTIFICATES = (
    "--certificates",
    {
        "type": Path,
        "default": Path("~/.config/twoway/lab"),
        "metavar": "FOLDER",
        "help": "for --scheduler tls://...: ca.crt, client.crt, client.key (default: %(default)s)",
    },
)
CREW = (WORKERS, SCHEDULER, CERTIFICATES)


def all_ids() -> list[str]:
    """List the ids of all experiments."""
    return sorted(path.stem for path in EXPERIMENTS.glob("*.yml"))


def complain(text: str) -> None:
    """Print an error on standard error, each line after the program's name."""
    for line in text.splitlines():
        print(f"twoway: {line}", file=sys.stderr)


def shown(path: Path) -> Path:
    """Shorten a path for display: relative to the current folder if below it."""
    path = path.resolve()
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
