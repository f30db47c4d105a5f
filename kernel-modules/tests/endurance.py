"""Trials that the modules must survive, as root in the sanitised guest: load, use, misuse.

    endurance.py TRIAL [ARGUMENT ...]

Each trial ends by unloading every module and letting kmemleak look for leaks. It fails with an
exception; the kernel's own complaints are on the console, where the host finds them.
"""

import contextlib
import ctypes
import errno
import os
import random
import shutil
import socket
import struct
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO

sys.path.insert(0, str(Path(__file__).resolve().parent))

from claims import RUN, namespace, run
from fuzz import any_guest
from rtnetlink import Rtnetlink, attribute, u32, u64

MODULES = Path("/mnt/bin")
DEBUG = Path("/sys/kernel/debug")
KMEMLEAK = DEBUG / "kmemleak"
QDISCS = ("sch_dtm", "sch_medium", "sch_timetable")
ROUNDS = 100
TRAFFIC_ROUNDS = 32  # four of each way to end a channel
# kmemleak ignores an object younger than 5 s (MSECS_MIN_AGE); virtual time costs nothing.
LEAK_AGE_S = 6
# Time for a SYN behind a full queue that is lost several times.
HANDSHAKE_S = 60
# Time after which a closed connection has given up its retransmissions (tcp_retries2: 15 minutes).
ORPHANS_GONE_S = 2000
# An attempt with more allocations than this counts as endless.
MOST_ALLOCATIONS = 2000
SYS_FINIT_MODULE = 313  # x86-64
TCA_DTM_SLOTS, TCA_DTM_POOL = 2, 14
TCA_MEDIUM_NUMBER, TCA_MEDIUM_RATE = 1, 4
POOL = "bus"
LINGER_RESET = struct.pack("ii", 1, 0)

_libc = ctypes.CDLL(None, use_errno=True)


def load(module: str, *parameters: str) -> None:
    """Insert a module."""
    run(" ".join(["insmod", str(MODULES / f"{module}.ko"), *parameters]))


def unload(module: str) -> None:
    """Remove a module that nothing uses."""
    run(f"rmmod {module}")


def refuses_to_unload(module: str) -> None:
    """Check that a module in use cannot be removed."""
    flags = os.O_NONBLOCK
    if _libc.delete_module(module.encode(), flags) == 0:
        raise AssertionError(f"{module} was unloaded while in use")
    if ctypes.get_errno() not in (errno.EBUSY, errno.EWOULDBLOCK):
        raise OSError(ctypes.get_errno(), f"unload {module}")


def forget_leaks() -> None:
    """Make kmemleak ignore the leaks of the kernel itself so far."""
    time.sleep(LEAK_AGE_S)
    KMEMLEAK.write_text("scan")
    KMEMLEAK.write_text("clear")


def no_leaks() -> None:
    """Check twice that nothing leaked since forget_leaks(): registers may hold old pointers."""
    for _ in range(2):
        time.sleep(LEAK_AGE_S)
        KMEMLEAK.write_text("scan")
    lost = KMEMLEAK.read_text()
    if lost:
        print(lost)
        raise AssertionError("memory was leaked, see above")


# Networks to misuse


def add_two_hosts() -> None:
    """Make hosts a and b, joined by one cable."""
    run("ip netns add a", "ip netns add b")
    wire_hosts()


def wire_hosts() -> None:
    """Connect hosts a and b by a pair of devices, each with a dtm channel."""
    run("ip link add eth0 netns a type veth peer eth0 netns b")
    for host, address in ("a", "10.0.0.1/24"), ("b", "10.0.0.2/24"):
        run(
            f"ip -n {host} address add {address} dev eth0",
            f"ip -n {host} link set eth0 up",
            f"tc -n {host} qdisc add dev eth0 root handle 1: dtm",
        )


class Connections:
    """TCP connections from a to b with data in both directions, one per congestion control."""

    def __init__(self, controls: list[str]) -> None:
        self.sockets: list[socket.socket] = []
        self.received = 0
        for control in controls:
            with namespace("b"):
                listener = self._socket(control)
                listener.bind(("10.0.0.2", 0))
                listener.listen()
            with namespace("a"):
                client = self._socket(control)
            with contextlib.suppress(BlockingIOError):
                client.connect(listener.getsockname())
            listener.settimeout(HANDSHAKE_S)
            server, _ = listener.accept()
            server.setblocking(False)
            self.sockets += [client, server, listener]

    def _socket(self, control: str) -> socket.socket:
        opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        opened.setblocking(False)
        return opened

    def exchange(self, seconds: float) -> None:
        """Keep all connections busy."""
        for _ in range(5):
            for connection in self.sockets:
                with contextlib.suppress(BlockingIOError, OSError):
                    while connection.send(bytes(1 << 14)):
                        pass
                with contextlib.suppress(BlockingIOError, OSError):
                    self.received += len(connection.recv(1 << 17))
            time.sleep(seconds / 5)

    def close(self, chance: random.Random) -> None:
        """Close all connections, some with a reset."""
        chance.shuffle(self.sockets)
        for connection in self.sockets:
            if chance.random() < 0.5:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_RESET)
            connection.close()


