"""Several hosts: their plans, and the probe of their clocks."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from twoway.contract.plan import PLAN, Command, MakeNetwork, Plan, Step, Times, read_plan
from twoway.description.point import Point
from twoway.errors import RunError, UsageError
from twoway.lab import clock_probe
from twoway.lab.clock_probe import answer, ask
from twoway.lab.multihost_plan import Place, shares
from twoway.lab.multihost_run import Multihost, clock
from twoway.manifest import MACHINE, HostClock, Kernel, Machine
from twoway.plan.plan import build_plan
from twoway.runs.points import load_point

PLACES = {
    "left": Place(nodes=["h1"], links={"h1-eth0": "enp1s0"}),
    "middle": Place(nodes=["r1", "r2"], links={"r1-eth0": "enp1s0", "r2-eth0": "enp2s0"}),
    "right": Place(nodes=["h2"], links={"h2-eth0": "enp1s0"}),
}
PARTS = ("setup", "recorders", "captures", "at_start", "changes", "sinks", "sources", "teardown")


@pytest.fixture
def point(small: Path) -> Point:
    """A short two-way exchange."""
    return load_point(str(small))


def _without_lent(shared: dict[str, Plan]) -> dict[str, Plan]:
    """Leave out the steps of lent interfaces, which the whole plan does not have."""
    return {
        machine: plan.model_copy(update={"setup": tuple(s for s in plan.setup if not _lent(s))})
        for machine, plan in shared.items()
    }


def _lent(step: Step) -> bool:
    return isinstance(step, Command) and step.run[:3] == ("ip", "link", "set")


def test_each_step_is_somebodys(point: Point) -> None:
    """A node's steps are in one share, in order; steps without a node are in every share."""
    plan, shared = build_plan(point), _without_lent(shares(point, PLACES))
    for part in PARTS:
        for machine, place in PLACES.items():
            ours = [s for s in getattr(plan, part) if s.node in (None, *place.nodes)]
            assert [s.node for s in getattr(shared[machine], part)] == [s.node for s in ours]
        of_nodes = [s for share in shared.values() for s in getattr(share, part) if s.node]
        wanted = [s for s in getattr(plan, part) if s.node]
        assert sorted(of_nodes, key=str) == sorted(wanted, key=str)
    assert all(share.clock == plan.clock for share in shared.values())


def test_observers_see_what_is_there(point: Point) -> None:
    """The observer of each machine's share watches only that machine's nodes."""
    seen = {
        machine: [word for word in share.sources[0].run if word[:2] in {"h1", "h2", "r1", "r2"}]
        for machine, share in shares(point, PLACES).items()
    }
    assert seen == {"left": ["h1"], "middle": ["r1/r1-eth1", "r2/r2-eth1"], "right": ["h2"]}


def test_links_within_a_machine(point: Point) -> None:
    """A machine makes links between its nodes; the ends of other links get a MAC address.

    The machine makes no nodes: they exist, with the interfaces that it lends to them.
    """
    shared = shares(point, PLACES)
    made = {
        name: next(s for s in plan.setup if isinstance(s, MakeNetwork))
        for name, plan in shared.items()
    }
    assert [step.nodes for step in made.values()] == [(), (), ()]
    assert (made["left"].stdin, made["right"].stdin) == ((), ())
    (line,) = made["middle"].stdin
    one, other = line.split(" type veth peer ")
    assert one == "link add name r1-eth1 netns r1 address 02:00:00:00:00:04"
    assert other == "name r2-eth1 netns r2 address 02:00:00:00:00:05"
    assert [
        (step.node, " ".join(step.run))
        for step in shared["middle"].setup
        if isinstance(step, Command) and _lent(step)
    ] == [
        ("r1", "ip link set dev r1-eth0 address 02:00:00:00:00:01"),
        ("r2", "ip link set dev r2-eth0 address 02:00:00:00:00:03"),
    ]


