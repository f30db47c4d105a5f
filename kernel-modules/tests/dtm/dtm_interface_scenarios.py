"""Scenarios of several requests, or over time, which dtm/cases.yml names.

Devices are d0 and d1. Each scenario leaves no pool and no namespace.
"""

import contextlib
import functools
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from claims import HERE, RUN, Events, claim, expect, run
from rtnetlink import ChangedMeanwhileError, Dtm, Rtnetlink, u32

TCA_DTM_N_STEPS = 32
CLI = RUN / "tools/net/ynl/cli.py"
SPEC = "/mnt/twoway/kernel-modules/netlink/dtm.yaml"


def channel(device: str = "d0") -> dict[str, Any]:
    """Read the first qdisc of a device as tc shows it."""
    shown: dict[str, Any] = json.loads(run(f"tc -s -j qdisc show dev {device}"))[0]
    return shown


def slots_and_target() -> tuple[int, int]:
    """Return the slots and the target of d0's channel."""
    shown = channel()
    return shown["slots"], shown["target"]


def restart_begins_afresh() -> None:
    """Only `restart` restarts an allocator; other changes do not."""
    run("tc qdisc add dev d0 root handle 1 dtm slots 10 allocator trace steps 2s:30,2s:10")
    time.sleep(1)
    run("tc qdisc change dev d0 root handle 1 dtm limit 5 allocator trace")
    time.sleep(1.5)
    expect("slots", slots_and_target(), (30, 30))
    run("tc qdisc change dev d0 root handle 1 dtm restart")
    time.sleep(1.8)
    expect("slots at what would have been the second step", slots_and_target(), (30, 30))
    time.sleep(2.5)
    expect("slots at the end", slots_and_target(), (10, 10))


def replacement_is_announced() -> None:
    """Listeners get a notification when another qdisc replaces one with 1024 steps."""
    steps = ",".join(f"1s:{5 + k % 7}" for k in range(1024))
    with Rtnetlink() as route:
        route.subscribe()
        for major in (1, 2, 3):
            run(f"tc qdisc replace dev d0 root handle {major} dtm allocator trace steps {steps}")
            came = route.notifications()
            expect("handles", [q.handle.major for q in came], [major])
            expect("steps", came[0].options.get(TCA_DTM_N_STEPS), u32(1024))


@contextlib.contextmanager
def namespace(name: str) -> Iterator[None]:
    """Make a network namespace with a device e0."""
    run(
        f"ip netns add {name}",
        f"ip -n {name} link add e0 type dummy",
        f"ip -n {name} link set e0 up",
    )
    try:
        yield
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def user_namespace(script: str) -> list[str]:
    """Return the command that runs a script as root of a new user namespace, in its own network.

    Linux makes no user namespace for a process whose root folder is not that of its mount
    namespace, as for the guest's programs: change to that folder, with a writable /proc.
    """
    whole = f"ip link add e0 type dummy; ip link set e0 up; {script}"
    inside = f"mount -t proc proc /proc; exec unshare -U -r -n sh -c '{whole}'"
    return ["nsenter", "--mount=/proc/self/ns/mnt", "unshare", "-m", "sh", "-c", inside]


def in_user_namespace(script: str) -> str:
    """Run a script in a new user namespace; its standard input is our network namespace."""
    with Path(HERE).open() as ours:
        done = subprocess.run(
            user_namespace(script), stdin=ours, capture_output=True, text=True, check=False
        )
    return done.stdout + done.stderr