def tc(verb: str, options: str) -> None:
    """Change the qdisc of host a."""
    run(f"tc -n a qdisc {verb} dev eth0 {options}")


def delete_qdisc() -> None:
    """Delete the channel while it has packets, and add it again."""
    tc("del", "root")
    tc("add", "root handle 1: dtm")


def replace_qdisc() -> None:
    """Replace the channel by another one."""
    tc("replace", "root handle 2: dtm")
    tc("replace", "root handle 1: dtm")


def hide_qdisc() -> None:
    """Make the channel a child of another qdisc, and delete that qdisc."""
    tc("replace", "root handle 3: prio")
    tc("add", "parent 3:1 handle 4: dtm")
    tc("replace", "root handle 1: dtm")


def interrupt_link() -> None:
    """Switch the device off and on."""
    run("ip -n a link set eth0 down", "ip -n a link set eth0 up")


def delete_device() -> None:
    """Delete the device with its channel."""
    run("ip -n b link del eth0")
    wire_hosts()


def change_table() -> None:
    """Replace the channel by a timetable, change it while packets wait, and delete it."""
    tc("replace", "root handle 5: timetable rates 0s:8Mbit")
    tc("change", "root handle 5: timetable rates 1ms:1Mbit")
    tc("replace", "root handle 1: dtm")


def share_medium() -> None:
    """Make both hosts share a medium; one leaves while packets wait, the other stays."""
    end = "root handle 6: medium number 1 rate 8Mbit"
    tc("replace", f"{end} gap 1ms")
    run(f"tc -n b qdisc replace dev eth0 {end} netns a")
    time.sleep(0.1)
    tc("change", "root handle 6: medium rate 1Mbit")
    time.sleep(0.1)
    tc("replace", "root handle 1: dtm")


def change_queue_inside() -> None:
    """Put a queue inside the channel, replace it while packets wait, and delete the channel."""
    tc("add", "parent 1:1 handle 7: fq_codel")
    time.sleep(0.1)
    tc("replace", "parent 1:1 handle 8: cake unlimited")
    time.sleep(0.1)
    tc("del", "parent 1:1")
    tc("add", "parent 1:1 handle 9: sfq")
    time.sleep(0.1)
    delete_qdisc()


WAYS = (
    delete_qdisc,
    replace_qdisc,
    hide_qdisc,
    interrupt_link,
    delete_device,
    change_table,
    share_medium,
    change_queue_inside,
)


# Trials


def parse(told: str) -> tuple[str, list[str], list[str]]:
    """Parse a module with its parameters and their congestion controls: "a/b=1,2/c,d"."""
    module, parameters, controls = told.split("/")
    return module, parameters.split(), controls.split(",")


def load_and_unload(*told: str) -> None:
    """Load and unload each module, alone and with its parameters."""
    for module, parameters, _ in [*map(parse, told), *((name, [], []) for name in QDISCS)]:
        for count in range(ROUNDS):
            load(module, *(parameters if count % 2 else []))
            unload(module)


def traffic(*told: str) -> None:
    """Delete channels under traffic and close connections; modules must stay while in use."""
    chance = random.Random(1)
    modules, names = ["sch_dtm"], []
    for name in QDISCS:
        load(name)
    for module, parameters, controls in map(parse, told):
        load(module, *parameters)
        modules.append(module)
        names += controls
    add_two_hosts()
    for count in range(TRAFFIC_ROUNDS):
        connections = Connections(names)
        connections.exchange(chance.random())
        assert connections.received > 0, "no byte has arrived"
        for module in modules:
            refuses_to_unload(module)
        WAYS[count % len(WAYS)]()
        connections.exchange(chance.random())
        connections.close(chance)
        if count % 5 == 4:  # both hosts end with packets in flight
            run("ip netns del a", "ip netns del b")
            add_two_hosts()
    run("ip netns del a", "ip netns del b")
    time.sleep(ORPHANS_GONE_S)
    for module in [*modules, "sch_medium", "sch_timetable"]:
        unload(module)


def fuzz(kind: str, seed: str, requests: str) -> None:
    """Run qdisc_fuzz; keep its table."""
    any_guest.fuzz(str(MODULES / "qdisc_fuzz"), kind, seed, requests)


