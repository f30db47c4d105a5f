"""Measuring the offsets of other hosts' clocks from this one's.

A request leaves at t1 on this host's clock and arrives at t2 on the other's; the reply leaves at t3
on the other's clock and arrives at t4 on this one's. No packet arrives before it left, so the other
clock is ahead by at most t2 - t1 and at least t3 - t4. The closest bounds of many requests are
kept: the offset lies between them, however the network behaves, and half their distance is its
uncertainty. Times are CLOCK_REALTIME, ns; the kernel stamps arrivals.
"""

import secrets
import socket
import struct
import time
from dataclasses import dataclass
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
# Time for a whole session.
_SESSION_S = 60.0
# Wire format, big-endian int64. Request: the session's number, then that of the request; -1 ends
# the session. Reply: both numbers, t2 in ns, t3 in ns. Whoever does not know the session's number
# can neither end it nor answer in it.
_QUESTION = struct.Struct("!qq")
_ANSWER = struct.Struct("!qqqq")
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


def new_session() -> int:
    """Return a number for a session that others cannot guess."""
    return secrets.randbits(63)


def answer(address: str, port: int, seconds: float, session: int | None = None) -> None:
    """Answer requests until the session ends.

    Args:
        address: the address of this host on which to listen.
        port: the UDP port.
        seconds: the longest time to answer.
        session: the number of the session; None answers in all sessions, and the last one that has
            asked may end them.
    """
    deadline = time.monotonic() + seconds
    last = session
    with _socket(address) as server:
        server.bind((address, port))
        while received := _receive(server, _QUESTION, deadline):
            (asked_in, number), arrived_ns, who = received
            if session is not None and asked_in != session:
                continue
            if number != _END:
                server.sendto(_ANSWER.pack(asked_in, number, arrived_ns, time.time_ns()), who)
                last = asked_in
            elif asked_in == last:
                return


def ask(
    address: str, port: int = PORT, questions: int = QUESTIONS, session: int | None = None
) -> Measured:
    """Measure the clock of a host on which answer() runs.

    Raises: RunError if more than 40 requests get no reply, or the session takes over a minute.
    """
    session = new_session() if session is None else session
    least, most = -(1 << 62), 1 << 62
    lost = number = 0
    deadline = time.monotonic() + _SESSION_S
    with _socket(address) as client:
        client.connect((address, port))
        while number < questions:
            found = _exchange(client, session, number + lost, deadline)
            if found is None:
                lost += 1
                if lost > _MOST_LOST or time.monotonic() > deadline:
                    raise RunError(
                        f"{address}: its clock does not answer on UDP port {port}",
                        "a firewall may be in the way",
                    )
                continue
            left_ns, arrived_ns, answered_ns, back_ns = found
            most = min(most, arrived_ns - left_ns)
            least = max(least, answered_ns - back_ns)
            number += 1
        client.send(_QUESTION.pack(session, _END))
    return Measured(time.time_ns(), (least + most) // 2, (most - least + 1) // 2)


def _exchange(
    client: socket.socket, session: int, number: int, deadline: float
) -> tuple[int, int, int, int] | None:
    """Send one request and return t1, t2, t3 and t4 (module docstring), ns; None if it is lost."""
    until = min(deadline, time.monotonic() + _REPLY_TIMEOUT_S)
    left_ns = time.time_ns()
    try:
        client.send(_QUESTION.pack(session, number))
        while received := _receive(client, _ANSWER, until):  # skip late replies
            (answered_in, got, arrived_ns, answered_ns), back_ns, _ = received
            if (answered_in, got) == (session, number):
                return left_ns, arrived_ns, answered_ns, back_ns
    except ConnectionRefusedError:  # the error comes at once; wait as long as for a lost reply
        time.sleep(_REPLY_TIMEOUT_S)
    return None


def _socket(address: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    return made


def _receive(
    of: socket.socket, form: struct.Struct, deadline: float
) -> tuple[tuple[int, ...], int, Any] | None:
    """Receive a datagram of a form, and ignore all others.

    Returns: its numbers, its time of arrival in ns, and its sender; None if the deadline passes.
    """
    while (left_s := deadline - time.monotonic()) > 0:
        of.settimeout(left_s)
        try:
            data, ancillary, _, who = of.recvmsg(form.size + 1, socket.CMSG_SPACE(_STAMP.size))
        except TimeoutError:
            return None
        if len(data) == form.size:
            ((_, _, stamp),) = ancillary
            seconds, ns = _STAMP.unpack(stamp)
            return form.unpack(data), seconds * 10**9 + ns, who
    return None
