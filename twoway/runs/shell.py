"""Mininet's prompt in the guest, with an experiment's network.

The guest is not in virtual time, which would skip ahead whenever the person at the prompt pauses.
"""

import subprocess
import sys
from itertools import takewhile

from twoway.backends import uml
from twoway.backends.sandbox import furnish, guest_error, guest_status
from twoway.contract.folders import remove_folder
from twoway.contract.plan import PLAN
from twoway.description.point import Point
from twoway.guest.cache import Guest
from twoway.messages import say
from twoway.paths import cache
from twoway.plan.plan import build_plan
from twoway.runs.run import new_folder

# Mininet's commands, in the guest's folder (vm/guest/run.py).
COMMANDS = "commands"


def open_shell(point: Point, guest: Guest) -> int:
    """Boot the guest, set up the network and connect the terminal.

    Without a terminal the lines on standard input are carried out, up to `exit`; input that the
    guest receives before it listens is lost.

    Returns: 0 if the user left the prompt, 1 if the guest failed.
    """
    lines = None if sys.stdin.isatty() else takewhile(_goes_on, sys.stdin)
    leave = "" if lines else "\nleave with `exit` or Ctrl-D"
    say(f"{point.id}: {point.experiment.title}{leave}", markup=False)
    folder, lock = new_folder(cache() / "shell")
    try:
        build_plan(point, mode="shell").write(folder / PLAN)
        home = furnish(folder, ("uml",))
        if lines:
            (home / COMMANDS).write_text("".join(lines))
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
            say(error, markup=False, wrong=True)
        return 0 if error is None else 1
    finally:
        remove_folder(folder)
        lock.close()


def _goes_on(line: str) -> bool:
    return line.strip() not in ("exit", "quit")
