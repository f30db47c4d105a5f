r"""Netlink for queueing disciplines and pools: requests that tc never sends, and every answer.

It needs only the standard library, so that it runs in any guest. Messages and attributes are those
of linux/netlink.h, linux/rtnetlink.h and linux/genetlink.h; those of dtm are in pkt_dtm.h.

    with Rtnetlink() as route:
        ack = route.qdisc("add", "veth0", Handle(1), options=attribute(TCA_DTM_SLOTS, u32(0)))
        assert (ack.errno, ack.message) == (errno.ERANGE, "integer out of range")
        print(route.show("veth0")[0].xstats)
    with Dtm() as dtm:
        ack = dtm.request("DTM_CMD_POOL_NEW", attribute(NUMBERS["DTM_A_POOL"], b"bus\0"))
        assert ack.message == "a new pool needs a name and slots"
"""

import contextlib
import itertools
import os
import re
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

HEADER = Path(__file__).resolve().parents[1] / "include/uapi/linux/pkt_dtm.h"

_NETLINK_CAP_ACK = 10
_NETLINK_EXT_ACK = 11
_SOL_NETLINK = 270

_NLMSG_ERROR = 2
_NLMSG_DONE = 3
_NLM_F_REQUEST = 0x001
_NLM_F_ACK = 0x004
_NLM_F_DUMP_INTR, _NLM_F_DUMP = 0x010, 0x300
_NLM_F_ACK_TLVS = 0x200
_NLMSGERR_ATTR_MSG = 1

_RTM_NEWQDISC = 36
_RTM_DELQDISC = 37
_RTM_GETQDISC = 38
_TCA_KIND = 1
_TCA_OPTIONS = 2
_TCA_STATS2 = 7
_TCA_STATS_BASIC = 1
_TCA_STATS_QUEUE = 3
_TCA_STATS_APP = 4
_TC_H_ROOT = 0xFFFFFFFF

# The message type and flags of each verb of `tc qdisc`.
_VERBS = {
    "add": (_RTM_NEWQDISC, 0x600),  # NLM_F_CREATE | NLM_F_EXCL
    "replace": (_RTM_NEWQDISC, 0x500),  # NLM_F_CREATE | NLM_F_REPLACE
    "change": (_RTM_NEWQDISC, 0),
    "del": (_RTM_DELQDISC, 0),
}

_HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port
_TCMSG = struct.Struct("=BxxxiIII")  # family, ifindex, handle, parent, info
_ATTRIBUTE = struct.Struct("=HH")  # nlattr: length, type
_NESTED = 0x8000
_TYPE_MASK = 0x3FFF
_NETLINK_ADD_MEMBERSHIP = 1
_RTNLGRP_TC = 4

_NETLINK_GENERIC = 16
_GENL_ID_CTRL, _CTRL_CMD_GETFAMILY = 0x10, 3
_CTRL_ATTR_FAMILY_ID, _CTRL_ATTR_FAMILY_NAME = 1, 2
_GENLMSG = struct.Struct("=BBxx")  # genlmsghdr: command, version


def _uapi_numbers() -> dict[str, int]:
    """Return every enumerator of pkt_dtm.h by its full name."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(encoding="utf-8"), flags=re.DOTALL)
    found = {}
    for body in re.findall(r"\benum\b[^{;]*\{(.*?)\}", text, re.DOTALL):
        names = [name.strip() for name in body.split(",") if name.strip()]
        found.update({name: number for number, name in enumerate(names)})
    return found


NUMBERS = _uapi_numbers()


class Handle(NamedTuple):
    """A handle or class, "major:minor"."""

    major: int
    minor: int = 0

    @property
    def number(self) -> int:
        """The number in a message."""
        return self.major << 16 | self.minor


ROOT = Handle(_TC_H_ROOT >> 16, _TC_H_ROOT & 0xFFFF)


def u8(value: int) -> bytes:
    """Return an attribute's value of 8 bits; a negative number gives its bits."""
    return struct.pack("=B", value & 0xFF)


def u32(value: int) -> bytes:
    """Return an attribute's value of 32 bits; a negative number gives its bits."""
    return struct.pack("=I", value & 0xFFFFFFFF)


def u64(value: int) -> bytes:
    """Return an attribute's value of 64 bits; a negative number gives its bits."""
    return struct.pack("=Q", value & 0xFFFFFFFFFFFFFFFF)


def attribute(number: int, value: bytes) -> bytes:
    """Return one attribute, padded; its value need not be valid."""
    whole = _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), number) + value
    return whole + bytes(-len(whole) % 4)


def nest(number: int, *attributes: bytes) -> bytes:
    """Return an attribute that consists of attributes."""
    return attribute(number | _NESTED, b"".join(attributes))


