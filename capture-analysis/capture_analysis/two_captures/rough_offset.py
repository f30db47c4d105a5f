"""Find common packets of two captures, and the rough offset of the clocks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import zip_longest

import numpy as np

from capture_analysis.columns import IntArray
from capture_analysis.errors import AnalysisError
from capture_analysis.flow_table import FlowTable
from capture_analysis.two_captures.match_rows import rows_of
from capture_analysis.two_captures.matching import PacketSource
from capture_analysis.two_captures.packet_key import Identity, PacketKeys

# Number of first packets of a capture in which common packets are searched for.
HEAD_PACKETS = 1 << 15
# Number of common packets that the estimate of the offset needs.
_MIN_COMMON_PACKETS = 1 << 12
# A weaker identity is used if it matches at least this multiple of the packets that a stronger one
# matches.
_WEAKER_GAIN = 1.1


@dataclass(frozen=True)
class Contact:
    """Results from the first common packets.

    Attributes:
        offset_ns: the second clock minus the first, to within a packet's delay.
        identity: the fields by which both captures recognise a packet.
        resolution_ns: resolution of each capture's time stamps: 1000 or 1.
    """

    offset_ns: int
    identity: Identity
    resolution_ns: tuple[int, int]


@dataclass
class _Part:
    """Packets: their keys by each `Identity`, shape (4, n), and their times."""

    keys: IntArray
    time_ns: IntArray


class _Reading:
    """A capture being read, with facts for error messages."""

    def __init__(self, name: str, source: PacketSource) -> None:
        self.name, self.source = name, source
        self.first_ns: int | None = None
        self.last_ns = 0
        self._packets = np.zeros(0, dtype=np.int64)

    def parts(self, most: int | None = None) -> Iterator[_Part]:
        """Yield the capture's packets, at most `most` of each chunk."""
        keys = [PacketKeys(identity) for identity in Identity]
        for chunk in self.source.chunks():
            packets = chunk.where(slice(most))
            if not len(packets):
                continue
            flows = self.source.flows
            counts = np.bincount(packets.flow, minlength=len(flows))
            counts[: len(self._packets)] += self._packets
            self._packets = counts
            time_ns = packets.time_ns.astype(np.int64)
            self.first_ns = int(time_ns[0]) if self.first_ns is None else self.first_ns
            self.last_ns = max(self.last_ns, int(time_ns.max()))
            rows = (
                rows_of(packets, time_ns, None, key, flows=flows, first_order=0) for key in keys
            )
            yield _Part(np.stack([each["key"] for each in rows]), time_ns)

    def head(self) -> _Part:
        """Return the capture's first packets.

        Raises: AnalysisError if it has none.
        """
        parts, count = [], 0
        for part in self.parts(HEAD_PACKETS):
            parts.append(part)
            count += len(part.time_ns)
            if count >= HEAD_PACKETS:
                break
        if not parts:
            raise AnalysisError(f"{self.name}: has no TCP packet")
        return _Part(
            np.concatenate([part.keys for part in parts], axis=1)[:, :HEAD_PACKETS],
            np.concatenate([part.time_ns for part in parts])[:HEAD_PACKETS],
        )

    def describe(self) -> str:
        """Describe the capture's span and its busiest connection, for a hint."""
        busiest = int(self._packets.argmax())
        first, last = (
            datetime.fromtimestamp(each / 1e9, UTC).isoformat(timespec="milliseconds")
            for each in (self.first_ns or 0, self.last_ns)
        )
        return f"{self.name}: {first} to {last}, mostly {self.source.flows.name(busiest)}"

    def ends(self) -> set[bytes]:
        """Return addresses and ports of each connection, the lower end first."""
        return _ends(self.source.flows)


Opener = Callable[[], PacketSource]


