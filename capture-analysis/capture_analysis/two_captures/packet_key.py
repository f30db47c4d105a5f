"""Hash packets to keys that are equal all along their path."""

from enum import Enum

import numpy as np
from numpy.typing import NDArray

from capture_analysis.flow_table import FlowTable

Words = NDArray[np.uint64]

# Multilinear hashing (Carter and Wegman 1979): a sum of words, each times its own odd number. Two
# different packets collide with a probability of about 2^-64. The last number mixes the sum.
FACTORS = np.array(
    [
        0x9E3779B97F4A7C15,
        0xC2B2AE3D27D4EB4F,
        0xD6E8FEB86659FD93,
        0xA0761D6478BD642F,
        0xE7037ED1A0B428DB,
        0x8EBC6AF09C88C6E3,
        0x589965CC75374CC3,
    ],
    dtype=np.uint64,
)


class Identity(Enum):
    """Fields that are equal at both taps, besides TCP header and length."""

    ADDRESSES_AND_ID = "addresses, ports and IP identification"
    ADDRESSES = "addresses and ports"
    ID = "IP identification"
    NEITHER = "nothing else"

    @property
    def addresses(self) -> bool:
        """True if addresses and ports are equal; False if translated."""
        return self in (Identity.ADDRESSES_AND_ID, Identity.ADDRESSES)

    @property
    def ip_id(self) -> bool:
        """True if IPv4's identification is equal; False if it is rewritten on the path."""
        return self in (Identity.ADDRESSES_AND_ID, Identity.ID)


class PacketKeys:
    """Keys of one capture's packets, whose connections may still be appearing.

    The same packet has equal keys in two captures; different packets hardly ever have. clib/match.c
    computes them from connection, sequence and acknowledgement numbers, length, flags, window, time
    stamps, SACK edges and, depending on `identity`, IP identification. Retransmissions have
    different keys if Linux counts the identification per connection, or by their time stamps.
    """

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self._lanes = np.zeros(0, dtype=np.uint64)

    def lanes(self, flows: FlowTable) -> Words | None:
        """Hash the ends of each half of a connection, (2k,); None if addresses are translated."""
        if not self.identity.addresses:
            return None
        known = len(self._lanes) // 2
        if len(flows) > known:
            self._lanes = np.concatenate((self._lanes, _lanes(flows.rows[known:])))
        return self._lanes


def _lanes(rows: NDArray[np.void]) -> Words:
    """Hash the ends of each connection, in both directions; shape (2k,)."""
    ends = []
    for end in ("source", "destination"):
        address = np.ascontiguousarray(rows[end]).view(np.uint64)
        port = rows[f"{end}_port"].astype(np.uint64)
        mixed = (address * FACTORS[:2]).sum(axis=1, dtype=np.uint64) + port * FACTORS[2]
        ends.append(mixed ^ (mixed >> np.uint64(31)))
    source, destination = ends
    lanes: list[Words] = [
        s * FACTORS[3] + d * FACTORS[4] for s, d in ((source, destination), ends[::-1])
    ]
    return np.stack(lanes, axis=1).ravel()
