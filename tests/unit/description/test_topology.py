"""A topology's Python runs in the sandbox, its output is checked like a file, and has segments."""

from ipaddress import IPv4Interface
from pathlib import Path

import pytest
from mininet.examples import linuxrouter

from twoway.description import topology
from twoway.description.mininet_commands import Bridge, Port, Up, read_commands
from twoway.description.switching import joining_problems
from twoway.description.topology import load_topology
from twoway.errors import SpecError
from twoway.links.interface import Interface
from twoway.paths import TOPOLOGIES
from twoway.plan.personality import host_routes

# A valid topology, to which a test adds a fault.
PAIR = """
from mininet.topo import Topo
class Pair(Topo):
    queues = {"forward": [("a", "b")], "reverse": [("b", "a")]}
    delays = queues
    def build(self):
        for name, address in (("a", "10.0.0.1/24"), ("b", "10.0.0.2/24")):
            self.addHost(name, ip=address)
        self.addLink("a", "b")
topos = {"pair": Pair}
"""


def _refuse_changed(path: Path, text: str, old: str, new: str, sentence: str) -> None:
    """Load a topology with one change, which its error must name."""
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(SpecError) as caught:
        load_topology(path, {})
    assert str(caught.value).startswith(f"{path}: ")
    assert sentence in str(caught.value)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make an empty cache of descriptions."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def _problem(folder: Path, code: str) -> str:
    path = folder / "pair.py"
    path.write_text(PAIR + code)
    with pytest.raises(SpecError) as caught:
        load_topology(path, {})
    return str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("import os; os._exit(0)", "did not load in the sandbox: exit status 0"),
        ("import os; os.kill(os.getpid(), 9)", "did not load in the sandbox"),
        ("def f(): f()\nf()", "RecursionError: maximum recursion depth"),
        ("bytearray(4 << 30)", "MemoryError"),
        ("import os\nwhile True: os.write(2, b'x' * 65536)", "File too large"),
        ("raise ValueError('x')", f"line {PAIR.count(chr(10)) + 1}: ValueError: x"),
        ("topos = {}", 'topos = {"pair": Pair} must be its last line'),
        ("topos = {'pair': int}", "AttributeError: 'int' object has no attribute 'links'"),
        ("Pair.queues = 5", "queues: must be fields with values, got 5"),
        ("Pair.queues = {'forward': [('a', 'z')]}", "queues.forward: no link a - z"),
        ("Pair.delays = {}", "must define delays"),
        ("Pair.delays = {'x': [('a', 'b')]}", "delays.x: no such direction in `queues`, which has"),
        ("Pair.build = lambda s: [s.addHost(f'h{n}') for n in range(1001)]", "at most 1000 items"),
        ("class P(Pair):\n def build(s): s.addHost('c'); super().build()", ""),
    ],
)
def test_a_topology_that_fails_is_an_error_of_its_file(
    tmp_path: Path, code: str, sentence: str
) -> None:
    """Whatever a topology's code does, the error names its file and the command ends normally."""
    if not sentence:
        code, sentence = f"{code}\ntopos = {{'pair': P}}", "c has no link"
    problem = _problem(tmp_path, code)
    assert problem.startswith(f"{tmp_path}/pair.py: ")
    assert sentence in problem


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"a"', '"a/b"', "must be at most 9 letters and digits, a letter first, got"),
        ('"a"', '"abcdefghij"', "must be at most 9 letters and digits, a letter first, got"),
        ('"a"', '"init"', 'a node "init"'),
        ("10.0.0.1/24", "10.0.0.999/24", "Input is not a valid IPv4 interface"),
        ("10.0.0.1/24", "fe80::1/64", "Input is not a valid IPv4 interface"),
        ('"10.0.0.1/24"', "None", 'link a - b: a needs an "ip"'),
    ],
)
def test_names_and_addresses_are_checked(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    """A node name that no interface can have, and an invalid address, are refused."""
    _refuse_changed(tmp_path / "pair.py", PAIR, old, new, sentence)


# Two hosts, each behind a router; a test changes a line.
LINE = """
from mininet.examples.linuxrouter import LinuxRouter
from mininet.topo import Topo
class Router(LinuxRouter):
    def config(self, back=None, **parameters):
        super().config(**parameters)
        self.cmd(f"ip route add 10.0.{back}.0/24 via 10.0.0.{back}")
class Line(Topo):
    queues = {"forward": [("r1", "r2")], "reverse": [("r2", "r1")]}
    delays = {"forward": [("r2", "h2")], "reverse": [("r1", "h1")]}
    def build(self):
        for n in (1, 2):
            self.addHost(f"r{n}", ip=None, cls=Router, back=3 - n)
            self.addHost(f"h{n}", ip=f"10.0.{n}.2/24", defaultRoute=f"via 10.0.{n}.1")
            self.addLink(f"h{n}", f"r{n}", params2={"ip": f"10.0.{n}.1/24"})
        self.addLink("r1", "r2", params1={"ip": "10.0.0.1/24"}, params2={"ip": "10.0.0.2/24"})
topos = {"line": Line}
"""
NO_EFFECT = "has no effect: a link profile sets rates, delays and losses, the plan the rest"


def _link(word: str) -> tuple[str, str]:
    """Give the link between the routers a word more."""
    return '"r1", "r2", p', f'"r1", "r2", {word}, p'


def _host(fields: str) -> tuple[str, str]:
    """Give the hosts on switches fields."""
    return 'addHost(f"h{n}")', f'addHost(f"h{{n}}", {fields})'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (*_link("bw=2"), f"link r1 - r2: bw=2 {NO_EFFECT}"),
        (*_link('delay="5ms"'), f"link r1 - r2: delay='5ms' {NO_EFFECT}"),
        (
            '"10.0.0.2/24"}',
            '"10.0.0.2/24", "loss": 3}',
            f"link r1 - r2: params2.loss=3 {NO_EFFECT}",
        ),
        ("cls=Router", "cls=Router, cpu=.1", f"r1: cpu=0.1 {NO_EFFECT}"),
        (
            '.2/24",',
            '.2/24", defaultroute="via 10.0.1.1",',
            "h1: defaultroute='via 10.0.1.1' has no",
        ),
        ('self.addLink("r1"', 'self.addSwitch("s1"); self.addLink("r1"', "s1 has no link"),
        (
            "topos =",
            "from mininet.topo import LinearTopo as Mine\ntopos = {'line': Mine}\nunused =",
            "must define queues",
        ),
        (*_link('intfName2="left"'), "r2: its interface must be r2-ethN, got 'left'"),
        (*_link('intfName2="r1-eth1"'), "r2: its interface must be r2-ethN, got 'r1-eth1'"),
        (*_link('intfName2="r2-eth0"'), "r2-eth0: 2 links have an interface of this name"),
        (
            '.2/24",',
            '.2/24", cls=type("Own", (LinuxRouter.__base__,), {"config": lambda *_, **p: p}),',
            "h1: no command gives h1-eth0 its address, 10.0.1.2/24",
        ),
        ("topos =", "unused =", 'topos = {"line": Line} must be its last line'),
        (
            "topos =",
            "import beside\ntopos =",
            "No module named 'beside': a topology is one file; it",
        ),
        (
            'ip=f"10.0.{n}.2/24", ',
            "",
            'h1 needs an "ip", as in addHost("h1", ip="10.0.1.2/24"); Mini',
        ),
        ('params2={"ip": f"10.0.{n}.1/24"}', "", 'r1 needs an "ip", as in addLink(..., params1={'),
        ('"10.0.0.2/24"', '"10.0.0.1/24"', "r1-eth1 and r2-eth1 have the address 10.0.0.1: each"),
        ('"10.0.0.2/24"', '"10.0.9.2/24"', "r1 - r2: 10.0.0.1/24 and 10.0.9.2/24 are not in one"),
        (
            "10.0.0.{back}",
            "10.0.9.{back}",
            "no neighbour has 10.0.9.2; they have 10.0.1.2, 10.0.0.2",
        ),
        (
            "ip route add 10.0.{back}.0/24 via",
            "route add -net 10.0.{back}.0/24 gw",
            "a route is `ip ro",
        ),
        ("ip route add 10.0.{back}.0/24", "ip route add 10.0.{back}.1/24", "has host bits set"),
    ],
)
def test_what_a_topology_says_in_vain_is_refused(
    tmp_path: Path, old: str, new: str, sentence: str
) -> None:
    """Settings without effect, and addresses and routes that lead nowhere, are refused."""
    _refuse_changed(tmp_path / "line.py", LINE, old, new, sentence)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("self.cmd(", "len(", "r1: no route to h2 (10.0.2.2)"),
        ("10.0.{back}.0/24 via", "10.0.7.0/24 via", "r1: no route to h2 (10.0.2.2)"),
        (
            "self.cmd(",
            "self.name == 'r2' and self.cmd('ip route add 10.0.2.2/32 via 10.0.0.1'); self.cmd(",
            "r1: packets to h2 (10.0.2.2) come back to it",
        ),
        (
            "Router(LinuxRouter)",
            "Router(__import__('mininet').node.Node)",
            "r1: forwards no packets",
        ),
    ],
)
def test_a_way_that_does_not_lead_to_its_end_is_named(
    tmp_path: Path, old: str, new: str, sentence: str
) -> None:
    """A path with no route, a loop, or a node that does not forward is an error."""
    path = tmp_path / "line.py"
    path.write_text(LINE)
    graph = load_topology(path, {})
    assert [i.name for i in graph.path("h1", "h2")] == ["h1-eth0", "r1-eth1", "r2-eth0"]
    assert old in LINE
    path.write_text(LINE.replace(old, new))
    with pytest.raises(SpecError) as caught:
        load_topology(path, {}).path("h1", "h2")
    assert sentence in str(caught.value)


