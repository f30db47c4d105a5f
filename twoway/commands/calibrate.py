"""The subcommand that measures the error floor of link profiles."""

import argparse
import json

from twoway.commands.options import BACKEND, JSON, KERNEL, NEW_RUNS, option, results_folder

HELP = "measure the error floor of link profiles"
OPTIONS = (
    option("profiles", nargs="*", help="names under tc-profiles/, or files (default: all)"),
    JSON,
    *NEW_RUNS,
    BACKEND,
    KERNEL,
)


def run(args: argparse.Namespace) -> int:
    """Measure the error floor of link profiles with a constant-rate stream."""
    from twoway.backends.registry import find_backend
    from twoway.runs.calibrate import calibrate_profiles

    results = results_folder(args)
    rows = calibrate_profiles(find_backend(args.backend, args.kernel), args.profiles, results)
    if args.json:
        print(json.dumps(rows, indent=1))
    return 0 if all(row["pass"] for row in rows) else 1
