"""The longest prefix of a destination decides where packets leave a node."""

from ipaddress import IPv4Network, IPv6Network, ip_address

from hypothesis import given
from hypothesis import strategies as st

from twoway.contract.routing import ITSELF, Routes
from twoway.description.addresses import IPV6_PREFIX, network_in_ipv6

# Few addresses, so that prefixes contain one another.
ADDRESSES = st.integers(min_value=0, max_value=15).map(lambda low: (10 << 24) | low)
NETWORKS = st.tuples(ADDRESSES, st.sampled_from((0, 8, 29, 30, 31, 32))).map(
    lambda each: IPv4Network(each, strict=False)
)


def test_the_longest_prefix_decides() -> None:
    """A host route wins over a network's, which wins over the default; IPv6 has the same order."""
    ways = {"0.0.0.0/0": "up", "10.1.0.0/16": "left", "10.1.2.0/24": "right", "10.1.2.1/32": ITSELF}
    routes = Routes(ways | {"fd00::/64": "six"})
    found = {
        each: routes.way_out(each) for each in ("10.2.0.1", "10.1.0.1", "10.1.2.3", "10.1.2.1")
    }
    assert list(found.values()) == ["up", "left", "right", ITSELF]
    assert (routes.way_out("fd00::1"), routes.way_out("fe80::1")) == ("six", None)


@given(st.dictionaries(NETWORKS, st.sampled_from("abc")), ADDRESSES)
def test_routes_are_those_of_a_search(ways: dict[IPv4Network, str], low: int) -> None:
    """A look-up finds the same as a search through all prefixes, in both versions of IP."""
    address, twin = ip_address(low), ip_address(IPV6_PREFIX | low)
    held = sorted((n.prefixlen, way) for n, way in ways.items() if address in n)
    expected = held[-1][1] if held else None
    assert Routes({str(n): way for n, way in ways.items()}).way_out(str(address)) == expected
    twins: dict[IPv6Network, str] = {network_in_ipv6(n): way for n, way in ways.items()}
    assert Routes({str(n): way for n, way in twins.items()}).way_out(str(twin)) == expected
