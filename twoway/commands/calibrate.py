"""The subcommand that measures the error floor of link profiles."""

import argparse
import json

from twoway.commands.options import BACKEND, JSON, KERNEL, NEW_RUNS, add_options, results_folder

HELP = "measure the error floor of link profiles"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `calibrate` to its parser."""
    parser.add_argument(
        "profiles", nargs="*", help="names under tc-profiles/, or files (default: all)"
    )
    add_options(parser, JSON, *NEW_RUNS, BACKEND, KERNEL)


def run(args: argparse.Namespace) -> int:
    """Measure the error floor of link profiles with a constant-rate stream."""
    from twoway.backends.registry import find_backend
    from twoway.runs.calibrate import calibrate_profiles

    results = results_folder(args)
    rows = calibrate_profiles(find_backend(args.backend, args.kernel), args.profiles, results)
    if args.json:
        print(json.dumps(rows, indent=1))
    return 0 if all(row["pass"] for row in rows) else 1
