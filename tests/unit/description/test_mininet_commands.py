"""Mininet's commands are read in strict forms; no other text reaches a plan."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twoway.description.mininet_commands import read_commands
from twoway.errors import SpecError

INTERFACES = {"h1": ["h1-eth0"], "r1": ["r1-eth0"]}
LINKS = [("h1-eth0", "r1-eth0")]
MAKE = "ip link add name h1-eth0 address 0:1:2:3:4:5 type veth peer name r1-eth0 netns r1"


def _lines(*commands: str, node: str = "r1") -> tuple[str, ...]:
    found = read_commands("t.py", [("h1", MAKE), *((node, c) for c in commands)], INTERFACES, LINKS)
    return tuple(line for command in found[node] for ip in (4, 6) if (line := command.line(ip)))


def test_commands_become_lines_for_ip() -> None:
    """Addresses, routes and link states keep their order, appear once, and have IPv6 twins."""
    assert _lines(
        "ifconfig r1-eth0 10.0.1.1/24 up",
        "ifconfig r1-eth0 up",
        "ip route del default",
        "ip route add default via 10.0.1.2",
        "ip -4 route replace 10.0.9.0/24 via 10.0.1.2 dev r1-eth0",
        "sysctl net.ipv4.ip_forward=1",
        "ip link set dev r1-eth0 up",
        "ip addr add 192.0.2.1/32 dev lo",
    ) == (
        "address add 10.0.1.1/24 brd + dev r1-eth0",
        "address add fd00::a00:101/120 dev r1-eth0",
        "link set r1-eth0 up",
        "route replace default via 10.0.1.2",
        "route replace default via fd00::a00:102",
        "route replace 10.0.9.0/24 via 10.0.1.2",
        "route replace fd00::a00:900/120 via fd00::a00:102",
        "address add 192.0.2.1/32 brd + dev lo",
        "address add fd00::c000:201/128 dev lo",
    )


ATTACKS = {
    "rm -rf /": "no command of a network",
    "ifconfig r1-eth0 up\nrm -rf /": "no command of a network",
    "ip link set eth0 up": "no interface eth0; it has r1-eth0",
    "ip link set h1-eth0 up": "no interface h1-eth0; it has r1-eth0",
    "ip link set r1-eth0 netns 1": "no command of a network",
    "ip link del r1-eth0": "no command of a network",
    "ip netns exec init sh": "no command of a network",
    "ip -batch /etc/shadow": "no command of a network",
    "ip address add 10.0.1.1/24 dev $(id)": "no interface $(id)",
    "ip address add 10.0.1.1/99 dev r1-eth0": "'99' is not a valid netmask",
    "ip route add 10.0.9.0/24 via `id`": "Expected 4 octets",
    "ip rule add pref 1 lookup 7": "no command of a network",
    "tc qdisc add dev r1-eth0 root netem": "no command of a network",
    "sysctl net.ipv4.ip_forward=2": "no command of a network",
    "sysctl kernel.core_pattern=|/tmp/x": "no command of a network",
    "ip link add name r1-eth0 type veth peer name x netns 1": "each link must be made once",
    "ip link add name eth0 type veth peer name r1-eth0 netns r1": "each link must be made once",
    MAKE: "each link must be made once",
}


@pytest.mark.parametrize("command", ATTACKS)
def test_other_commands_are_refused(command: str) -> None:
    """A command that is not about the network is an error with the file, node and command."""
    with pytest.raises(SpecError) as caught:
        _lines("ifconfig r1-eth0 up", command)
    (problem,) = caught.value.problems
    assert problem.startswith(f"t.py: r1: {command:.80}: ")
    assert ATTACKS[command] in problem


@pytest.mark.parametrize("made", [[], [MAKE, MAKE]])
def test_each_link_is_made_once(made: list[str]) -> None:
    """A link that Mininet makes twice, or never, is an error."""
    with pytest.raises(SpecError, match="each link must be made once, in the order"):
        read_commands("t.py", [("h1", command) for command in made], INTERFACES, LINKS)


WORDS = """\
ip ifconfig link set dev up address addr add route via lo r1-eth0 h1-eth0 eth0 10.0.1.1/24 10.0.1.2
default netns 1 init ; | $(id) & > /etc/passwd rm -rf brd + -4 -batch - sysctl
"""
PIECES = st.sampled_from(WORDS.split())


@given(st.lists(PIECES, max_size=8).map(" ".join))
def test_whatever_is_recorded_lines_are_of_known_words(command: str) -> None:
    """Any command gives lines of known words and the node's own interfaces, or an error."""
    try:
        lines = _lines(command)
    except SpecError:
        return
    known = {"address", "add", "brd", "+", "dev", "link", "set", "up", "route", "replace", "via"}
    named = {"default", "lo", "r1-eth0", "10.0.1.1/24", "10.0.1.2"}
    named |= {"fd00::a00:101/120", "fd00::a00:102"}
    assert {word for line in lines for word in line.split()} <= known | named
