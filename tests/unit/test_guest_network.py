"""What Mininet's nodes without shells are told to run, and what becomes of it."""

from unittest.mock import Mock

import network
import pytest
from network import Batches


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> Batches:
    """The commands of two nodes, none so far."""
    monkeypatch.setattr(network, "waiting", {"h1": [], "r1": []})
    return Batches()


def test_commands_become_lines_for_ip(batches: Batches) -> None:
    """Addresses, routes and links keep their order; a new namespace has no route to delete."""
    batches.add_command("r1", "ifconfig r1-eth0 10.0.1.1/24 up")
    batches.add_command("r1", "ip route del default; ip route add default via 10.0.0.2")
    batches.add_command("r1", "ifconfig lo up")
    assert network.waiting["r1"] == [
        "address add 10.0.1.1/24 brd + dev r1-eth0",
        "link set r1-eth0 up",
        "route add default via 10.0.0.2",
        "link set lo up",
    ]
    assert network.waiting["h1"] == []


def test_links_are_made_first_and_in_their_node(batches: Batches) -> None:
    """A veth pair is made before any node's lines, with its first end in the node it is made in."""
    batches.add_command("h1", "ip link add name h1-eth0 type veth peer name r1-eth0 netns r1")
    assert batches.links == ["link add name h1-eth0 netns h1 type veth peer name r1-eth0 netns r1"]
    assert network.waiting == {"h1": [], "r1": []}


def test_a_nodes_first_batch_begins_with_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node's first batch of ip begins with what Mininet would run there; the next do not."""
    server = Mock(run=lambda _namespace, lines: (0, lines, ""))
    monkeypatch.setattr(network, "waiting", {"h1": ["link set lo up"], "r1": ["never"]})
    monkeypatch.setattr("network._fork_server", lambda *_: server)
    batch = ("ip", "-json", "-batch", "-")
    assert network.run_program("h1", ["tc", "-batch", "-"], ["qdisc show"]) == "qdisc show\n"
    assert network.run_program("h1", [*batch], ["link show"]) == "link set lo up\nlink show\n"
    assert network.run_program("h1", [*batch], ["link show"]) == "link show\n"


def test_what_a_program_complains_of_is_told() -> None:
    """A program that fails is named with its node, its arguments and its error's words, if any."""
    with pytest.raises(network.GuestError, match=r"^h1: sh -c echo no >&2; exit 3: no$"):
        network.run_program("h1", ["sh", "-c", "echo no >&2; exit 3"])
    with pytest.raises(network.GuestError, match=r"^guest: sh -c cat; exit 1: given twice$"):
        network.run_program(None, ["sh", "-c", "cat; exit 1"], ["given", "twice"])


def test_the_line_of_a_batch_that_failed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command in a batch is named with its line and with what ip or tc says of it, if anything.

    Lines that waited for the node's first batch count, too.
    """
    answers = iter(['Illegal "limit"\nCommand failed -:2\n', "Command failed -:1\n", "killed\n"])
    server = Mock(run=lambda _namespace, _lines: (1, "", next(answers)))
    monkeypatch.setattr("network._fork_server", lambda *_: server)
    monkeypatch.setattr(network, "waiting", {"r1": ["link set lo up"]})
    for program, sentence in (
        ("ip", "r1: ip -batch -: line 2, 'qdisc show': Illegal \"limit\""),
        ("tc", "r1: tc -batch -: line 1, 'qdisc show': refused without a word"),
        ("tc", "r1: tc -batch -: killed"),
    ):
        with pytest.raises(network.GuestError) as caught:
            network.run_program("r1", [program, "-batch", "-"], ["qdisc show"])
        assert str(caught.value) == sentence
