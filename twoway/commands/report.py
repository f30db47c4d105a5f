"""The subcommand that reports on a finished run again."""

import argparse

from twoway.commands.options import JSON, RESULTS, RUN, add_options
from twoway.commands.reporting import named_run, report_on

HELP = "analyse a finished run again; the latest by default"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `report` to its parser."""
    add_options(parser, RUN, JSON, RESULTS)


def run(args: argparse.Namespace) -> int:
    """Analyse a finished run again; rewrite metrics, verdicts and report."""
    return report_on(named_run(args), as_json=args.json)