def out_of_memory(*told: str) -> None:
    """Let each allocation of a module's load, and of a channel's requests, fail once."""
    for setting, value in ("ignore-gfp-wait", "N"), ("verbose", "0"):
        (DEBUG / "failslab" / setting).write_text(value)
    # The kernel warns if it has no memory for a module's tracepoints; the host looks for other
    # complaints.
    Path("/proc/sys/kernel/panic_on_warn").write_text("0")
    for module, parameters, _ in [*map(parse, told), ("sch_dtm", [], [])]:
        image = (MODULES / f"{module}.ko").open("rb")
        words = " ".join(parameters).encode()

        def insert(image: BinaryIO = image, words: bytes = words) -> int:
            return int(_libc.syscall(SYS_FINIT_MODULE, image.fileno(), words, 0))

        def remove(module: str = module) -> int:
            return int(_libc.delete_module(module.encode(), os.O_NONBLOCK))

        failing_allocations(module, insert, remove)
        image.close()
    load("sch_dtm")
    run("ip link add lone type dummy", f"{MODULES}/dtm pool add {POOL} slots 30")
    options = attribute(TCA_DTM_SLOTS, u32(30)) + attribute(TCA_DTM_POOL, POOL.encode() + b"\0")
    add, change, delete = (
        partial(request, verb, "lone", "dtm", options) for verb in ("add", "change", "del")
    )
    failing_allocations("add", add, delete)
    add()
    failing_allocations("change", change, change)
    failing_allocations("delete", delete, add)
    run("ip link del lone", f"{MODULES}/dtm pool del {POOL}")
    time.sleep(1)
    unload("sch_dtm")
    join_without_memory()


def join_without_memory() -> None:
    """Let each allocation of a queue that joins a medium fail once; the medium must stay intact."""
    load("sch_medium")
    run("ip link add near type dummy", "ip link add far type dummy")
    options = attribute(TCA_MEDIUM_NUMBER, u32(1)) + attribute(TCA_MEDIUM_RATE, u64(10**6))
    for device in ("near", "far"):
        add = partial(request, "add", device, "medium", options)
        failing_allocations(f"join {device}", add, partial(request, "del", device, "medium"))
        add()
    run("ip link del near", "ip link del far")
    time.sleep(1)
    unload("sch_medium")


def failing_allocations(what: str, attempt: Callable[[], int], restore: Callable[[], int]) -> None:
    """Let the first allocation of an attempt fail, then the second, until the attempt succeeds.

    An attempt may have worked and lost only its answer, so the state before it is restored.
    """
    fail_nth = Path("/proc/thread-self/fail-nth")
    failures = 0
    for nth in range(1, MOST_ALLOCATIONS):
        with fail_nth.open("wb", buffering=0) as switch, fail_nth.open("rb") as left:
            switch.write(b"%d" % nth)
            result = attempt()
            untouched = int(left.read(16).strip(b"\0\n")) > 0  # the attempt made no such allocation
            switch.write(b"0")
        restore()
        failures += result != 0
        if untouched:
            assert result == 0
            print(f"{what}: {nth - 1} allocations, {failures} of which matter")
            return
    raise AssertionError(f"{what}: more than {MOST_ALLOCATIONS} allocations")


def request(verb: str, device: str, qdisc: str, options: bytes = b"") -> int:
    """Send a request for a device's root; return the errno."""
    try:
        with Rtnetlink() as route:
            return route.qdisc(verb, device, options=options, kind=qdisc).errno
    except OSError as error:
        return error.errno or errno.EIO


def kunit() -> None:
    """Load the unit tests, which run at once, and keep their output."""
    load("twoway_kunit")
    shutil.copytree(DEBUG / "kunit", RUN / "kunit")
    unload("twoway_kunit")


def planted(bug: str) -> None:
    """Load a module with a planted bug that the kernel must report."""
    load("planted", f"bug={bug}")
    unload("planted")


def main() -> None:
    """Run one trial between two checks for leaks."""
    # User-mode Linux appends its console to every command line.
    name, *arguments = [word for word in sys.argv[1:] if word != "console=tty0"]
    os.environ["TC_LIB_DIR"] = str(MODULES)  # tc finds plugins here
    run(f"mount -t debugfs none {DEBUG}")
    forget_leaks()
    trials: dict[str, Callable[..., None]] = {
        trial.__name__: trial
        for trial in (load_and_unload, traffic, fuzz, out_of_memory, kunit, planted)
    }
    trials[name](*arguments)
    no_leaks()


if __name__ == "__main__":
    main()
