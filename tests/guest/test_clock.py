"""The guest's virtual clock of the series in vm/patches/upstream, on the bare kernel."""

import contextlib
import re
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.runs import kept_output

from twoway.contract.files import sha256
from twoway.guest.cache import Guest

PATIENCE_S = 300
MACHINE = (
    "mem=128M root=/dev/root rootfstype=hostfs rootflags=/ ro con=null con0=null,fd:1 panic=-1"
)
# Kernel options that choose the clock; {folder} has the socket of the external clock.
CLOCKS = {
    "infinite": "time-travel=inf-cpu",
    "infinite, calls cost": "time-travel=inf-cpu time-travel-cost=syscall",
    "external": "time-travel=ext:{folder}/scheduler",
    "basic": "time-travel",
    "host": "",
}
EXACT = ["infinite", "infinite, calls cost", "external"]
# A message between a kernel and its scheduler, with its requests: linux/um_timetravel.h.
MESSAGE = struct.Struct("=IIQ")
ACK, REQUEST, WAIT, GET, UPDATE, RUN = 0, 2, 3, 4, 5, 6


def _schedule(listener: socket.socket) -> None:
    """Schedule a single kernel, if one connects: it runs whenever it requests to."""
    now = wanted = 0
    try:
        kernel, _ = listener.accept()
    except OSError:  # the listener was shut down
        return
    with kernel, contextlib.suppress(ConnectionError):
        while len(message := kernel.recv(MESSAGE.size, socket.MSG_WAITALL)) == MESSAGE.size:
            asked, sequence, time = MESSAGE.unpack(message)
            if asked == ACK:
                continue
            if asked == REQUEST:
                wanted = time
            elif asked == UPDATE:
                now = time
            kernel.sendall(MESSAGE.pack(ACK, sequence, now if asked == GET else 0))
            if asked == WAIT:
                now = max(now, wanted)
                kernel.sendall(MESSAGE.pack(RUN, 0, now))


@contextlib.contextmanager
def scheduler(folder: Path) -> Iterator[None]:
    """Run a scheduler of the external clock on its socket in a folder."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "scheduler"))
        listener.listen()
        thread = threading.Thread(target=_schedule, args=[listener])
        thread.start()
        try:
            yield
        finally:
            # The thread must end before another file gets the listener's descriptor.
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def kept_boot(guest: Guest, folder: Path, options: str, program: Path | None = None) -> str:
    """Boot as `boot` does, with a program as script, or return the console of an equal boot."""
    decisive = [Path(__file__), guest.kernel, *([program] if program else ())]
    return kept_output(
        lambda: boot(guest, folder, options, str(program or "")),
        options.encode(),
        *(sha256(path).encode() for path in decisive),
    )


def boot(guest: Guest, folder: Path, options: str, script: str = "") -> str:
    """Boot the bare kernel on the host's files with a script as init; return its console."""
    init = folder / "init"
    init.write_text(
        f"#!/bin/sh\nmount -t proc proc /proc\n{script}\necho ended\necho o > /proc/sysrq-trigger\n"
        "sleep 60\n"
    )
    init.chmod(0o755)
    options = f"{MACHINE} uml_dir={folder} {options.format(folder=folder)} init={init}"
    with scheduler(folder):
        done = subprocess.run(
            [guest.kernel, *options.split()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=PATIENCE_S,
            check=False,
        )
    (folder / "scheduler").unlink()
    return done.stdout


@pytest.fixture(scope="session")
def selftest(guest: Guest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the series' selftest, compiled."""
    selftests = guest.kernel.parent.parent / "source/tools/testing/selftests"
    program = tmp_path_factory.mktemp("selftest") / "time_travel"
    words = ["cc", "-O2", "-Wall", "-static", "-o", f"{program}", f"{selftests}/um/time_travel.c"]
    if guest.flavour == "6.1":  # whose kselftest.h has one of the two
        words.append("-Dksft_exit_fail_perror=ksft_exit_fail_msg")
    subprocess.run(words, check=True)
    return program


@pytest.mark.parametrize("clock", CLOCKS)
def test_the_kernel_boots_without_warning(guest: Guest, tmp_path: Path, clock: str) -> None:
    """The kernel boots and powers off on each clock, without a warning."""
    console = kept_boot(guest, tmp_path, CLOCKS[clock])
    assert "ended\n" in console
    assert "WARNING" not in console


@pytest.mark.parametrize("clock", EXACT)
def test_timers_are_exact_for_a_process(
    guest: Guest, tmp_path: Path, selftest: Path, clock: str
) -> None:
    """The series' selftest passes with each cost of time."""
    console = kept_boot(guest, tmp_path, CLOCKS[clock], selftest)
    assert "pass:3 fail:0" in console


@pytest.mark.parametrize("clock", EXACT)
def test_time_moves_as_the_kernel_sees_it(guest: Guest, tmp_path: Path, clock: str) -> None:
    """The series' KUnit cases pass: timers inside a step, softirqs, and polled clocks."""
    console = kept_boot(guest, tmp_path, f"{CLOCKS[clock]} kunit.enable=1")
    assert "ended\n" in console
    assert re.search(r"^ok \d+ time-travel$", re.sub(r"(?m)^\[.*?\] ", "", console), re.MULTILINE)
    assert not re.search(r"not ok|SKIP", console)


@pytest.mark.parametrize(
    ("option", "refusal"),
    [
        ("random-seed=abc", "random-seed: must be a number of 64 bits, got 'abc'"),
        ("random-seed=", "random-seed: must be a number of 64 bits, got ''"),
        ("time-travel-cost=free", "time-travel-cost: must be read or syscall, got 'free'"),
        ("time-travel-cost=read:0", "time-travel-cost: must be 1..1000000000 ns, got '0'"),
        ("time-travel-cost=syscall:1k", "time-travel-cost: must be 1..1000000000 ns, got '1k'"),
    ],
)
def test_malformed_options_are_refused(
    guest: Guest, tmp_path: Path, option: str, refusal: str
) -> None:
    """An option with an invalid number or word ends the boot with a sentence."""
    console = kept_boot(guest, tmp_path, f"time-travel=inf-cpu {option}")
    assert refusal in console
    assert "ended\n" not in console


def test_an_unknown_mode_is_warned_of(guest: Guest, tmp_path: Path) -> None:
    """An unknown mode of time travel boots with the host's clock, and the kernel warns."""
    console = kept_boot(guest, tmp_path, "time-travel=inf-cpuu")
    assert "time-travel: no such mode: 'inf-cpuu', the clock is the host's" in console
    assert "ended\n" in console


def test_a_seed_is_all_that_is_random(guest: Guest, tmp_path: Path) -> None:
    """Boots with one seed draw equal numbers, with another seed others; the kernel warns."""
    script = "od -An -tx8 -N16 /dev/urandom | sed 's/^/drawn/'"
    # The first step of splitmix64 turns the second seed into a state of zero.
    seeds = ("1", "1", str(2**64 - 0x9E3779B97F4A7C15))
    consoles = []
    for seed in seeds:
        options = f"time-travel=inf-cpu time-travel-start=0 random-seed={seed}"
        consoles.append(boot(guest, tmp_path, options, script))
    drawn = [re.findall(r"^drawn.*", console, re.MULTILINE) for console in consoles]
    assert [len(numbers) for numbers in drawn] == [1, 1, 1]
    assert drawn[0] == drawn[1] != drawn[2]
    assert all("can be predicted" in console for console in consoles)
