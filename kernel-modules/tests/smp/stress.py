"""Change and delete channels, and queues inside, under traffic, as root, on several processors.

    stress.py REQUESTS MODULE/PARAMETERS/CONTROLS ...

Writes /mnt/run/stress.json: requests to the kernel and traffic, by round and place, until all
PLACES have had their turn and enough requests have been granted. A round loads the modules, builds
hosts whose links have channels in two places, runs everything at once, deletes the hosts in the
middle of their traffic, and unloads the modules. The processors decide what coincides: no two runs
are the same, and the kernel's checkers are the judge. This program fails if one of its processes
does, or if a module stays in use.
"""

import contextlib
import fcntl
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import Process, RawValue, Value
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "dtm")]

import endurance  # noqa: E402 - python -I leaves the folders out
from channels import (  # noqa: E402
    ALONE,
    CHANGES,
    COUNTERS,
    INSIDE,
    MEDIA,
    MEDIUM_CHANGES,
    POOL_SLOTS,
    POOLED,
    TABLE_CHANGES,
    TABLES,
    rising,
)
from claims import RUN, namespace, report, run  # noqa: E402
from endurance import QDISCS, load  # noqa: E402

# A round lasts this long, or longer until every count has risen, because a machine may be slow.
ROUND_S, LONGEST_ROUND_S = 30.0, 120.0
# Time after which nothing uses a module. Sockets end last: their retransmission timer, doubled by
# timeouts, runs for at most a round, then once more for twice that (tcp_orphan_retries).
UNLOAD_S = 4 * LONGEST_ROUND_S
PIPE_BYTES = 4096
# The last request of a batch: its answer shows that all requests before it have been carried out.
BATCH, MARK, MARKED = 10, "qdisc show dev lo", b"qdisc noqueue"
CONNECT_S = 60.0
PORT = 5001
UDP_SEGMENT = 103
SHORT_LIVES = {"tcp_retries2": 3, "tcp_orphan_retries": 1, "tcp_syn_retries": 1}
# Places of channels, two at a time: the root; each queue of a device with several queues, which
# have one pool and different root locks; classes; ingress; and the path of netlink's messages. Two
# more places have no channel: the root is a timetable, or an end of a medium whose other end is the
# other host's.
PLACES = (("root", "mq"), ("htb", "nlmon"), ("timetable", "ifb"), ("medium", "root"))
QUEUES = 4
# Handles that a channel may have, so that a request for the queue inside meets it often.
HANDLES = 2
# For places without channels: the qdisc, and its changes.
OTHERS = {"timetable": (TABLES, TABLE_CHANGES), "medium": (MEDIA, MEDIUM_CHANGES)}
DTM = "/mnt/bin/dtm"


def tc(host: str, *commands: str) -> None:
    """Run tc commands that must succeed."""
    run(f"tc -n {host} -batch -", lines="\n".join(commands) + "\n")


def ip(host: str, *commands: str) -> None:
    """Run ip commands that must succeed."""
    run(f"ip -n {host} -batch -", lines="\n".join(commands) + "\n")


# Hosts


