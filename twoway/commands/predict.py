"""The subcommand that writes the predictions for experiments."""

import argparse

from twoway.commands.options import EXPERIMENTS_OR_ALL, all_ids, complain, option, shorten_path
from twoway.messages import say

HELP = "write predicted values beside an experiment's file, to commit before the first run"
_HINT = "`twoway predict {}` writes it again; `git diff` then shows what changed"
OPTIONS = (
    EXPERIMENTS_OR_ALL,
    option(
        "--check", action="store_true", help="write nothing; exit code 1 if a file is out of date"
    ),
)


def run(args: argparse.Namespace) -> int:
    """Write or check the predicted values of experiments."""
    from twoway.runs import predicted

    names = args.experiments or all_ids()
    if not args.check:
        for path in dict.fromkeys(filter(None, map(predicted.write, names))):
            say(str(shorten_path(path)))
        return 0
    stale = [name for name in names if not predicted.is_up_to_date(name)]
    for name in stale:
        where = shorten_path(predicted.predictions_file(name))
        complain(f"{where}: differs from today's predictions of {name}", _HINT.format(name))
    return 1 if stale else 0
