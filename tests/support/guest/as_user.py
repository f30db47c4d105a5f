"""Run a guest or a program in the sandbox as a user without rights, though pytest runs as root.

    as_user.py guest FOLDER KERNEL PROGRAMS           boot a guest on a run's folder, and pack it
    as_user.py program FOLDER KERNEL PROGRAMS ARG...  run a program in the sandbox
    as_user.py topology FOLDER KERNEL PROGRAMS FILE   load a topology

Prints the program's output, or the guest's error.
"""

import subprocess
import sys
from pathlib import Path

from twoway.backends import uml
from twoway.backends.sandbox import places
from twoway.confinement import confined_command
from twoway.description.topology import load_topology
from twoway.errors import RunError
from twoway.guest.cache import Guest
from twoway.runs.captures import pack

WAYS_OUT = Path(__file__).with_name("ways_out.py")


def main() -> None:
    """Carry out the arguments."""
    what, folder, kernel, programs, *argv = sys.argv[1:]
    if what == "guest":
        try:
            uml.run(
                Guest(Path(kernel), Path(programs), "", False, ""), Path(folder), lambda _: None
            )
        except RunError as error:
            print(error)
        pack(Path(folder))
        return
    if what == "topology":
        print(*load_topology(Path(argv[0]), {}).nodes)
        return
    visible = places(Path(programs), Path(kernel), {"/mnt/ways_out.py": WAYS_OUT})
    subprocess.run([*confined_command(visible, Path(folder), shm_mib=64), *argv], check=True)


if __name__ == "__main__":
    main()