def parse_attributes(data: bytes) -> dict[int, bytes]:
    """Return attributes by number; if a number repeats, the last one."""
    found = {}
    while len(data) >= _ATTRIBUTE.size:
        length, number = _ATTRIBUTE.unpack_from(data)
        if not _ATTRIBUTE.size <= length <= len(data):
            raise ValueError(f"attribute {number} of {length} bytes in {len(data)}")
        found[number & _TYPE_MASK] = data[_ATTRIBUTE.size : length]
        data = data[length + -length % 4 :]
    return found


@dataclass(frozen=True)
class Ack:
    """The kernel's answer to a request."""

    errno: int
    """0 for success, else positive."""
    message: str
    """The sentence of the extended acknowledgement; empty if there is none."""

    def __str__(self) -> str:
        return f"{os.strerror(self.errno) if self.errno else 'done'}: {self.message or '-'}"


class Xstats(NamedTuple):
    """struct tc_dtm_xstats."""

    slots: int
    target: int
    borrowed: int
    pool_free: int
    estimate: int
    lower: int
    upper: int
    samples: int
    grows: int
    shrinks: int
    denied: int
    reclaimed: int
    slot_seconds: int
    slot_ns: int
    age_ns: int
    last_change_ns: int
    peak_bytes: int
    peak_packets: int
    reserved: int


_XSTATS = struct.Struct("=4I13Q2I")


@dataclass(frozen=True)
class Qdisc:
    """A queueing discipline as the kernel dumps it."""

    kind: str
    handle: Handle
    parent: Handle
    options: dict[int, bytes]
    """Values by attribute; none if the kernel sent none."""
    sent_bytes: int
    sent_packets: int
    queued_packets: int
    backlog_bytes: int
    drops: int
    xstats: Xstats | None
    """For kind dtm."""


class ChangedMeanwhileError(Exception):
    """A list changed while the kernel dumped it."""


class _Netlink:
    """A netlink socket; a context manager that closes it."""

    def __init__(self, protocol: int) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
        self._socket.setsockopt(_SOL_NETLINK, _NETLINK_EXT_ACK, 1)
        self._socket.setsockopt(_SOL_NETLINK, _NETLINK_CAP_ACK, 1)
        self._socket.bind((0, 0))
        self._sequence = itertools.count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def _send(self, kind: int, flags: int, body: bytes) -> None:
        header = (_HEADER.size + len(body), kind, flags | _NLM_F_REQUEST, next(self._sequence), 0)
        self._socket.send(_HEADER.pack(*header) + body)

    def _messages(self, most: int = 1 << 18) -> Iterator[tuple[int, int, bytes]]:
        """Yield type, flags and payload of each message of the next datagram."""
        data = self._socket.recv(most)
        while len(data) >= _HEADER.size:
            length, kind, flags, _, _ = _HEADER.unpack_from(data)
            yield kind, flags, data[_HEADER.size : length]
            data = data[length + -length % 4 :]

    def _answer(self) -> "Ack":
        """Receive the answer to a request."""
        while True:
            for kind, flags, payload in self._messages():
                if kind == _NLMSG_ERROR:
                    return _parse_ack(flags, payload)

    def _dump(self) -> Iterator[bytes]:
        """Yield the payload of each entry of a dump.

        Raises: ChangedMeanwhileError if the list changed.
        """
        while True:
            for kind, flags, payload in self._messages():
                if flags & _NLM_F_DUMP_INTR:
                    raise ChangedMeanwhileError
                if kind == _NLMSG_ERROR:
                    raise OSError(str(_parse_ack(flags, payload)))
                if kind == _NLMSG_DONE:
                    return
                yield payload


class Rtnetlink(_Netlink):
    """A socket for qdiscs."""

    def __init__(self) -> None:
        super().__init__(socket.NETLINK_ROUTE)

    def qdisc(
        self,
        verb: str,
        interface: str,
        handle: Handle = Handle(0),  # noqa: B008 - immutable
        *,
        parent: Handle = ROOT,
        options: bytes | None = b"",
        kind: str | None = "dtm",
        nested: bool = True,
    ) -> Ack:
        """Do what `tc qdisc` does with a verb, but with options as they are given.

        Args:
            verb: add, replace, change or del.
            interface: its name.
            handle: the qdisc's handle; 0 lets the kernel choose.
            parent: ROOT or a class.
            options: content of TCA_OPTIONS; None leaves the attribute out.
            kind: the qdisc's kind; None leaves it out, to delete any qdisc.
            nested: True to mark TCA_OPTIONS as nested.
        """
        number, flags = _VERBS[verb]
        index = socket.if_nametoindex(interface)
        body = _TCMSG.pack(0, index, handle.number, parent.number, 0)
        if kind is not None:
            body += attribute(_TCA_KIND, kind.encode() + b"\0")
        if options is not None:
            body += attribute(_TCA_OPTIONS | (_NESTED if nested else 0), options)
        self._send(number, flags | _NLM_F_ACK, body)
        return self._answer()

    def show(self, interface: str) -> list[Qdisc]:
        """Return all qdiscs of an interface."""
        index = socket.if_nametoindex(interface)
        self._send(_RTM_GETQDISC, _NLM_F_DUMP, _TCMSG.pack(0, index, 0, 0, 0))
        ours = [each for each in self._dump() if _TCMSG.unpack_from(each)[1] == index]
        return [_parse_qdisc(each) for each in ours]

    def subscribe(self) -> None:
        """Subscribe to notifications of added, changed and deleted qdiscs."""
        self._socket.setsockopt(_SOL_NETLINK, _NETLINK_ADD_MEMBERSHIP, _RTNLGRP_TC)

    def notifications(self) -> list[Qdisc]:
        """Return the qdiscs added or changed since the last call, one per notification."""
        came: list[Qdisc] = []
        self._socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                came += [_parse_qdisc(p) for t, _, p in self._messages() if t == _RTM_NEWQDISC]
        self._socket.setblocking(True)
        return came