# Two hosts, each on a switch; a test changes a line.
SWITCHED = """
from mininet.examples.linuxrouter import LinuxRouter
from mininet.topo import Topo
class Switched(Topo):
    queues = {"forward": [("s1", "s2")], "reverse": [("s2", "s1")]}
    delays = {"forward": [("s2", "h2")], "reverse": [("s1", "h1")]}
    def build(self):
        for n in (1, 2):
            self.addSwitch(f"s{n}")
            self.addHost(f"h{n}")
            self.addLink(f"h{n}", f"s{n}")
        self.addLink("s1", "s2")
topos = {"switched": Switched}
"""


@pytest.mark.slow
def test_switches_join_hosts(tmp_path: Path) -> None:
    """Hosts get Mininet's addresses, and switches forward frames only to their host."""
    path = tmp_path / "switched.py"
    path.write_text(SWITCHED)
    graph = load_topology(path, {})
    assert [str(i.address) for i in graph.interfaces if i.address] == ["10.0.0.1/8", "10.0.0.2/8"]
    assert [i.name for i in graph.path("h2", "h1")] == ["h2-eth0", "s2-eth2", "s1-eth1"]
    assert graph.routes["s1"].ways == {"10.0.0.1/32": "s1-eth1", "10.0.0.2/32": "s1-eth2"}
    (start,) = graph.interfaces_of("h1")
    assert [i.name for i in graph.neighbours(start)] == ["h2-eth0"]
    assert host_routes(graph, start, 4) == {
        "10.0.0.0/8": "dev h1-eth0 proto kernel scope link src 10.0.0.1"
    }
    bridging = [each for each in graph.commands["s1"] if not isinstance(each, Up)]
    assert bridging == [Bridge("s1"), Port("s1", "s1-eth1"), Port("s1", "s1-eth2")]
    assert {Up(name) for name in ("s1", "s1-eth1", "s1-eth2")} < {*graph.commands["s1"]}


