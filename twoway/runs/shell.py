"""Mininet's prompt in the guest, with an experiment's network.

Not in virtual time, which would skip ahead whenever the person at the prompt pauses.
"""

import subprocess
import tempfile
from pathlib import Path

from twoway.backends import uml
from twoway.backends.sandbox import furnish, guest_error
from twoway.contract.plan import PLAN
from twoway.guest.build import Guest
from twoway.messages import say
from twoway.plan.plan import build_plan
from twoway.spec.point import Case


def open_shell(case: Case, guest: Guest) -> int:
    """Boot the guest, set up the network and connect the terminal.

    Returns: 0 if the user left the prompt, 1 if the guest failed.
    """
    say(f"{case.id}: {case.experiment.title}\nleave with `exit` or Ctrl-D", markup=False)
    with tempfile.TemporaryDirectory(prefix="twoway-shell-") as scratch:
        folder = Path(scratch)
        build_plan(case, mode="shell").write(folder / PLAN)
        home = furnish(folder, ("uml",))
        done = subprocess.run(uml.command(guest, home, virtual_time=False), check=False)
        error = guest_error(home)
        if error is not None:
            say(error, markup=False, wrong=True)
        return 1 if error is not None or done.returncode else 0