def pool_in_namespaces() -> None:
    """Nodes in several network namespaces share a pool: slots that one frees reach the other."""
    run("dtm pool add bus slots 40", "tc qdisc add dev d0 root handle 1 dtm slots 30 pool bus")
    with namespace("node"):
        run(f"tc -n node qdisc add dev e0 root handle 2 dtm slots 20 pool bus netns {HERE}")
        inside = json.loads(run("tc -n node -s -j qdisc show dev e0"))[0]
        expect("slots of the second node", (inside["slots"], inside["target"]), (10, 20))
        shown = [
            {"pool": "bus", "slots": 40, "used": 40, "guaranteed": 2, "channels": 2, "waiting": 1}
        ]
        expect("pool here", json.loads(run("dtm pool show -j")), shown)
        expect("pool there", json.loads(run("ip netns exec node dtm pool show -j")), [])
        number = inside["options"]["netnsid"]
        listed = run("ip netns exec node ip netns list-id").split()
        expect("the namespace's number", listed[:2], ["nsid", str(number)])
        for words in f"pool bus netns {HERE}", f"pool bus netnsid {number}", "":
            run(f"tc -n node qdisc change dev e0 root handle 2 dtm slots 20 {words}")
        run("tc qdisc change dev d0 root handle 1 dtm slots 15")
        inside = json.loads(run("tc -n node -s -j qdisc show dev e0"))[0]
        expect("freed slots cross namespaces", inside["slots"], 20)
    time.sleep(1)  # a namespace ends some time after its name
    run("tc qdisc del dev d0 root", "dtm pool del bus")


def refused(command: str) -> str:
    """Return the error for which a command fails."""
    done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
    claim(f"{command} is refused", done.returncode != 0)
    return done.stderr.removeprefix("Error: ").rstrip(".\n")


def namespaces_share_no_names() -> None:
    """Two runs on one host may use equal names, because each has its own pool and medium."""
    queue = "qdisc add dev {} root handle 7 {}"
    with namespace("one"), namespace("two"):
        for run_of in "one", "two":
            run(f"ip -n {run_of} link add e1 type dummy", f"ip -n {run_of} link add e2 type dummy")
            run(f"ip netns exec {run_of} dtm pool add bus slots 20")
            for device in "e0", "e1":
                run(f"tc -n {run_of} {queue.format(device, 'medium number 1 rate 1Mbit')}")
            third = f"tc -n {run_of} {queue.format('e2', 'medium number 1 rate 1Mbit')}"
            expect("a third queue", refused(third), "two queues are on this medium already")
            run(f"tc -n {run_of} {queue.format('e2', 'dtm slots 20 pool bus')}")
            shown = json.loads(run(f"ip netns exec {run_of} dtm pool show -j"))
            expect("the pool", [(p["used"], p["channels"]) for p in shown], [(20, 1)])
        here = "dtm: bus: there is no pool of this name"
        expect("deleted from elsewhere", refused("dtm pool del bus"), here)
        expect(
            "joined by its name",
            refused(f"tc {queue.format('d0', 'dtm pool bus')}"),
            "there is no pool of this name: `dtm pool add` makes one",
        )
        run("tc -n one qdisc del dev e1 root")
        run(f"tc {queue.format('d0', 'medium number 1 netns one rate 1Mbit')}")
        number = json.loads(run("tc -j qdisc show dev d0"))[0]["options"]["netnsid"]
        change = "tc qdisc change dev d0 root handle 7 medium number 1"
        run(f"{change} netns one", f"{change} netnsid {number}")
        stays = "a queue stays on its medium"
        expect("another namespace's", refused(f"{change} netns two"), stays)
        run("tc qdisc del dev d0 root")


def pool_in_user_namespaces() -> None:
    """Another user namespace neither sees nor joins a pool, and may have one of the same name."""
    run("dtm pool add bus slots 40")
    said = in_user_namespace(
        "dtm pool show; tc qdisc add dev e0 root dtm pool bus;"
        "tc qdisc add dev e0 root dtm pool bus netns /proc/self/fd/0;"
        "dtm pool add bus slots 7; dtm pool show"
    )
    expect(
        "another user namespace",
        said.splitlines(),
        [
            "pool bus slots 7 used 0 guaranteed 0 channels 0 waiting 0",
            "Error: there is no pool of this name: `dtm pool add` makes one.",
            "Error: that network namespace is not yours.",
        ],
    )
    run("dtm pool del bus")


def pool_above_stays_out_of_reach() -> None:
    """A device of another user namespace joins no pool of ours, even if our root asks for it.

    Whoever opened the socket of the request may be root there alone.
    """
    run("dtm pool add bus slots 40")
    command = user_namespace("echo up; exec sleep 99")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout
        expect("the other namespace", other.stdout.readline(), "up\n")
        net = f"nsenter --net=/proc/{other.pid}/ns/net tc qdisc add dev e0 root dtm"
        expect(
            "a pool above",
            refused(f"{net} pool bus netns {HERE}"),
            "that network namespace is not yours",
        )
        run(net)
        other.kill()
    run("dtm pool del bus")


