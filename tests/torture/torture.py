"""Torture sweeps: faults at random moments, and the invariants checked after each.

A sweep of six short points is started again and again. Each round has a fault: a signal to the
sweep or to one of its processes, a simultaneous second sweep, a full disk, a file of a finished run
that is truncated or overwritten. Afterwards nothing may run, be mounted or lie in /tmp, and every
run that looks finished must be whole. Now and then a sweep is left alone: it must end well, with
each point there once and captures equal to those of the very first sweep, byte for byte.

The host's clock is not touched, because other programs use it.
"""

import argparse
import collections
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import yaml
from support.running import SWEPT, WINDOWS

from twoway.manifest import read_manifest

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
DISK_MIB = 128  # a sweep takes 4 MiB, and 64 must stay free
LONGEST_S = 8.0  # approximate duration of a sweep of six points
GRACE_S = 20.0


class BrokenError(Exception):
    """An invariant that must hold after any fault does not hold."""


class Torture:
    """A sweep and its folder, with faults."""

    def __init__(self, folder: Path, draw: random.Random) -> None:
        """Write the experiment.

        Args:
            folder: empty; the results' disk, if we may mount one.
            draw: the random numbers that choose the faults.
        """
        self.folder, self.draw = folder, draw
        self.results = folder / "disk/results"
        self.experiment = folder / "small.yml"
        self.experiment.write_text(yaml.safe_dump(SWEPT, sort_keys=False))
        self.damaged: set[Path] = set()
        self.captures: dict[str, dict[str, str]] = {}
        self.temporary = _temporary()

    def start(self) -> subprocess.Popen[bytes]:
        """Start a sweep in a session of its own."""
        words = [sys.executable, "-m", "twoway.cli", "sweep", str(self.experiment)]
        return subprocess.Popen(
            [*words, "--results", str(self.results)],
            stdout=subprocess.DEVNULL,
            stderr=(self.folder / "said").open("wb"),
            start_new_session=True,
        )

    def moment(self) -> None:
        """Let a random part of a sweep's time pass."""
        time.sleep(self.draw.uniform(0, LONGEST_S))

    def signal(self) -> None:
        """Send the sweep a signal, or the same one twice."""
        with ended(self.start()) as sweep:
            self.moment()
            which = self.draw.choice(SIGNALS)
            for _ in range(self.draw.choice((1, 1, 2))):
                sweep.send_signal(which)
                time.sleep(self.draw.uniform(0, 0.3))

    def kill_a_process(self) -> None:
        """Kill one of the sweep's processes, or stop it for a second."""
        with ended(self.start()) as sweep:
            self.moment()
            below = [pid for pid in self._processes() if pid != sweep.pid]
            if not below:
                return
            victim = self.draw.choice(below)
            which = self.draw.choice((signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM))
            _send(victim, which)
            if which == signal.SIGSTOP:
                time.sleep(1)
                _send(victim, signal.SIGCONT)

    def two_at_once(self) -> None:
        """Run two sweeps of the same points into the same folder; kill one of them."""
        with ended(self.start()), ended(self.start()) as second:
            self.moment()
            second.kill()

    def fill_the_disk(self) -> None:
        """Fill the disk while the sweep runs."""
        ballast = self.results.parent / "ballast"
        try:
            with ended(self.start()):
                self.moment()
                with ballast.open("wb") as file:
                    try:
                        while True:
                            file.write(bytes(1 << 20))
                            file.flush()
                    except OSError:
                        pass
        finally:
            ballast.unlink(missing_ok=True)

    def damage_a_run(self) -> None:
        """Truncate, overwrite or remove a file of a finished run."""
        runs = self._finished()
        if not runs:
            return
        run = self.draw.choice(runs)
        files = sorted(path for path in run.rglob("*") if path.is_file())
        path = self.draw.choice(files)
        whole = path.read_bytes()
        how = self.draw.choice(("cut", "overwritten", "removed"))
        if how == "removed":
            path.unlink()
        elif how == "cut":
            path.write_bytes(whole[: self.draw.randrange(len(whole) + 1)])
        else:
            place = self.draw.randrange(max(len(whole), 1))
            path.write_bytes(whole[:place] + self.draw.randbytes(8) + whole[place + 8 :])
        self.damaged.add(run)

    def leave_alone(self) -> None:
        """Let a sweep end; each point must exist once, with the captures of the first sweep."""
        with ended(self.start(), patience_s=300) as sweep:
            pass
        if sweep.returncode != 0:
            said = (self.folder / "said").read_text(errors="replace")
            raise BrokenError(f"a sweep left alone ended with {sweep.returncode}: {said[-800:]}")
        runs = [run for run in self._finished() if _is_whole(run)]
        found = collections.Counter(run.parent.name for run in runs)
        if len(found) != len(WINDOWS):
            raise BrokenError(f"{len(found)} points of {len(WINDOWS)} are there: {sorted(found)}")
        if twice := [name for name, times in found.items() if times > 1]:
            raise BrokenError(f"more than one sound run of {', '.join(twice)}")
        if left := [str(path) for path in self.results.glob("*/.*")]:
            raise BrokenError(f"left behind: {', '.join(left)}")
        for run in runs:
            digests = read_manifest(run).digests
            captures = {name: digests[name] for name in digests if name.startswith("pcap/")}
            if self.captures.setdefault(run.parent.name, captures) != captures:
                raise BrokenError(f"{run}: other bytes than before")
        if self.draw.random() < 1 / 2:
            shutil.rmtree(self.results)

    def check(self) -> None:
        """Raise BrokenError if an invariant does not hold."""
        deadline = time.monotonic() + GRACE_S
        while left := self._processes():
            if time.monotonic() > deadline:
                raise BrokenError(f"still running: {left}")
            time.sleep(0.1)
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        if mounted := [place for place in mounts if place.startswith(f"{self.results}")]:
            raise BrokenError(f"still mounted: {mounted}")
        if left_over := _temporary() - self.temporary:
            raise BrokenError(f"left in /tmp: {sorted(left_over)}")
        for run in self._finished():
            if run not in self.damaged and not _is_whole(run):
                raise BrokenError(f"{run}: looks finished and is not whole")

    def _finished(self) -> list[Path]:
        """List the runs that look finished."""
        runs = sorted(path.parent for path in self.results.glob("small@*/[0-9]*/manifest.json"))
        return [run for run in runs if run.suffix != ".partial"]

    def _processes(self) -> list[int]:
        """List the processes that name the results' folder."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if os.fsencode(self.results) in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
        return found


def _is_whole(run: Path) -> bool:
    """Tell whether a run's files are unchanged since its end."""
    try:
        return read_manifest(run).list_damaged(run) == []
    except ValueError:
        return False


