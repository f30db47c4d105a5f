"""A node's routes: the interface at which a packet leaves, by its destination."""

from collections.abc import Mapping
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import NamedTuple

# The interface of packets to the node itself, which do not leave it.
ITSELF = "lo"


class _Length(NamedTuple):
    """All prefixes of one length, of one version of IP."""

    version: int
    bits: int


class Routes:
    """A node's routes; the longest prefix that matches a destination decides.

    Args:
        ways: interfaces by prefix, as in "10.0.1.0/24" or "fd00::/96"; ITSELF for addresses of its
            own.
    """

    def __init__(self, ways: Mapping[str, str]) -> None:
        self.ways = dict(ways)
        self._known: dict[str, str | None] = {}

    def interface_to(self, destination: str) -> str | None:
        """Find the interface at which packets to an address leave; None without a route."""
        if destination not in self._known:
            self._known[destination] = self._looked_up(ip_address(destination))
        return self._known[destination]

    def _looked_up(self, address: IPv4Address | IPv6Address) -> str | None:
        for length in sorted(self._by_length, reverse=True):
            if length.version == address.version:
                prefix = int(address) >> (address.max_prefixlen - length.bits)
                if found := self._by_length[length].get(prefix):
                    return found
        return None

    @cached_property
    def _by_length(self) -> dict[_Length, dict[int, str]]:
        """Interfaces by length of prefix, then by the prefix's own bits."""
        found: dict[_Length, dict[int, str]] = {}
        for text, interface in self.ways.items():
            network = ip_network(text)
            prefix = int(network.network_address) >> (network.max_prefixlen - network.prefixlen)
            length = _Length(network.version, network.prefixlen)
            found.setdefault(length, {})[prefix] = interface
        return found
