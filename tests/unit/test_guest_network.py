"""What Mininet's nodes without shells are told to run, and what becomes of it."""

import pytest
from network import Batches


@pytest.fixture
def batches() -> Batches:
    """The commands of two nodes, none so far."""
    made = Batches()
    made.lines = {"h1": [], "r1": []}
    return made


def test_commands_become_lines_for_ip(batches: Batches) -> None:
    """Addresses, routes and links keep their order; a new namespace has no route to delete."""
    batches.add_command("r1", "ifconfig r1-eth0 10.0.1.1/24 up")
    batches.add_command("r1", "ip route del default; ip route add default via 10.0.0.2")
    batches.add_command("r1", "ifconfig lo up")
    assert batches.lines["r1"] == [
        "address add 10.0.1.1/24 brd + dev r1-eth0",
        "link set r1-eth0 up",
        "route add default via 10.0.0.2",
        "link set lo up",
    ]
    assert batches.lines["h1"] == []


def test_links_are_made_first_and_in_their_node(batches: Batches) -> None:
    """A veth pair is made before any node's lines, with its first end in the node it is made in."""
    batches.add_command("h1", "ip link add name h1-eth0 type veth peer name r1-eth0 netns r1")
    assert batches.links == ["link add name h1-eth0 netns h1 type veth peer name r1-eth0 netns r1"]
    assert batches.lines == {"h1": [], "r1": []}