def _parse_ack(flags: int, payload: bytes) -> Ack:
    """Parse the answer in a message of type NLMSG_ERROR."""
    (code,) = struct.unpack_from("=i", payload)
    said = {}
    if flags & _NLM_F_ACK_TLVS:
        # The answer has only the header of the request.
        said = parse_attributes(payload[4 + _HEADER.size :])
    return Ack(errno=-code, message=_text(said.get(_NLMSGERR_ATTR_MSG, b"")))


def _parse_qdisc(payload: bytes) -> Qdisc:
    _, _, handle, parent, _ = _TCMSG.unpack_from(payload)
    attributes = parse_attributes(payload[_TCMSG.size :])
    kind = _text(attributes[_TCA_KIND])
    stats = parse_attributes(attributes.get(_TCA_STATS2, b""))
    sent_bytes, sent_packets = struct.unpack_from("=QI", stats.get(_TCA_STATS_BASIC, bytes(12)))
    queued, backlog, drops = struct.unpack_from("=3I", stats.get(_TCA_STATS_QUEUE, bytes(12)))
    app = stats.get(_TCA_STATS_APP)
    return Qdisc(
        kind=kind,
        handle=Handle(handle >> 16, handle & 0xFFFF),
        parent=Handle(parent >> 16, parent & 0xFFFF),
        options=parse_attributes(attributes.get(_TCA_OPTIONS, b"")) if kind == "dtm" else {},
        sent_bytes=sent_bytes,
        sent_packets=sent_packets,
        queued_packets=queued,
        backlog_bytes=backlog,
        drops=drops,
        xstats=Xstats(*_XSTATS.unpack(app)) if kind == "dtm" and app else None,
    )


def _text(value: bytes) -> str:
    return value.rstrip(b"\0").decode()


Pool = dict[str, int | str]
"""The attributes of a message by name, without DTM_A_."""
_NAMES = {n: name for name, n in NUMBERS.items() if name.startswith("DTM_A_")}


class Dtm(_Netlink):
    """A socket for the family "dtm": dumps of pools, and invalid requests."""

    def __init__(self) -> None:
        super().__init__(_NETLINK_GENERIC)
        name = attribute(_CTRL_ATTR_FAMILY_NAME, b"dtm\0")
        self._send(_GENL_ID_CTRL, 0, _GENLMSG.pack(_CTRL_CMD_GETFAMILY, 1) + name)
        # Small at first: the kernel's messages grow with the largest buffer that the reader has
        # used.
        _, _, payload = next(self._messages(4096))
        family = parse_attributes(payload[_GENLMSG.size :])
        self._family = int.from_bytes(family[_CTRL_ATTR_FAMILY_ID], "little")

    def request(self, command: str, attributes: bytes = b"") -> Ack:
        """Send a command with unchecked attributes; return the kernel's answer."""
        self._send(self._family, _NLM_F_ACK, _GENLMSG.pack(NUMBERS[command], 1) + attributes)
        return self._answer()

    def pools(self, meanwhile: Callable[[], object] = lambda: None) -> list[Pool]:
        """Return the pools, in order.

        Args:
            meanwhile: called when the dump has begun.
        Raises: ChangedMeanwhileError if the list changed.
        """
        command = NUMBERS["DTM_CMD_POOL_GET"]
        self._send(self._family, _NLM_F_DUMP, _GENLMSG.pack(command, 1))
        meanwhile()
        return [_parse_pool(payload) for payload in self._dump() if payload[0] == command]


def _parse_pool(payload: bytes) -> Pool:
    found: Pool = {}
    for number, value in parse_attributes(payload[_GENLMSG.size :]).items():
        name = _NAMES[number].removeprefix("DTM_A_")
        if name == "POOL":
            found[name] = _text(value)
        elif name != "PAD":
            found[name] = int.from_bytes(value, "little")
    return found
