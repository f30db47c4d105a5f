"""The segments of hosts that links and switches connect."""

from ipaddress import IPv4Interface

from twoway.description.switching import joining_problems
from twoway.links.interface import Interface


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
        (
            251,
            ["each switch has a route to each end that it leads to: 50000 at most, got 50200"],
        ),
    ):
        ends, names = _row(switches, 200), [f"s{n}" for n in range(switches)]
        assert [*joining_problems(ends, names, ())] == problems