class Pair:
    """Two hosts and a cable; the first has channels at one place.

    Attributes:
        near: namespace of the first host.
        far: namespace of the other.
        device: the device with the channels.
        parents: parent of each channel, as tc names it.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self.near, self.far = f"{place}-a", f"{place}-b"
        self.device, self.parents = "eth0", ["root"]
        for host in self.near, self.far:
            run(f"ip netns add {host}")
            with namespace(host):
                for name, value in SHORT_LIVES.items():
                    Path(f"/proc/sys/net/ipv4/{name}").write_text(str(value))
        queues = f"numtxqueues {QUEUES} numrxqueues {QUEUES}"
        run(
            f"ip link add eth0 netns {self.near} {queues} type veth"
            f" peer name eth0 netns {self.far} {queues}",
            f"ip netns exec {self.near} {DTM} pool add {place} slots {POOL_SLOTS}",
        )
        for host, address in (self.near, "10.0.0.1/24"), (self.far, "10.0.0.2/24"):
            ip(host, f"address add {address} dev eth0", "link set eth0 up", "link set lo up")
        getattr(self, f"_place_{place}", lambda: None)()  # at the root there is nothing to do
        for parent in self.parents:
            first = self.handles(parent)[0]
            tc(
                self.near,
                self.line("replace", parent, f"handle {first} {self.beginnings()[0]}"),
                self.line("replace", f"{first}1", INSIDE[0].format(slots=200)),
            )

    def beginnings(self) -> tuple[str, ...]:
        """List the options with which a channel, or the qdisc in its place, starts here."""
        if self.place in OTHERS:
            return OTHERS[self.place][0]
        return ALONE if self.place in ("root", "ifb", "nlmon") else POOLED

    def changes(self) -> tuple[str, ...]:
        """List the options that an operator sets."""
        return OTHERS[self.place][1] if self.place in OTHERS else CHANGES

    def handles(self, parent: str) -> list[str]:
        """List the handles that the channel below a parent may have."""
        first = 16 + HANDLES * self.parents.index(parent)
        return [f"{number}:" for number in range(first, first + HANDLES)]

    def line(self, verb: str, parent: str, options: str) -> str:
        """Return a command of tc for the channel below a parent, or for the queue inside one."""
        where = parent if parent == "root" else f"parent {parent}"
        return f"qdisc {verb} dev {self.device} {where} {options.format(pool=self.place)}"

    def _place_medium(self) -> None:
        tc(self.far, f"qdisc replace dev eth0 root handle 1: {MEDIA[0]} netns {self.near}")

    def _place_mq(self) -> None:
        tc(self.near, "qdisc replace dev eth0 root handle 1: mq")
        self.parents = [f"1:{queue}" for queue in range(1, QUEUES + 1)]

    def _place_htb(self) -> None:
        self.parents = [f"1:{number}" for number in range(1, 4)]
        one = "class add dev eth0 parent 1: classid {} htb rate 500mbit"
        root = "qdisc replace dev eth0 root handle 1: htb default 1"
        tc(self.near, root, *map(one.format, self.parents))

    def _place_ifb(self) -> None:
        ip(self.near, "link add ifb0 type ifb", "link set ifb0 up")
        tc(
            self.near,
            "qdisc add dev eth0 ingress",
            "filter add dev eth0 parent ffff: matchall action mirred egress redirect dev ifb0",
        )
        self.device = "ifb0"

    def _place_nlmon(self) -> None:
        # nlmon turns each answer of the kernel to tc into a packet in the channel that it
        # describes.
        ip(self.near, "link add nlmon0 type nlmon", "link set nlmon0 up")
        self.device = "nlmon0"


# Concurrent actions, one process each


def operate(pair: Pair, seed: int, over: Any, tally: "Tally") -> None:
    """Change, replace, delete and add channels as fast as tc can."""
    chance = random.Random(seed)
    # With -force tc continues after a refusal, and prints it as a line.
    argv = ["tc", "-n", pair.near, "-force", "-batch", "-"]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        fcntl.fcntl(process.stdin, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        os.set_blocking(process.stdout.fileno(), False)
        while not over.value:
            batch = [_request(pair, chance) for _ in range(BATCH)]
            process.stdin.write("\n".join([*batch, MARK, ""]).encode())
            process.stdin.flush()
            with contextlib.suppress(BlockingIOError):
                said = os.read(process.stdout.fileno(), 1 << 20)
                tally.refused.value += said.count(b"Command failed")
                tally.asked.value += BATCH * said.count(MARKED)
        process.kill()


def _request(pair: Pair, chance: random.Random) -> str:
    parent = chance.choice(pair.parents)
    handle = chance.choice(pair.handles(parent))
    slots, few = chance.randint(1, 400), chance.randint(1, 20)
    kind = chance.random()
    if kind < 0.15:
        verb = chance.choice(("replace", "replace", "change", "del"))
        queue = "" if verb == "del" else chance.choice(INSIDE).format(slots=slots)
        return pair.line(verb, f"{handle}1", queue)
    if kind < 0.85:  # the other hosts would wait for all processors with every lock held
        options = chance.choice(pair.changes()).format(slots=slots, few=few)
        return pair.line("change", parent, options)
    if kind < 0.92:
        # The other handle makes another channel; with the same one the channel is changed.
        return pair.line("replace", parent, f"handle {handle} {chance.choice(pair.beginnings())}")
    if kind < 0.95:
        return pair.line("del", parent, "")
    return pair.line("add", parent, f"handle {handle} {chance.choice(pair.beginnings())}")


def look(pair: Pair, over: Any, tally: "Tally") -> None:
    """Dump qdiscs and their counters repeatedly; keep each counter's highest value."""
    argv = ["tc", "-n", pair.near, "-s", "-j", "qdisc", "show", "dev", pair.device]
    inside = tuple(handle for parent in pair.parents for handle in pair.handles(parent))
    while not over.value:
        time.sleep(0.5)
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            continue  # its host is deleted
        for qdisc in json.loads(done.stdout):
            counted = qdisc if qdisc["kind"] in ("dtm", *OTHERS) else {}
            if str(qdisc.get("parent", "")).startswith(inside):
                counted = {"inside": qdisc["packets"]}
            for name, highest in tally.highest.items():
                highest.value = max(highest.value, int(counted.get(name, 0)))


