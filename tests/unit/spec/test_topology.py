"""A topology's Python runs in the sandbox, and what it says is checked like any other file."""

from pathlib import Path

import pytest

from twoway.errors import SpecError
from twoway.spec import topology
from twoway.spec.topology import load_topology

pytestmark = pytest.mark.slow  # a sandbox and Mininet, each time

# A sound topology, to which a test adds what is wrong.
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


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of descriptions that nothing is in yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def _problem(folder: Path, code: str) -> str:
    path = folder / "pair.py"
    path.write_text(PAIR + code)
    with pytest.raises(SpecError) as caught:
        load_topology(path, {})
    return str(caught.value)


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
        ("topos = {}", "KeyError: 'pair'"),
        ("topos = {'pair': int}", "AttributeError: 'int' object has no attribute 'nodes'"),
        ("Pair.queues = 5", "queues: Input should be a valid dictionary, got 5"),
        ("Pair.queues = {'forward': [('a', 'z')]}", "queues.forward: no link a - z"),
        ("Pair.delays = {}", "must define delays"),
        ("Pair.build = lambda s: [s.addHost(f'h{n}') for n in range(1001)]", "at most 1000 items"),
        ("class P(Pair):\n def build(s): s.addHost('c'); super().build()", ""),
    ],
)
def test_a_topology_that_fails_is_an_error_of_its_file(
    tmp_path: Path, code: str, sentence: str
) -> None:
    """Whatever a topology's code does, its file is named and the command goes on to its end."""
    if not sentence:
        code, sentence = f"{code}\ntopos = {{'pair': P}}", "c has no link"
    problem = _problem(tmp_path, code)
    assert problem.startswith(f"{tmp_path}/pair.py: ")
    assert sentence in problem


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"a"', '"a/b"', "String should match pattern"),
        ('"a"', '"abcdefghij"', "String should match pattern"),
        ('"a"', '"init"', 'a node "init"'),
        ("10.0.0.1/24", "10.0.0.999/24", "Input is not a valid IPv4 interface"),
        ("10.0.0.1/24", "fe80::1/64", "Input is not a valid IPv4 interface"),
        ('"10.0.0.1/24"', "None", 'link a - b: a needs an "ip"'),
    ],
)
def test_names_and_addresses_are_checked(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    """A node's name that no interface can have, or an address that is none, is refused."""
    path = tmp_path / "pair.py"
    path.write_text(PAIR.replace(old, new))
    with pytest.raises(SpecError) as caught:
        load_topology(path, {})
    assert sentence in str(caught.value)


def test_a_topology_reaches_nothing_of_the_users(tmp_path: Path) -> None:
    """A topology's code can neither write a file nor read one that is not the distribution's."""
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


def test_a_sound_topology_is_loaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The description of a file that has not changed is kept, and a changed file is loaded."""
    path = tmp_path / "pair.py"
    path.write_text(PAIR)
    graph = load_topology(path, {})
    assert [i.name for i in graph.interfaces] == ["a-eth0", "b-eth0"]
    (known,) = (tmp_path / "cache/twoway/topologies").iterdir()
    known.write_text(known.read_text().replace("10.0.0.1/24", "10.0.0.7/24"))
    monkeypatch.setattr(topology, "_load", topology._load.__wrapped__)  # forgets
    assert str(load_topology(path, {}).address("a", 4)) == "10.0.0.7"
    known.write_text("{")
    assert str(load_topology(path, {}).address("a", 4)) == "10.0.0.1"
    path.write_text(PAIR.replace("10.0.0.1", "10.0.0.3"))
    assert str(load_topology(path, {}).address("a", 4)) == "10.0.0.3"
