"""The programs that build the guest."""

import subprocess
import sys
import time
from pathlib import Path

BUILDING = (
    "from twoway.guest.kernel import call; call(['sh', '-c', 'echo $$ > pid; exec sleep 99'])"
)


def test_a_build_that_is_killed_leaves_nothing_running(tmp_path: Path) -> None:
    """The programs that a build has started end with it, even if it is killed."""
    with subprocess.Popen([sys.executable, "-c", BUILDING], cwd=tmp_path) as build:
        started = tmp_path / "pid"
        while not (started.is_file() and started.read_text()):
            time.sleep(0.01)
        build.kill()
    child = Path("/proc", started.read_text().strip())
    for _ in range(500):
        if not child.is_dir() or "(zombie)" in (child / "status").read_text():
            return
        time.sleep(0.01)
    raise AssertionError("it is still running")