def listen(pair: Pair, over: Any, _: "Tally") -> None:
    """Listen to reallocations and stop, repeatedly."""
    with namespace(pair.near):
        while not over.value:
            argv = [DTM, "events", "--out", "/dev/null"]
            with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as process:
                time.sleep(2)
                process.send_signal(signal.SIGINT)


def serve(pair: Pair, tally: "Tally") -> None:
    """Receive data over TCP and UDP, and count it."""
    with namespace(pair.far):
        listener = socket.create_server(("10.0.0.2", PORT), backlog=64)
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind(("10.0.0.2", PORT))
    readers = [listener, datagrams]
    answer = bytes(1 << 14)
    while True:
        for reader in select.select(readers, [], [], 0.1)[0]:
            if reader is listener:
                connection = listener.accept()[0]
                connection.setblocking(False)
                readers.append(connection)
                continue
            with contextlib.suppress(OSError):
                got = len(reader.recv(1 << 18))
                (tally.udp if reader is datagrams else tally.tcp).value += got
                if reader is not datagrams:
                    reader.send(answer)


def connect(pair: Pair, controls: list[str], tally: "Tally") -> None:
    """Send over TCP with every congestion control, in both directions."""
    with namespace(pair.near):
        sockets = [socket.socket(socket.AF_INET, socket.SOCK_STREAM) for _ in controls]
    for number, (connection, control) in enumerate(zip(sockets, controls, strict=True)):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        # htb reads the class from here, and mq chooses a queue by the flow's hash.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 0x10001 + number % 3)
        connection.settimeout(CONNECT_S)
        while connection.connect_ex(("10.0.0.2", PORT)):
            time.sleep(0.1)  # the listener has not started yet
        connection.setblocking(False)
    tally.connected.value = len(sockets)
    data = bytes(1 << 16)
    while True:
        readable, writable, _broken = select.select(sockets, sockets, [], 0.1)
        for connection in readable:
            with contextlib.suppress(OSError):
                connection.recv(1 << 18)
        for connection in writable:
            with contextlib.suppress(OSError):
                connection.send(data)


def flood(pair: Pair, _: "Tally") -> None:
    """Send many datagrams at a time; losses do not matter."""
    with namespace(pair.near):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 1200)
    data = bytes(30 * 1200)
    while True:
        for number in range(5):
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 0x10001 + number % 3)
            with contextlib.suppress(OSError):
                sender.sendto(data, ("10.0.0.2", PORT))
        time.sleep(0.03)  # other processes need the emulated processors, too


class Tally:
    """Counts by the processes of a pair; only one process counts each member."""

    def __init__(self) -> None:
        self.asked, self.refused, self.connected = Value("Q"), Value("Q"), Value("Q")
        self.tcp, self.udp = Value("Q"), Value("Q")
        self.highest = {name: Value("Q") for name in COUNTERS}

    def numbers(self) -> dict[str, int]:
        """Return all counts by name."""
        own = {k: v.value for k, v in vars(self).items() if k != "highest"}
        return own | {name: v.value for name, v in self.highest.items()}

    def has_risen(self, place: str) -> bool:
        """Tell whether every count that must rise at a place has risen."""
        numbers = self.numbers()
        return all(numbers[name] for name in rising(place))