@pytest.mark.slow
def test_mininets_own_example_is_a_network() -> None:
    """Mininet's linuxrouter.py, unmodified, has paths over switch, router and switch."""
    graph = load_topology(TOPOLOGIES / "linuxrouter.py", {})
    assert [i.name for i in graph.path("h1", "h3")] == ["h1-eth0", "s1-eth1", "r0-eth3", "s3-eth2"]
    assert host_routes(graph, graph.interfaces_of("h1")[0], 6) == {
        "fd00::c0a8:100/120": "dev h1-eth0 proto kernel metric 256",
        "default": "via fd00::c0a8:101",
    }


@pytest.mark.slow
def test_a_host_on_switches_needs_a_default_route_of_its_own(tmp_path: Path) -> None:
    """Without its defaultRoute a host of Mininet's linuxrouter.py reaches only its network."""
    path = tmp_path / "linuxrouter.py"
    example = Path(linuxrouter.__file__).read_text("utf-8")
    assert "defaultRoute='via 192.168.1.1'" in example
    places = "queues = NetworkTopo.delays = {'on': [('r0', 's3')]}"
    end = f"NetworkTopo.{places}\ntopos = {{'linuxrouter': NetworkTopo}}"
    path.write_text(example.replace("defaultRoute='via 192.168.1.1'", "") + end)
    graph = load_topology(path, {})
    with pytest.raises(SpecError, match=r"h1: no route to h3 \(10\.0\.0\.100\)"):
        graph.path("h1", "h3")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            '        self.addLink("s1", "s2")',
            '        self.addLink("s1", "s2"); self.addLink("s1", "s2")',
            "s2: its frames come back to it, and there is no spanning tree",
        ),
        (
            *_host('ip=f"10.0.{n}.2/24"'),
            "h1 - h2: 10.0.1.2/24 and 10.0.2.2/24 are not in one network",
        ),
        (
            *_host('ip=f"10.0.0.{n}/8", cls=LinuxRouter'),
            "s1: leads to h1-eth0 and h2-eth0: switches join hosts and one interface of a router",
        ),
        (*_host('ip="10.0.0.1/8"'), "h1-eth0 and h2-eth0 have the address 10.0.0.1"),
        ('("s1", "s2")\n', '("s1", "s2", bw=10)\n', f"link s1 - s2: bw=10 {NO_EFFECT}"),
        (
            'addSwitch(f"s{n}")',
            'addSwitch(f"s{n}", stp=True)',
            "brctl setbridgeprio 100: no command",
        ),
    ],
)
def test_what_switches_cannot_join_is_refused(
    tmp_path: Path, old: str, new: str, sentence: str
) -> None:
    """Loops of switches, and hosts of other networks or several routers on them, are refused."""
    _refuse_changed(tmp_path / "switched.py", SWITCHED, old, new, sentence)


