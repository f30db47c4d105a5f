r"""The generic netlink family "dtm", by raw messages: dumps, and invalid requests.

It needs only the standard library, as rtnetlink.py.

    with Dtm() as dtm:
        ack = dtm.request("DTM_CMD_POOL_NEW", attribute(NUMBERS["DTM_A_POOL"], b"bus\0"))
        assert ack.message == "a new pool needs a name and slots"
"""

import itertools
import socket
import struct
from collections.abc import Callable
from typing import Self

from dtm_uapi import uapi_numbers
from rtnetlink import Ack, attribute, messages, parse_ack, parse_attributes, request_header

NUMBERS = uapi_numbers()

_NETLINK_GENERIC = 16
_SOL_NETLINK = 270
_CAP_ACK, _EXT_ACK = 10, 11
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_NLM_F_ACK, _NLM_F_DUMP_INTR, _NLM_F_DUMP = 0x004, 0x010, 0x300
_GENL_ID_CTRL, _CTRL_CMD_GETFAMILY = 0x10, 3
_CTRL_ATTR_FAMILY_ID, _CTRL_ATTR_FAMILY_NAME = 1, 2
_GENLMSG = struct.Struct("=BBxx")

Message = dict[str, int | str]
"""The attributes of a message by name, without DTM_A_."""


class ChangedMeanwhileError(Exception):
    """A list changed while the kernel dumped it."""


class Dtm:
    """A socket for the family; a context manager that closes it."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_GENERIC)
        self._socket.setsockopt(_SOL_NETLINK, _EXT_ACK, 1)
        self._socket.setsockopt(_SOL_NETLINK, _CAP_ACK, 1)
        self._socket.bind((0, 0))
        self._sequence = itertools.count(1)
        self._send(
            _GENL_ID_CTRL,
            0,
            _GENLMSG.pack(_CTRL_CMD_GETFAMILY, 1) + attribute(_CTRL_ATTR_FAMILY_NAME, b"dtm\0"),
        )
        # Small at first: the kernel's messages grow with the largest buffer that the reader has
        # used.
        _, _, payload = messages(self._socket.recv(4096))[0]
        family = parse_attributes(payload[_GENLMSG.size :])
        self._family = int.from_bytes(family[_CTRL_ATTR_FAMILY_ID], "little")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def request(self, command: str, attributes: bytes = b"") -> Ack:
        """Send a command with unchecked attributes; return the kernel's answer."""
        self._send(self._family, _NLM_F_ACK, _GENLMSG.pack(NUMBERS[command], 1) + attributes)
        while True:
            for kind, flags, payload in self._receive():
                if kind == _NLMSG_ERROR:
                    return parse_ack(flags, payload)

    def dump(self, command: str, meanwhile: Callable[[], object] = lambda: None) -> list[Message]:
        """Return the entries of a dump, in order.

        Args:
            command: a command of the family.
            meanwhile: called when the dump has begun.
        Raises: ChangedMeanwhileError if the list changed.
        """
        found: list[Message] = []
        self._send(self._family, _NLM_F_DUMP, _GENLMSG.pack(NUMBERS[command], 1))
        meanwhile()
        while True:
            for kind, flags, payload in self._receive():
                if flags & _NLM_F_DUMP_INTR:
                    raise ChangedMeanwhileError
                if kind == _NLMSG_ERROR:
                    raise OSError(str(parse_ack(flags, payload)))
                if kind == _NLMSG_DONE:
                    return found
                if payload[0] == NUMBERS[command]:
                    found.append(_parse(payload))

    def _send(self, kind: int, flags: int, body: bytes) -> None:
        self._socket.send(request_header(kind, flags, len(body), next(self._sequence)) + body)

    def _receive(self) -> list[tuple[int, int, bytes]]:
        return messages(self._socket.recv(1 << 18))


_NAMES = {n: name for name, n in NUMBERS.items() if name.startswith("DTM_A_")}


def _parse(payload: bytes) -> Message:
    found: Message = {}
    for number, value in parse_attributes(payload[_GENLMSG.size :]).items():
        name = _NAMES[number].removeprefix("DTM_A_")
        if name == "POOL":
            found[name] = value.rstrip(b"\0").decode()
        elif name != "PAD":
            found[name] = int.from_bytes(value, "little")
    return found
