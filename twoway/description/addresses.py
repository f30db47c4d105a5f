"""The IPv6 twins of a topology's IPv4 addresses and networks."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

# Prefix before the 32 bits of an IPv4 address: unique local addresses (RFC 4193).
IPV6_PREFIX = 0xFD << 120


def address_in(address: IPv4Address, ip: int) -> IPv4Address | IPv6Address:
    """Return an interface's address in a version of IP, given that in IPv4."""
    return address if ip == 4 else IPv6Address(IPV6_PREFIX | int(address))


def network_in_ipv6(network: IPv4Network) -> IPv6Network:
    """Return the IPv6 twin of an IPv4 network.

    Its prefix is 96 bits longer; that of 0.0.0.0/0 is ::/0.
    """
    if not network.prefixlen:
        return IPv6Network("::/0")
    return IPv6Network((IPV6_PREFIX | int(network.network_address), 96 + network.prefixlen))
