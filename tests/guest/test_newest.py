"""Debian's newest kernel with the series in vm/patches/upstream, and virtual time on it."""

import contextlib
import json
import re
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from twoway.backends.uml import Uml
from twoway.guest.cache import Guest
from twoway.runs.cases import load_case
from twoway.runs.run import run_case
from twoway.spec.point import find_experiment

pytestmark = pytest.mark.newest

PATIENCE_S = 300
# Virtual seconds of an experiment, enough for the first losses and bunches of ACKs.
SHORT_S = 3.0
WARM_UP_S = 1.0

MACHINE = (
    "mem=128M root=/dev/root rootfstype=hostfs rootflags=/ ro con=null con0=null,fd:1 panic=-1"
)
# Options of the kernel that say which clock. {folder} has the socket of the external one.
CLOCKS = {
    "infinite": "time-travel=inf-cpu",
    "infinite, calls cost": "time-travel=inf-cpu time-travel-cost=syscall",
    "external": "time-travel=ext:{folder}/scheduler",
    "basic": "time-travel",
    "host": "",
}
EXACT = ["infinite", "infinite, calls cost", "external"]
# A message between a kernel and its scheduler, and what it may ask for: linux/um_timetravel.h.
MESSAGE = struct.Struct("=IIQ")
ACK, REQUEST, WAIT, GET, UPDATE, RUN = 0, 2, 3, 4, 5, 6


@pytest.fixture(scope="session", autouse=True)
def _newest(guest: Guest) -> None:
    if guest.flavour != "newest":
        pytest.fail("these need --guest newest, as `make test LAYER=newest` gives it")


def _schedule(listener: socket.socket) -> None:
    """Be the scheduler of a single kernel: it runs whenever it asks to."""
    now = wanted = 0
    kernel, _ = listener.accept()
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
        threading.Thread(target=_schedule, args=[listener], daemon=True).start()
        yield


def boot(guest: Guest, folder: Path, options: str, script: str = "") -> str:
    """Boot the bare kernel on the host's files with a script as init; what its console has."""
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
    """The series' selftest, compiled."""
    selftests = guest.kernel.parent.parent / "source/tools/testing/selftests"
    program = tmp_path_factory.mktemp("selftest") / "time_travel"
    subprocess.run(
        ["cc", "-O2", "-Wall", "-static", "-o", program, selftests / "um/time_travel.c"], check=True
    )
    return program


@pytest.mark.parametrize("clock", CLOCKS)
def test_newest_kernel_boots_without_warning(guest: Guest, tmp_path: Path, clock: str) -> None:
    """The kernel boots and powers off on each clock, without a warning."""
    console = boot(guest, tmp_path, CLOCKS[clock])
    assert "ended\n" in console
    assert "WARNING" not in console


@pytest.mark.parametrize("clock", EXACT)
def test_timers_are_exact_for_a_process(
    guest: Guest, tmp_path: Path, selftest: Path, clock: str
) -> None:
    """The series' selftest passes whatever it is that takes time."""
    console = boot(guest, tmp_path, CLOCKS[clock], str(selftest))
    assert "pass:3 fail:0" in console


@pytest.mark.parametrize("clock", EXACT)
def test_time_moves_as_the_kernel_sees_it(guest: Guest, tmp_path: Path, clock: str) -> None:
    """The series' KUnit cases pass: timers inside a step, softirqs, clocks that are polled."""
    console = boot(guest, tmp_path, f"{CLOCKS[clock]} kunit.enable=1")
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
    """An option that is no number or no known word ends the boot with a sentence."""
    console = boot(guest, tmp_path, f"time-travel=inf-cpu {option}")
    assert refusal in console
    assert "ended\n" not in console


def test_a_seed_is_all_that_is_random(guest: Guest, tmp_path: Path) -> None:
    """Two boots with a seed draw the same numbers, another seed draws others; the kernel warns."""
    script = "od -An -tx8 -N16 /dev/urandom | sed 's/^/drawn/'"
    # Of the second, the first step of splitmix64 leads to a state of zero.
    seeds = ("1", "1", str(2**64 - 0x9E3779B97F4A7C15))
    consoles = []
    for seed in seeds:
        options = f"time-travel=inf-cpu time-travel-start=0 random-seed={seed}"
        consoles.append(boot(guest, tmp_path, options, script))
    drawn = [re.findall(r"^drawn.*", console, re.MULTILINE) for console in consoles]
    assert [len(numbers) for numbers in drawn] == [1, 1, 1]
    assert drawn[0] == drawn[1] != drawn[2]
    assert all("can be predicted" in console for console in consoles)


@pytest.mark.parametrize("name", ["kalampoukas-5.2", "zhang-fig8"])
def test_an_experiment_repeats(guest: Guest, tmp_path: Path, name: str) -> None:
    """Two runs of an experiment of the papers leave the same bytes in their captures."""
    document: dict[str, Any] = yaml.safe_load(find_experiment(name).read_text())
    for field in ("predictions", "claims", "findings", "unclaimed", "theory", "matrix"):
        document.pop(field, None)
    document.update(duration_s=SHORT_S, warm_up_s=WARM_UP_S)
    experiment = tmp_path / f"{name}.yml"
    experiment.write_text(yaml.safe_dump(document))
    runs = [run_case(load_case(str(experiment)), Uml(guest), tmp_path / n) for n in ("one", "two")]
    captures = [
        {path.name: path.read_bytes() for path in sorted((run / "pcap").iterdir())} for run in runs
    ]
    assert all(captures[0].values())
    assert captures[0] == captures[1]


def test_dualpi2_marks(guest: Guest, tmp_path: Path) -> None:
    """DualPI2 has the profile's limit, and its marks are counted, though tc may not know it."""
    case = load_case("dualpi2@aqm=dualpi2,ecn=on,control=cubic")
    run = run_case(case, Uml(guest), tmp_path)
    (queue,) = (
        qdisc
        for qdisc in json.loads((run / "qdisc/r1-after.json").read_text())
        if qdisc["kind"] == "dualpi2"
    )
    assert queue["options"]["limit"] == case.profile.directions["forward"].queue_packets
    assert queue["ecn_mark"] > 0  # of random numbers
