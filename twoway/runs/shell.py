"""An experiment's network to play with: Mininet's prompt in the guest, on the host's clock.

Virtual time would run away while a person types; here it does not run at all.
"""

import subprocess
import tempfile
from pathlib import Path

from twoway.backends import uml
from twoway.backends.sandbox import guest_error
from twoway.contract.writing import write_json
from twoway.guest.build import Guest
from twoway.plan.plan import build_plan
from twoway.progress import say
from twoway.spec.point import Case


def open_shell(case: Case, guest: Guest) -> int:
    """Boot the guest with the experiment's network set up and hand over the terminal.

    Returns: 0 when the prompt was left, 1 if the guest failed.
    """
    say(f"{case.id}: {case.experiment.title}\nleave with `exit` or Ctrl-D", markup=False)
    with tempfile.TemporaryDirectory(prefix="twoway-shell-") as scratch:
        folder = Path(scratch)
        (folder / "uml").mkdir()
        write_json(folder / "plan.json", build_plan(case, mode="shell"))
        done = subprocess.run(uml.command(guest, folder, virtual_time=False), check=False)
        error = guest_error(folder)
        if error is not None:
            say(error, markup=False)
        return 1 if error is not None or done.returncode else 0
