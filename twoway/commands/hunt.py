"""The subcommand that searches for experiments in which a congestion control does badly."""

import argparse
import json
import textwrap
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

from twoway.commands.options import (
    JSON,
    KERNEL,
    RESULTS,
    WORKERS,
    at_least_one,
    option,
    shorten_path,
)
from twoway.errors import UsageError
from twoway.messages import say

HELP = "small experiments in which a congestion control starves, harms others, or loses throughput"
_UNITS = {"s": 1, "m": 60, "h": 3600}
_GOALS = """\
goals, each with an equal part of the budget:
  starves  beside CUBIC or Reno, it gets less than a tenth
  harms    it leaves such a flow less than a tenth
  loses    alone, it uses less than half of a link
  shrew    beside periodic bursts of losses, it uses less than half of the rest
  locks    it uses less than half of a DTM channel, which follows its rate
  stalls   with such bursts, it sends nothing for a second

example: twoway hunt bbr --budget 10m; twoway run hunt/bbr-harms.yml
A second call with the same seed draws the same experiments, takes the results that it has,
and goes on. Another seed draws others."""


def budget(text: str) -> float:
    """Read a wall time with its unit, s."""
    number, unit = text[:-1], _UNITS.get(text[-1:])
    if unit is None or not number.isdecimal() or not 0 < int(number) * unit <= 86_400:
        raise argparse.ArgumentTypeError(f'must be as 30s, 10m or 2h, at most 24h, got "{text}"')
    return float(int(number) * unit)


def describe(parser: argparse.ArgumentParser) -> None:
    """Describe the goals below the command's help, line by line."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = textwrap.fill(parser.epilog or "", 80)
    parser.description = f"{HELP}\n\n{_GOALS}"


OPTIONS = (
    option("control", help="a congestion control that an experiment may name"),
    option(
        "--budget",
        type=budget,
        default="10m",
        metavar="TIME",
        help="wall time of the search, such as 30s, 10m or 2h (default: %(default)s)",
    ),
    option("--seed", type=at_least_one, default=1, metavar="N", help="of the draws (default: 1)"),
    option(
        "--to",
        type=Path,
        default=Path("hunt"),
        metavar="FOLDER",
        help="where finds, and results of the search, are kept (default: %(default)s)",
    ),
    JSON,
    RESULTS,
    WORKERS,
    KERNEL,
)


def run(args: argparse.Namespace) -> int:
    """Search, and print the finds with their causes."""
    if find_spec("hypothesis") is None:
        raise UsageError("hunt needs Hypothesis", "pip install 'twoway[hunt]', or hypothesis")
    from twoway.backends.registry import find_backend
    from twoway.report.flow_table import align_columns
    from twoway.sweeps.hunt import GOALS, Hunt, hunt

    try:
        args.to.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--to: {args.to}: {error.strerror}") from error
    backend = find_backend("uml", args.kernel)
    asked = Hunt(args.control, backend, args.to, args.results, args.workers)
    finds, runs = hunt(asked, args.budget, args.seed)
    if args.json:
        print(json.dumps([asdict(find) for find in finds], indent=1))
    elif finds:
        rows = [("goal", "by", "decided by", "experiment")]
        rows += [
            (f.goal, f"{f.badness:.3g}", f.cause, str(shorten_path(Path(f.file)))) for f in finds
        ]
        print(*align_columns(rows, left=4), sep="\n")
    for find in finds:
        say(f"{find.file}: {args.control} {GOALS[find.goal].says}")
    missing = [name for name in GOALS if name not in {find.goal for find in finds}]
    if missing:
        say(f"nothing found in this time: {', '.join(missing)}")
    say(f"{runs} runs with the seed {args.seed}; again, or with another seed, it goes on")
    return 0