# Rounds


def one_round(number: int, modules: list[tuple[str, list[str], list[str]]]) -> dict[str, Any]:
    """Load, build, run everything, delete hosts, unload; return the counts by place."""
    for module, parameters, _ in modules:
        load(module, *parameters)
    controls = [control for _, _, names in modules for control in names]
    report()
    pairs = [Pair(place) for place in PLACES[number % len(PLACES)]]
    tallies = {pair.place: Tally() for pair in pairs}
    processes: dict[Process, Pair] = {}

    def start(what: Callable[..., None], pair: Pair, *arguments: Any) -> None:
        words = (what, pair, *arguments, tallies[pair.place])
        process = Process(target=lead, args=words, name=what.__name__, daemon=True)
        process.start()
        processes[process] = pair

    # The processes end with their hosts.
    for pair in pairs:
        if pair.place != "nlmon":
            start(serve, pair)
            start(connect, pair, controls)
    await_connections([tallies[pair.place] for pair in pairs if pair.place != "nlmon"])
    over = RawValue("b")
    for seed, pair in enumerate(pairs, start=number * len(pairs)):
        start(operate, pair, seed, over)
        start(look, pair, over)
        start(listen, pair, over)
        if pair.place != "nlmon":
            start(flood, pair)
    began = time.monotonic()
    while (
        time.monotonic() < began + ROUND_S
        or not all(tally.has_risen(place) for place, tally in tallies.items())
    ) and time.monotonic() < began + LONGEST_ROUND_S:
        report()
        time.sleep(1)
    over.value = True
    report()
    for count, pair in enumerate(pairs):
        owners = [process for process, its in processes.items() if its is pair]
        die(pair, owners, first_owners=bool(count % 2))
    for module, _, _ in reversed(modules):
        unload_when_free(module)
    return {place: tally.numbers() for place, tally in tallies.items()}


def lead(what: Callable[..., None], *arguments: Any) -> None:
    """Run a function in its own group of processes, so that die() ends its children, too."""
    os.setpgid(0, 0)
    what(*arguments)


def await_connections(tallies: list["Tally"]) -> None:
    """Wait until connect() has all its connections, because none can be made under load."""
    deadline = time.monotonic() + 2 * CONNECT_S
    while not all(tally.connected.value for tally in tallies):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def die(pair: Pair, owners: list[Process], *, first_owners: bool) -> None:
    """Delete hosts under traffic: the cable, or the last socket and the namespace.

    A program that an owner has started is in the network namespace as well, and would keep it.
    """
    failed = [process.name for process in owners if process.exitcode]
    assert not failed, failed
    if not first_owners:
        ip(pair.near, "link del eth0")
    for process in owners:
        assert process.pid
        with contextlib.suppress(ProcessLookupError):  # the process has ended
            os.killpg(process.pid, signal.SIGKILL)
    for host in pair.near, pair.far:
        run(f"ip netns del {host}")
    for process in owners:
        process.join()


def unload_when_free(module: str) -> None:
    """Remove a module as soon as its last user is gone."""
    deadline = time.monotonic() + UNLOAD_S
    while True:
        report()
        done = subprocess.run(["rmmod", module], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"{module} is still in use: {done.stderr.strip()}")
        time.sleep(0.2)


def main() -> None:
    """Run rounds for some time; fail if a round did not exercise all that it should."""
    os.environ["TC_LIB_DIR"] = "/mnt/bin"
    Path("/dev/shm").mkdir(exist_ok=True)  # for memory that processes share
    requests, *told = sys.argv[1:]
    modules = [*((name, [], []) for name in QDISCS), *map(endurance.parse, told)]
    rounds: list[dict[str, Any]] = []
    granted = 0
    while len(rounds) < len(PLACES) or granted < int(requests):
        rounds.append(one_round(len(rounds), modules))
        granted += sum(counted["asked"] - counted["refused"] for counted in rounds[-1].values())
        (RUN / "stress.json").write_text(json.dumps(rounds))


if __name__ == "__main__":
    main()