@pytest.mark.slow
@pytest.mark.parametrize("bridge", ["docker0", "s1\\", "'s1'", "s2"])
def test_a_port_is_one_of_its_switchs_bridge(bridge: str) -> None:
    """A bridge's command has no word of the topology except its switch's name."""
    ports = {"s1": ["s1-eth1"]}
    assert read_commands("x.py", [("s1", "brctl addif s1 s1-eth1")], ports, [])["s1"]
    with pytest.raises(SpecError, match="a switch's bridge has its name, s1"):
        read_commands("x.py", [("s1", f"brctl addif {bridge} s1-eth1")], ports, [])


@pytest.mark.slow
def test_a_topology_reaches_nothing_of_the_users(tmp_path: Path) -> None:
    """A topology's code can write no file, and can read only the distribution's files."""
    secret, mark = tmp_path / "secret", tmp_path / "mark"
    secret.write_text("the user's")
    code = f"""
import os, socket
found = []
for way in (lambda: open({str(mark)!r}, "w"), lambda: open({str(secret)!r}).read(),
            lambda: open("/etc/shadow"), lambda: open("/mnt/mark", "w"),
            lambda: socket.create_connection(("127.0.0.1", 22), 1)):
    try:
        found.append(way())
    except OSError:
        pass
raise ValueError(f"ways out: {{found}}")
"""
    assert _problem(tmp_path, code).endswith("ValueError: ways out: []")
    assert not mark.exists()


