"""The subcommand that opens a network in the guest."""

import argparse
import subprocess
import sys
from itertools import takewhile

from twoway.commands.options import EXPERIMENT
from twoway.messages import say

HELP = "the network in the guest, with Mininet's prompt"
OPTIONS = (EXPERIMENT,)
# Mininet's commands, in the guest's folder (vm/guest/run.py).
_COMMANDS = "commands"


def run(args: argparse.Namespace) -> int:
    """Boot the guest, set up an experiment's network and connect the terminal.

    The guest has the host's clock: virtual time would skip ahead whenever the person at the prompt
    pauses. Without a terminal the lines on standard input are carried out, up to `exit`; input that
    the guest receives before it listens is lost.

    Returns: 0 if the user left the prompt, 1 if the guest failed.
    """
    from twoway.backends import uml
    from twoway.backends.sandbox import furnish, guest_error, guest_status
    from twoway.contract.folders import remove_folder
    from twoway.contract.plan import PLAN
    from twoway.guest.cache import built_guest
    from twoway.paths import cache
    from twoway.plan.plan import build_plan
    from twoway.runs.points import load_point
    from twoway.runs.run import new_folder

    point, guest = load_point(args.experiment), built_guest()
    lines = None if sys.stdin.isatty() else takewhile(_goes_on, sys.stdin)
    leave = "" if lines else "\nleave with `exit` or Ctrl-D"
    say(f"{point.id}: {point.experiment.title}{leave}")
    folder, lock = new_folder(cache() / "shell")
    try:
        build_plan(point, mode="shell").write(folder / PLAN)
        home = furnish(folder, ("uml",))
        if lines:
            (home / _COMMANDS).write_text("".join(lines))
        done = subprocess.run(
            uml.command(guest, home, virtual_time=False),
            stdin=subprocess.DEVNULL if lines else None,
            check=False,
        )
        error, status = guest_error(home), guest_status(home)
        if error is None and status is None:
            error = f"the guest died (exit status {done.returncode})"
        elif error is None and status != "0":
            error = f"the guest's runner failed (exit status {status:.80})"
        if error is not None:
            say(error, wrong=True)
        return 0 if error is None else 1
    finally:
        remove_folder(folder)
        lock.close()


def _goes_on(line: str) -> bool:
    return line.strip() not in ("exit", "quit")