MIDDLE = ["r1", "r2"]
WRONG: list[tuple[str, list[str], dict[str, str], str]] = [
    # a machine, its nodes and links, and the sentence
    ("right", [], {}, "small: no machine plays h2; the topology has h1, h2, r1, r2"),
    ("other", ["h2"], {"h2-eth0": "enp1s0"}, "small: right and other both play h2"),
    (
        *("other", ["h7"], {}),
        "small: other plays h7, which the topology does not have; it has h1, h2, r1, r2",
    ),
    ("right", ["h2"], {}, "small: right: it has no interface h2-eth0, the link to r2-eth0"),
    (
        *("right", ["h2"], {"h2-eth0": "enp1s0", "h2-eth1": "enp2s0"}),
        "small: right: h2-eth1 is not a link to another machine",
    ),
    (
        *("middle", MIDDLE, {"r1-eth0": "a", "r2-eth0": "b", "r1-eth1": "c"}),
        "small: middle: r1-eth1 is not a link to another machine",
    ),
    (
        *("middle", MIDDLE, {"r1-eth0": "a", "r2-eth0": "a"}),
        "small: middle: a is r1-eth0 and r2-eth0",
    ),
]


@pytest.mark.parametrize(("machine", "nodes", "links", "sentence"), WRONG)
def test_misplaced_hosts_are_refused(
    point: Point, machine: str, nodes: list[str], links: dict[str, str], sentence: str
) -> None:
    """Hosts that do not fit the topology are refused with a sentence for each problem."""
    places = {**PLACES, machine: Place(nodes=nodes, links=links)}
    with pytest.raises(UsageError) as error:
        shares(point, {name: each for name, each in places.items() if each.nodes})
    assert str(error.value) == sentence
    assert "twoway_nodes" in error.value.hint


def test_a_kernel_by_name_is_refused(point: Point) -> None:
    """Hosts have the kernel that they booted, whatever the experiment names."""
    named = replace(point, experiment=point.experiment.model_copy(update={"kernel": "wide"}))
    with pytest.raises(UsageError, match=r"small: kernel: each host .* its own, got wide"):
        shares(named, PLACES)


def test_a_clock_between_two_measurements() -> None:
    """Offset and drift are the line through two measurements, with the larger uncertainty."""
    before = {"at_ns": 1000, "offset_ns": 500, "uncertainty_ns": 7}
    after = {"at_ns": 2_000_001_000, "offset_ns": 2500, "uncertainty_ns": 4}
    assert clock(before, after, 1_000_001_000) == HostClock(
        handed_ns=500, offset_ns=1500, drift_ppb=1000.0, uncertainty_ns=7
    )


