"""Options of the sockets of a flow."""

import socket
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from twoway.contract.model import Model
from twoway.contract.network import IpVersion

# linux/tcp.h: Python's socket lacks it in some versions.
_TCP_NOTSENT_LOWAT = 25
_SO_MAX_PACING_RATE = 47


class SocketOptions(Model):
    """Options of a flow's sockets, as a program would set them; by default none is set."""

    nodelay: bool = Field(default=False, description="TCP_NODELAY: small segments leave at once")
    mss_bytes: Annotated[int, Field(ge=88, le=65483)] | None = Field(
        default=None, description="TCP_MAXSEG: the most payload and options of a segment"
    )
    dscp: Annotated[int, Field(ge=0, le=63)] | None = Field(
        default=None, description="DSCP of the source's packets, such as 46 for EF"
    )
    notsent_lowat_bytes: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = Field(
        default=None, description="TCP_NOTSENT_LOWAT: unsent data that the source may write ahead"
    )
    max_pacing_rate_mbit: Annotated[float, Field(ge=0.001, le=17_000)] | None = Field(
        default=None, description="SO_MAX_PACING_RATE: segments leave no faster"
    )
    user_timeout_ms: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = Field(
        default=None,
        description="TCP_USER_TIMEOUT: the connection ends if data have no ACK for so long",
    )
    send_buffer_bytes: Annotated[int, Field(ge=1, le=2**29)] | None = Field(
        default=None,
        description="SO_SNDBUF, which the kernel doubles, and then does not tune; in `linux` at "
        "most net.core.wmem_max, as on Linux",
    )
    receive_buffer_bytes: Annotated[int, Field(ge=1, le=2**29)] | None = Field(
        default=None,
        description="SO_RCVBUF, which the kernel doubles, and then does not tune; in `linux` at "
        "most net.core.rmem_max, as on Linux",
    )

    def of_source(self, ip: IpVersion) -> Iterator[str]:
        """List the options of the source's socket as `stream` reads them: level, name, value."""
        of_ip = (socket.IPPROTO_IP, socket.IP_TOS)
        if ip == 6:
            of_ip = (socket.IPPROTO_IPV6, socket.IPV6_TCLASS)
        rate = self.max_pacing_rate_mbit
        pacing_bytes = None if rate is None else max(round(rate * 125_000), 1)
        for level, name, value in (
            (socket.IPPROTO_TCP, socket.TCP_NODELAY, int(self.nodelay) or None),
            (socket.IPPROTO_TCP, socket.TCP_MAXSEG, self.mss_bytes),
            (*of_ip, None if self.dscp is None else self.dscp << 2),
            (socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, self.notsent_lowat_bytes),
            (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, self.user_timeout_ms),
            (socket.SOL_SOCKET, _SO_MAX_PACING_RATE, pacing_bytes),
            (socket.SOL_SOCKET, socket.SO_SNDBUF, self.send_buffer_bytes),
        ):
            if value is not None:
                yield f"{int(level)},{name},{value}"
