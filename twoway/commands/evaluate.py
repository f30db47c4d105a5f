"""The subcommand for programs that search: requests in JSON lines, answers in JSON lines."""

import argparse
import json
import sys
from io import TextIOWrapper

from twoway.commands.options import KERNEL, LONGEST, WORKERS

HELP = "answer requests of a program: a JSON object a line on stdin, an answer a line on stdout"
OPTIONS = (LONGEST, WORKERS, KERNEL)


def run(args: argparse.Namespace) -> int:
    """Answer each line of stdin; the exit code is 0 however the runs end."""
    from twoway.backends.registry import find_backend
    from twoway.errors import UsageError
    from twoway.sweeps.evaluate import evaluate

    if not isinstance(sys.stdin, TextIOWrapper):
        raise UsageError("stdin is closed; requests come from it, a JSON object a line")
    sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    backend = find_backend("uml", args.kernel)
    for answer in evaluate(sys.stdin, backend, count=args.workers, longest_s=args.longest):
        print(json.dumps(answer), flush=True)
    return 0