def test_parts_become_a_run(tmp_path: Path) -> None:
    """Files of one machine are kept; tables of several are merged in time order."""
    for machine, time_ns in (("a", 20), ("b", 10)):
        part = tmp_path / machine
        for folder in ("sockets", "pcap", "log"):
            (part / folder).mkdir(parents=True)
        rows = f"# clock\ntime_ns,node\n{time_ns},{machine}\n{time_ns + 15},{machine}\n"
        (part / "sockets/tcp-info.csv").write_text(rows)
        (part / "sockets/queues.csv").write_text("# clock\ntime_ns,interface\n")
        (part / "sockets/progress.json").write_text("{}")
        (part / f"pcap/{machine}-eth0.pcap").write_text(machine)
        (part / "log/console.txt").write_text(f"{machine}\n")
        (part / "plan.json").write_text("of a share")
        Machine(
            backend="native",
            clock_source="host",
            kernel=Kernel(release="6.1", key=machine),
            modules={},
            git="0" * 12,
            tools={},
            nodes=(f"n{machine}",),
            decisive={},
        ).write(part / MACHINE)
    run = tmp_path / "run"
    run.mkdir()
    plan = Plan(memory_mib=0, clock=Times(start_ns=0))
    plan.write(run / PLAN)
    measured = {"at_ns": 0, "offset_ns": 3, "uncertainty_ns": 1}
    times = {"offset_ns": 9, "before": {"b": measured}, "after": {"b": measured | {"at_ns": 5}}}
    multihost = Multihost({"a": tmp_path / "a", "b": tmp_path / "b"}, times)
    multihost.run(run, lambda _: None)
    assert multihost.took_s == pytest.approx(5e-9)
    table = (run / "sockets/tcp-info.csv").read_text().splitlines()
    assert table == ["# clock", "time_ns,node", "10,b", "20,a", "25,b", "35,a"]
    assert (run / "sockets/queues.csv").read_text() == "# clock\ntime_ns,interface\n"
    assert (run / "log/console.txt").read_text() == "a\nb\n"
    assert [p.read_text() for p in sorted(run.glob("pcap/*"))] == ["a", "b"]
    assert read_plan(run) == plan
    assert multihost.description().kernel == Kernel(release="6.1", key="a, b")
    clocks = json.loads((run / "clock.json").read_text())
    assert clocks["offset_ns"] == 9
    assert clocks["nodes"] == {
        "na": HostClock().model_dump(),
        "nb": HostClock(handed_ns=3, offset_ns=3, uncertainty_ns=1).model_dump(),
    }
    assert not (run / "sockets/progress.json").exists()


# Measuring another machine's clock: the bounds hold whatever the network does.

HERE = "127.0.0.1"
SKEW_NS = -7_000_000_321
SESSION = 1 << 62


@contextmanager
def responder(
    seconds: float = 60, at: str = HERE, session: int | None = SESSION
) -> Iterator[tuple[int, threading.Thread]]:
    """Start a responder; return its port and its thread."""
    with clock_probe._socket(at) as free:
        free.bind((at, 0))
        port = free.getsockname()[1]
    thread = threading.Thread(target=answer, args=(at, port, seconds, session))
    thread.start()
    try:
        yield port, thread
    finally:
        with clock_probe._socket(at) as end:
            end.sendto(clock_probe._QUESTION.pack(SESSION, -1), (at, port))
        thread.join()


@contextmanager
def elsewhere(port: int, *, there_s: float, back_s: float) -> Iterator[int]:
    """Make a slow path to a responder with another clock.

    Yields: the port at which the path begins.
    """
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    for each in sockets:
        each.bind((HERE, 0))
        each.settimeout(0.1)
    here, there = sockets
    there.connect((HERE, port))
    ended = threading.Event()

    def carry() -> None:
        while not ended.is_set():
            try:
                question, who = here.recvfrom(64)
                time.sleep(there_s)
                there.send(question)
                *named, received, sent = clock_probe._ANSWER.unpack(there.recv(64))
            except TimeoutError:
                continue
            time.sleep(back_s)
            skewed = (received + SKEW_NS, sent + SKEW_NS)
            here.sendto(clock_probe._ANSWER.pack(*named, *skewed), who)

    thread = threading.Thread(target=carry)
    thread.start()
    try:
        yield here.getsockname()[1]
    finally:
        ended.set()
        thread.join()
        for each in sockets:
            each.close()


@pytest.mark.parametrize(("there_s", "back_s"), [(0, 0), (0.003, 0), (0, 0.003)])
def test_a_skewed_clock(there_s: float, back_s: float) -> None:
    """The offset's error is within its bound, however much longer one direction takes."""
    with responder() as (port, _), elsewhere(port, there_s=there_s, back_s=back_s) as port_there:
        measured = ask(HERE, port_there, questions=20, session=SESSION)
    assert abs(measured.offset_ns - SKEW_NS) <= measured.uncertainty_ns
    assert measured.uncertainty_ns >= (there_s + back_s) * 1e9 / 2


@pytest.mark.parametrize("at", [HERE, "::1"])
def test_a_clock_that_is_the_same(at: str) -> None:
    """This machine's own clock has the offset 0, and the responder ends on request."""
    with responder(at=at) as (port, thread):
        measured = ask(at, port, session=SESSION)
        thread.join()
    assert abs(measured.offset_ns) <= measured.uncertainty_ns


