"""How far the clocks of other machines are ahead of this one's, by asking them over the network.

A question leaves at t1 and arrives at t2 on the other's clock; its answer leaves at t3 on that
clock and arrives at t4. No packet arrives before it left, so the other's clock is ahead by at most
t2 - t1 and at least t3 - t4. Of many questions the closest bounds are kept: the offset lies between
them, whatever the network does, and half of what is between them is its uncertainty. Times are
CLOCK_REALTIME, ns; arrivals are stamped by the kernel.
"""

import socket
import struct
import time
from dataclasses import asdict, dataclass
from typing import Any

from twoway.errors import RunError

PORT = 8787
# A burst takes some ms, in which clocks drift apart by less than a microsecond.
QUESTIONS = 200
_PATIENCE_S = 0.5
# It may only be starting: 20 s.
_MOST_LOST = 40
# The kernel's option that has arrivals stamped (asm-generic/socket.h); Python has no name for it.
_SO_TIMESTAMPNS = 35
_STAMP = struct.Struct("@qq")
# Question: a number, of which the last is followed by no other. Answer: the number, t2 and t3.
_QUESTION = struct.Struct("!q")
_ANSWER = struct.Struct("!qqq")
_END = -1


@dataclass(frozen=True)
class Measured:
    """One measurement of a clock against this machine's.

    Attributes:
        at_ns: when, on this machine's clock.
        offset_ns: how far the other clock is ahead.
        uncertainty_ns: by how much that may be off at most.
    """

    at_ns: int
    offset_ns: int
    uncertainty_ns: int

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def answer(address: str, port: int, seconds: float) -> None:
    """Answer questions until the one who asks is done, or for some seconds.

    Args:
        address: of this machine; questions to others are not heard.
        port: UDP.
        seconds: how long to wait for a question.
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
    """Measure the clock of a machine that answers.

    Raises: RunError if it does not.
    """
    least, most = -(1 << 62), 1 << 62
    lost = number = 0
    with _socket(address, _PATIENCE_S) as client:
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
    """Ask once: t1 to t4."""
    left_ns = time.time_ns()
    try:
        client.send(_QUESTION.pack(number))
        while True:  # an answer that was late belongs to another question
            data, back_ns, _ = _receive(client, _ANSWER.size)
            got, arrived_ns, answered_ns = _ANSWER.unpack(data)
            if got == number:
                return left_ns, arrived_ns, answered_ns, back_ns
    except ConnectionRefusedError:  # at once, unlike silence
        time.sleep(_PATIENCE_S)
        raise


def _socket(address: str, patience_s: float) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, socket.SOCK_DGRAM)
    made.settimeout(patience_s)
    made.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    return made


def _receive(of: socket.socket, size: int) -> tuple[bytes, int, Any]:
    """A datagram, when the kernel had it, and who sent it."""
    data, ancillary, _, who = of.recvmsg(size, socket.CMSG_SPACE(_STAMP.size))
    ((_, _, stamp),) = ancillary
    seconds, ns = _STAMP.unpack(stamp)
    return data, seconds * 10**9 + ns, who