def _send(pid: int, which: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, which)


def _temporary() -> set[str]:
    return {path.name for path in Path(tempfile.gettempdir()).iterdir() if "twoway" in path.name}


@contextmanager
def ended(
    sweep: subprocess.Popen[bytes], patience_s: float = 60
) -> Iterator[subprocess.Popen[bytes]]:
    """Wait until a sweep ends; a sweep that does not end breaks an invariant."""
    try:
        yield sweep
        sweep.wait(patience_s)
    except subprocess.TimeoutExpired:
        raise BrokenError(f"a sweep has not ended after {patience_s:.0f} s") from None
    finally:
        sweep.kill()
        sweep.wait()


@contextmanager
def small_disk(place: Path) -> Iterator[bool]:
    """Mount a small disk if allowed; return whether that worked."""
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "none", str(place)]
    mounted = os.geteuid() == 0 and subprocess.run(words, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", place], check=True)


def main() -> int:
    """Run a number of rounds; print the faults, and each broken invariant."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    draw, done = random.Random(args.seed), collections.Counter[str]()
    with (
        tempfile.TemporaryDirectory(prefix="torture-") as name,
        small_disk(Path(name, "disk")) as disk,
    ):
        torture = Torture(Path(name), draw)
        faults: list[Callable[[], None]] = [torture.signal, torture.kill_a_process]
        faults += [torture.two_at_once, torture.damage_a_run, torture.leave_alone]
        faults += [torture.fill_the_disk] if disk else []
        torture.leave_alone()
        for number in range(1, args.rounds + 1):
            fault = draw.choice(faults)
            print(f"{number} {fault.__name__}", end="\r", flush=True)
            try:
                fault()
                torture.check()
            except BrokenError as broken:
                print(f"round {number} of seed {args.seed}, {fault.__name__}: {broken}")
                return 1
            done[fault.__name__] += 1
        torture.leave_alone()
    print(", ".join(f"{name} {times}" for name, times in sorted(done.items())))
    print(f"{args.rounds} rounds of seed {args.seed}: all that must hold held")
    return 0


if __name__ == "__main__":
    sys.exit(main())