def test_a_responder_without_questions() -> None:
    """A responder without requests ends by itself, whatever other packets arrive."""
    with responder(0.2) as (port, thread):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(b"?", (HERE, port))
        thread.join(timeout=5)
    assert not thread.is_alive()


def test_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that does not answer is named, with its port."""
    monkeypatch.setattr(clock_probe, "_MOST_LOST", 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind((HERE, 0))
        port = silent.getsockname()[1]
        with pytest.raises(RunError, match=f"{HERE}: its clock does not answer on UDP port {port}"):
            ask(HERE, port, questions=3)


def _until_it_answers(stranger: socket.socket, port: int) -> None:
    """Ask in the session until a responder, which may just be starting, answers."""
    stranger.settimeout(0.05)
    while True:
        stranger.sendto(clock_probe._QUESTION.pack(SESSION, 0), (HERE, port))
        with suppress(TimeoutError, ConnectionRefusedError):
            stranger.recv(100)
            return


def test_a_stranger_ends_no_session() -> None:
    """Only the session's own number ends it, and a responder answers in no other session."""
    with responder() as (port, thread), clock_probe._socket(HERE) as stranger:
        _until_it_answers(stranger, port)
        for datagram in (
            clock_probe._QUESTION.pack(SESSION + 1, -1),
            clock_probe._QUESTION.pack(SESSION + 1, 7),
            b"\xff" * 8,
            b"",
        ):
            stranger.sendto(datagram, (HERE, port))
        measured = ask(HERE, port, questions=3, session=SESSION)
        thread.join()
        with suppress(TimeoutError):
            while reply := stranger.recv(100):
                assert clock_probe._ANSWER.unpack(reply)[0] == SESSION
    assert abs(measured.offset_ns) <= measured.uncertainty_ns


def test_by_hand_the_last_session_ends() -> None:
    """Without a number a responder answers everyone; who has not asked cannot end it."""
    with responder(session=None) as (port, thread), clock_probe._socket(HERE) as stranger:
        _until_it_answers(stranger, port)
        stranger.sendto(clock_probe._QUESTION.pack(5, -1), (HERE, port))
        assert ask(HERE, port, questions=3).uncertainty_ns >= 0
        thread.join()


@pytest.mark.parametrize(
    "reply",
    [
        b"x",
        b"x" * 100,
        clock_probe._ANSWER.pack(SESSION, -5, 0, 0),
        clock_probe._ANSWER.pack(SESSION + 1, 0, 0, 0),
    ],
)
def test_answers_of_a_stranger_are_ignored(monkeypatch: pytest.MonkeyPatch, reply: bytes) -> None:
    """Replies of another form, request or session count as none, however often they come."""
    monkeypatch.setattr(clock_probe, "_MOST_LOST", 0)
    monkeypatch.setattr(clock_probe, "_REPLY_TIMEOUT_S", 0.2)
    ended = threading.Event()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as flooding:
        flooding.bind((HERE, 0))

        def flood() -> None:
            _, who = flooding.recvfrom(64)
            while not ended.wait(0.01):
                flooding.sendto(reply, who)

        thread = threading.Thread(target=flood)
        thread.start()
        with pytest.raises(RunError, match="its clock does not answer"):
            ask(HERE, flooding.getsockname()[1], session=SESSION)
        ended.set()
        thread.join()


def test_a_session_has_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """A responder that answers too slowly is given up after the time of a session."""
    monkeypatch.setattr(clock_probe, "_SESSION_S", 0.1)
    with (
        responder() as (port, _),
        elsewhere(port, there_s=0.05, back_s=0) as slow,
        pytest.raises(RunError, match="its clock does not answer"),
    ):
        ask(HERE, slow, questions=1000, session=SESSION)
