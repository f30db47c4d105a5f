"""One end of a link."""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface


@dataclass(frozen=True)
class Interface:
    """One end of a link.

    Attributes:
        address: None for a port of a switch.
    """

    node: str
    name: str
    address: IPv4Interface | None
    mac: str
    peer_node: str
    peer_name: str

    @property
    def ip(self) -> IPv4Address:
        """The address of an interface, which must not be a port of a switch."""
        assert self.address is not None
        return self.address.ip
