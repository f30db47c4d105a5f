"""A link's own MTU: what is larger never reaches its queue.

The router's routes over the link have the MTU, so Linux drops a larger packet and tells its sender
by ICMP; as the interface's own it would hold in the other direction, too. In a black hole no route
has it, and police drops what is larger in silence.
"""

from typing import Annotated, Any, ClassVar

from capture_analysis.columns import BoolArray, IntArray
from pydantic import BeforeValidator, Field

from twoway.contract.network import ETHERNET_BYTES
from twoway.links.element import BeforeQueue, Setting

_LEAST_BYTES = {4: 68, 6: 1280}  # RFC 791; RFC 8200, section 5


class Mtu(BeforeQueue):
    """The MTU of the routes over the interface that sends into a link."""

    FIELD: ClassVar = "mtu_bytes"
    TITLE: ClassVar = "A link's MTU"
    DESCRIPTION: ClassVar = (
        "the most bytes of an IP packet on this direction, by default stack.mtu_bytes; or {bytes, "
        "icmp}"
    )

    bytes: Annotated[int, Field(ge=68, le=65535)] = Field(
        description="the most bytes of an IP packet"
    )
    icmp: bool = Field(
        default=True,
        description="the router tells the sender of a larger packet, as Linux does; false: a black "
        "hole, which drops it in silence",
    )

    @classmethod
    def field(cls) -> tuple[Any, Any]:
        """Return the type and the default of the direction's field; a number is its bytes."""
        of_number = BeforeValidator(_of_number, json_schema_input_type=cls | int)
        return Annotated[cls | None, of_number], Field(default=None, description=cls.DESCRIPTION)

    @property
    def is_counted(self) -> bool:
        """True if a counter of the interface's qdiscs has its drops: not those of forwarding."""
        return not self.icmp

    def refuses(self, time_ns: IntArray, frame_bytes: IntArray) -> BoolArray:  # noqa: ARG002
        """Mark the frames that are larger."""
        return frame_bytes > self.bytes + ETHERNET_BYTES

    def setting_problems(self, setting: Setting) -> list[str]:
        """Refuse an MTU larger than the hosts', and one that IP does not allow."""
        least = _LEAST_BYTES[6 if setting.has_ipv6 else 4]
        if least <= self.bytes <= setting.mtu_bytes:
            return []
        of_ip = " in IPv6" * setting.has_ipv6
        most = f"stack.mtu_bytes ({setting.mtu_bytes})"
        return [f": must be {least}{of_ip} to {most}, got {self.bytes}"]

    @property
    def police(self) -> str:
        """The action of a black hole; the plan sets an interface's MTU itself."""
        return "" if self.icmp else f"police mtu {self.bytes + ETHERNET_BYTES}"


def _of_number(given: Any) -> Any:
    return {"bytes": given} if isinstance(given, int) and not isinstance(given, bool) else given