def pool_outlives_its_namespace() -> None:
    """A pool's name ends with its namespace; its channels keep the pool, and no other may join."""
    with namespace("maker"):
        run("ip netns exec maker dtm pool add bus slots 40")
        run("tc qdisc add dev d0 root handle 1 dtm slots 30 pool bus netns maker")
        run("tc qdisc add dev d1 root handle 2 dtm slots 20 pool bus netns maker")
    deadline = time.monotonic() + 20
    while channel("d0")["options"]["netnsid"] >= 0:
        claim("the name goes", time.monotonic() < deadline)
        time.sleep(0.1)
    run("tc qdisc change dev d0 root handle 1 dtm slots 15")
    second = channel("d1")
    expect("slots of the second", (second["slots"], second["pool_free"]), (20, 5))
    refused = subprocess.run(
        ["tc", "qdisc", "replace", "dev", "d1", "root", "handle", "3", "dtm", "pool", "bus"],
        capture_output=True,
        text=True,
        check=False,
    )
    claim(f"nobody joins: {refused.stderr}", "there is no pool of this name" in refused.stderr)
    run("dtm pool add bus slots 9", "dtm pool del bus")
    run("tc qdisc del dev d0 root", "tc qdisc del dev d1 root")


def only_root_makes_pools() -> None:
    """Only the administrator of a namespace may make pools, and everybody may list them."""
    run("dtm pool add bus slots 40")
    for command, answer in (
        ("dtm pool add mine slots 4", "dtm: mine: Operation not permitted\n"),
        ("dtm pool del bus", "dtm: bus: Operation not permitted\n"),
        ("dtm pool show", ""),
    ):
        done = subprocess.run(
            command.split(), capture_output=True, text=True, check=False, user=65534
        )
        expect(command, done.stderr, answer)
    run("dtm pool del bus")


def statistics_and_events_agree() -> None:
    """A channel shows the slots that its last event reports."""
    with Events() as events:
        run("tc qdisc add dev d0 root handle 1 dtm slots 5")
        for slots in (6, 7, 8):
            run(f"tc qdisc change dev d0 root handle 1 dtm slots {slots}")
        seen = events.take()
        expect("slots", [event["to"] for event in seen], ["5", "5", "6", "7", "8"])
        expect("shown", slots_and_target(), (8, 8))
        names = {(event["dev"], int(event["ifindex"]), event["handle"]) for event in seen}
        expect("names", names, {("d0", socket.if_nametoindex("d0"), "10000")})
        run("tc qdisc change dev d0 root handle 1 dtm slots 9", "tc qdisc del dev d0 root")
        last = [(event["cause"], event["to"]) for event in events.take()]
    expect("causes", last, [("3", "9"), ("6", "0")])


def many_pools_are_dumped() -> None:
    """A dump of several messages has each pool once, or reports that one has vanished."""
    names = [f"p{k}" for k in range(1, 101)]
    for name in names:
        run(f"dtm pool add {name} slots 9")
    with Dtm() as dtm:
        expect("pools", [found["POOL"] for found in dtm.pools()], names)
    with Dtm() as dtm, contextlib.suppress(ChangedMeanwhileError):
        found = dtm.pools(functools.partial(run, "dtm pool del p1"))
        claim(f"a dump says that it was interrupted: {found}", False)
    for name in names[1:]:
        run(f"dtm pool del {name}")


def ynl_dumps_pools() -> None:
    """The kernel's YNL client, with netlink/dtm.yaml, dumps what `dtm pool show` shows."""
    run("dtm pool add bus slots 40", "tc qdisc add dev d0 root handle 1 dtm slots 30 pool bus")
    ynl = f"{sys.executable} {CLI} --spec {SPEC} --no-schema --output-json --dump pool-get"
    pools = json.loads(run(ynl))
    expect(
        "pools", [(p["pool"], p["pool-slots"], p["pool-used"]) for p in pools], [("bus", 40, 30)]
    )
    shown = json.loads(run("dtm pool show -j"))
    expect("shown", [(p["pool"], p["slots"], p["used"]) for p in shown], [("bus", 40, 30)])
    run("tc qdisc del dev d0 root", "dtm pool del bus")
