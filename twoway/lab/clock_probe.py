"""Measuring the offsets of other hosts' clocks from this one's.

A request leaves at t1 on this host's clock and arrives at t2 on the other's; the reply leaves at t3
on the other's clock and arrives at t4 on this one's. No packet arrives before it left, so the other
clock is ahead by at most t2 - t1 and at least t3 - t4. The closest bounds of many requests are
kept: the offset lies between them, however the network behaves, and half their distance is its
uncertainty. Times are CLOCK_REALTIME, ns; the kernel stamps arrivals.
"""

import socket
import struct
import time
from dataclasses import asdict, dataclass
from typing import Any

from twoway.errors import RunError

PORT = 8787
# All requests take some ms together, in which clocks drift apart by less than a microsecond.
QUESTIONS = 200
_REPLY_TIMEOUT_S = 0.5
# The most replies that may be missing: the other host has 40 x 0.5 s = 20 s to start answering.
_MOST_LOST = 40
# The socket option SO_TIMESTAMPNS, stamps of arrivals by the kernel (asm-generic/socket.h); Python
# has no name for it.
_SO_TIMESTAMPNS = 35
_STAMP = struct.Struct("@qq")
# Wire format, big-endian int64. Request: sequence number, -1 ends the session. Reply: sequence
# number, t2 in ns, t3 in ns.
_QUESTION = struct.Struct("!q")
_ANSWER = struct.Struct("!qqq")
_END = -1


@dataclass(frozen=True)
class Measured:
    """A measurement of another host's clock relative to this host's.

    Attributes:
        at_ns: time of the measurement on this host's clock.
        offset_ns: the other clock's time minus this one's.
        uncertainty_ns: the largest error of `offset_ns`.
    """

    at_ns: int
    offset_ns: int
    uncertainty_ns: int

    def document(self) -> dict[str, Any]:
        """Return the measurement as a JSON object."""
        return asdict(self)


def answer(address: str, port: int, seconds: float) -> None:
    """Answer requests until the session ends or none comes for a time.

    Args:
        address: the address of this host on which to listen.
        port: the UDP port.
        seconds: the longest time to wait for a request.
    """
    with _socket(address, seconds) as server:
        server.bind((address, port))
        while True:
            try:
                data, arrived_ns, who = _receive(server, _QUESTION.size)
            except TimeoutError:
                return
            if len(data) != _QUESTION.size:
                continue
            (number,) = _QUESTION.unpack(data)
            if number == _END:
                return
            server.sendto(_ANSWER.pack(number, arrived_ns, time.time_ns()), who)


def ask(address: str, port: int = PORT, questions: int = QUESTIONS) -> Measured:
    """Measure the clock of a host on which answer() runs.

    Raises: RunError if more than 40 requests get no reply.
    """
    least, most = -(1 << 62), 1 << 62
    lost = number = 0
    with _socket(address, _REPLY_TIMEOUT_S) as client:
        client.connect((address, port))
        while number < questions:
            try:
                left_ns, arrived_ns, answered_ns, back_ns = _exchange(client, number + lost)
            except (TimeoutError, ConnectionRefusedError) as error:
                lost += 1
                if lost > _MOST_LOST:
                    raise RunError(
                        f"{address}: its clock does not answer on UDP port {port}",
                        "a firewall may be in the way",
                    ) from error
                continue
            most = min(most, arrived_ns - left_ns)
            least = max(least, answered_ns - back_ns)
            number += 1
        client.send(_QUESTION.pack(_END))
    return Measured(time.time_ns(), (least + most) // 2, (most - least + 1) // 2)


def _exchange(client: socket.socket, number: int) -> tuple[int, int, int, int]:
    """Send one request and return t1, t2, t3 and t4 (module docstring), ns."""
    left_ns = time.time_ns()
    try:
        client.send(_QUESTION.pack(number))
        while True:  # skip late replies to earlier requests
            data, back_ns, _ = _receive(client, _ANSWER.size)
            got, arrived_ns, answered_ns = _ANSWER.unpack(data)
            if got == number:
                return left_ns, arrived_ns, answered_ns, back_ns
    except ConnectionRefusedError:  # the error comes at once; wait as long as for a lost reply
        time.sleep(_REPLY_TIMEOUT_S)
        raise


def _socket(address: str, patience_s: float) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, socket.SOCK_DGRAM)
    made.settimeout(patience_s)
    made.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    return made


def _receive(of: socket.socket, size: int) -> tuple[bytes, int, Any]:
    """Receive a datagram.

    Returns: the datagram, its time of arrival in ns, and its sender.
    """
    data, ancillary, _, who = of.recvmsg(size, socket.CMSG_SPACE(_STAMP.size))
    ((_, _, stamp),) = ancillary
    seconds, ns = _STAMP.unpack(stamp)
    return data, seconds * 10**9 + ns, who