def rough_offset(names: tuple[str, str], open_a: Opener, open_b: Opener) -> Contact:
    """Find common packets of two captures.

    Both beginnings are compared first, then the beginning of each capture with all of the other.

    Args:
        names: of the captures, for error texts.
        open_a: opens one capture from its start.
        open_b: opens the other.

    Raises: AnalysisError if a capture has no packet, or if they have no packet in common.
    """
    a, b = _Reading(names[0], open_a()), _Reading(names[1], open_b())
    heads = a.head(), b.head()
    found = _common(*heads)
    if not found.most:
        a, b = _Reading(names[0], open_a()), _Reading(names[1], open_b())
        found = _search(heads, a, b)
    if not found.most:
        raise AnalysisError(_why_not(a, b))
    identity = found.identity()
    offset_ns = int(np.median(found.differences_ns[identity]))
    return Contact(offset_ns, identity, (_resolution_ns(heads[0]), _resolution_ns(heads[1])))


def _resolution_ns(part: _Part) -> int:
    return 1 if (part.time_ns % 1000).any() else 1000


@dataclass
class _Found:
    """Common packets of two captures.

    Attributes:
        differences_ns: for each identity, the second capture's times minus the first's.
    """

    differences_ns: dict[Identity, IntArray]

    @staticmethod
    def empty() -> "_Found":
        """Return an instance without packets."""
        return _Found({identity: np.zeros(0, dtype=np.int64) for identity in Identity})

    def add(self, more: "_Found") -> None:
        """Add the common packets of another part."""
        for identity, each in more.differences_ns.items():
            self.differences_ns[identity] = np.append(self.differences_ns[identity], each)

    @property
    def most(self) -> int:
        """Number of packets, by the identity that recognises most."""
        return max(len(each) for each in self.differences_ns.values())

    def identity(self) -> Identity:
        """Choose the strongest identity that recognises nearly the most."""
        counts = {identity: len(each) for identity, each in self.differences_ns.items()}
        return next(each for each in Identity if counts[each] * _WEAKER_GAIN >= self.most)


def _search(heads: tuple[_Part, _Part], a: _Reading, b: _Reading) -> _Found:
    """Search each capture for the other's beginning; keep the better result."""
    in_b, in_a = _Found.empty(), _Found.empty()
    for a_part, b_part in zip_longest(a.parts(), b.parts()):
        if b_part is not None:
            in_b.add(_common(heads[0], b_part))
        if a_part is not None:
            in_a.add(_common(a_part, heads[1]))
        if max(in_a.most, in_b.most) >= _MIN_COMMON_PACKETS:
            break
    return max(in_a, in_b, key=lambda found: found.most)


def _common(a: _Part, b: _Part) -> _Found:
    """Find packets that are in both parts, by each identity.

    Of packets with equal keys only the first counts.
    """
    found = {}
    for number, identity in enumerate(Identity):
        firsts = [np.unique(part.keys[number], return_index=True) for part in (a, b)]
        _, a_rows, b_rows = np.intersect1d(
            firsts[0][0], firsts[1][0], assume_unique=True, return_indices=True
        )
        a_ns, b_ns = a.time_ns[firsts[0][1][a_rows]], b.time_ns[firsts[1][1][b_rows]]
        found[identity] = b_ns - a_ns
    return _Found(found)


def _why_not(a: _Reading, b: _Reading) -> str:
    """Explain why two captures that were read completely have no packet in common."""
    hint = f"\n\nhint: {a.describe()}\n      {b.describe()}"
    if not a.ends() & b.ends():
        return f"{a.name} and {b.name}: no common connection{hint}"
    if a.last_ns < (b.first_ns or 0) or b.last_ns < (a.first_ns or 0):
        return f"{a.name} and {b.name}: common connections, but the captures do not overlap{hint}"
    return (
        f"{a.name} and {b.name}: common connections, but no common packet: the captures may be of"
        " different times or of one direction each, one may lack TCP options that its snap length"
        " cut, or offloads or a proxy cut the data anew"
        f"{hint}"
    )


def _ends(flows: FlowTable) -> set[bytes]:
    found = set()
    for row in flows.rows:
        ends = sorted(
            row[end].tobytes() + int(row[f"{end}_port"]).to_bytes(2, "big")
            for end in ("source", "destination")
        )
        found.add(b"".join(ends))
    return found