_MEMORY = {
    "private": "bytearray(600 << 20)",
    "shared": "__import__('mmap').mmap(-1, 600 << 20)",
    "a file": "os.ftruncate(os.memfd_create('a'), 5 << 20)",
    "files": "[os.memfd_create('a') for _ in range(70)]",
    "processes": "[os.fork() or time.sleep(9) for _ in range(8)]",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", _MEMORY)
def test_a_topologys_memory_is_limited(tmp_path: Path, kind: str) -> None:
    """A topology's code cannot take much memory: private, shared, in files, or in processes."""
    code = f"""
import os, signal, time
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    {_MEMORY[kind]}
except (MemoryError, OSError) as error:
    raise ValueError("limited") from error
"""
    assert "ValueError: limited" in _problem(tmp_path, code)


@pytest.mark.slow
def test_a_topology_may_use_numpy(tmp_path: Path) -> None:
    """A topology's code may load numpy within its limits."""
    assert "ValueError: 6" in _problem(
        tmp_path, "import numpy\nraise ValueError(numpy.arange(4).sum())"
    )


@pytest.mark.slow
def test_a_sound_topology_is_loaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unchanged topology is described from the cache; a changed one is loaded again."""
    path = tmp_path / "pair.py"
    path.write_text(PAIR)
    graph = load_topology(path, {})
    assert [i.name for i in graph.interfaces] == ["a-eth0", "b-eth0"]
    (known,) = (tmp_path / "cache/twoway/topologies").iterdir()
    known.write_text(known.read_text().replace("10.0.0.1/24", "10.0.0.7/24"))
    monkeypatch.setattr(topology, "_load", topology._load.__wrapped__)  # without cache
    assert str(load_topology(path, {}).address("a", 4)) == "10.0.0.7"
    known.write_text("{")
    assert str(load_topology(path, {}).address("a", 4)) == "10.0.0.1"
    path.write_text(PAIR.replace("10.0.0.1", "10.0.0.3"))
    assert str(load_topology(path, {}).address("a", 4)) == "10.0.0.3"


# The segments of hosts that links and switches connect.


def _row(switches: int, hosts: int) -> list[Interface]:
    """Return the interfaces of switches in a row, with hosts at the first switch."""
    links = [((f"s{n}", 0), (f"s{n + 1}", 1)) for n in range(switches - 1)]
    links += [((f"h{n}", 0), ("s0", n + 1)) for n in range(hosts)]
    found = []
    for ends in links:
        for (node, number), (peer, at) in (ends, ends[::-1]):
            address = IPv4Interface(f"10.0.{number}.{node[1:]}/8") if node[0] == "h" else None
            name, peer_name = f"{node}-eth{number}", f"{peer}-eth{at}"
            found.append(Interface(node, name, address, "", peer, peer_name))
    return found


def test_switches_have_a_bounded_number_of_routes() -> None:
    """250 switches may each have routes to 200 hosts, 50000 in all; with 251 they are refused."""
    for switches, problems in (
        (250, []),
        (251, ["each switch has a route to each end that it leads to: 50000 at most, got 50200"]),
    ):
        ends, names = _row(switches, 200), [f"s{n}" for n in range(switches)]
        assert [*joining_problems(ends, names, ())] == problems
