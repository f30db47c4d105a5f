"""The backend `native` on a stock kernel that it may change: runs as root in QEMU.

Runs an experiment to its end, then another that is killed with SIGKILL while traffic flows. After
each the machine must be unchanged. Prints the differences; nothing if there are none. The
experiment is the run folder's experiment.yml, which its plan.json carries: only that reaches the
guest.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

RUN, CACHE = Path("/mnt/run"), Path("/tmp/cache")
# Results have a link to the latest run, and a guest may leave none in RUN.
RESULTS = Path("/tmp/results")
PATIENCE_S = 60.0


def prepare(experiment: Path) -> None:
    """Give this guest the kernel configuration that an installed one has, and our programs."""
    from twoway.backends.native import _key

    experiment.write_text(json.loads((RUN / "plan.json").read_text())["experiment"])
    os.environ["XDG_CACHE_HOME"] = str(CACHE)
    release = os.uname().release
    (Path("/boot") / f"config-{release}").symlink_to(f"/mnt/boot/config-{release}")
    (CACHE / "twoway/programs").mkdir(parents=True)
    (CACHE / "twoway/programs" / _key(release, {})).symlink_to("/mnt/bin")


def state() -> dict[str, object]:
    """Describe everything that a run could leave on this machine."""
    spaces = {_space(path) for path in Path("/proc").glob("[0-9]*/ns/net")}
    return {
        "network namespaces": len(spaces - {""}),
        "links": sorted(path.name for path in Path("/sys/class/net").iterdir()),
        "our modules": sorted(p.name for p in Path("/sys/module").glob("tcp_fixed")),
        "limits": [
            (Path("/proc/sys") / name).read_text()
            for name in ("net/core/rmem_max", "net/core/wmem_max", "net/ipv4/tcp_mem")
        ],
        "written down": Path("/run/twoway/changes.json").exists(),
    }


def _space(path: Path) -> str:
    """Return a process's network namespace; empty if the process has ended."""
    try:
        return str(path.readlink())
    except OSError:
        return ""


def start(experiment: Path) -> subprocess.Popen[bytes]:
    """Start a run in a process of its own, without the analysis."""
    program = (
        "import sys; from pathlib import Path; from twoway.runs.points import load_point;"
        "from twoway.backends.native import make_native;"
        "from twoway.runs.run import run_experiment;"
        "run_experiment(load_point(sys.argv[1]), make_native(), Path(sys.argv[2]))"
    )
    return subprocess.Popen([sys.executable, "-c", program, str(experiment), str(RESULTS)])


def kill_amid_traffic(experiment: Path) -> None:
    """Kill a run while its traffic flows, and wait until the machine is free again."""
    process = start(experiment)
    acked = 0
    while not acked:
        time.sleep(0.2)
        for path in RESULTS.glob("*/.running-*/sockets/progress.json"):
            acked = _acked(path)
        if process.poll() is not None:
            print("the run to be killed ended by itself")
            return
    process.send_signal(signal.SIGKILL)
    process.wait()
    subprocess.run(["flock", "/run/twoway/lock", "true"], timeout=PATIENCE_S, check=True)


def _acked(path: Path) -> int:
    try:
        return int(json.loads(path.read_text())["acked_bytes"])
    except (OSError, ValueError):
        return 0


def main() -> int:
    """Carry out a run that ends and one that is killed; report the changes of each."""
    experiment = RUN / "experiment.yml"
    prepare(experiment)
    before = state()
    status = start(experiment).wait()
    if status:
        print(f"native: the run's exit status is {status}")
    changed = [("after a run", state())]
    kill_amid_traffic(experiment)
    changed.append(("after kill -9", state()))
    for when, now in changed:
        for what, value in now.items():
            if value != before[what]:
                print(f"native: {when}: {what}: {before[what]} before, {value} now")
    (RUN / "native.json").write_text(json.dumps({"before": before, "after": changed}))
    return status


if __name__ == "__main__":
    sys.exit(main())
