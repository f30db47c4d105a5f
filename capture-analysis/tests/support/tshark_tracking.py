"""Compare relative sequence numbers and round-trip times with tshark's analysis."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch

import numpy as np
from capture_analysis.columns import FLAG_ACK, FLAG_FIN, FLAG_SYN
from capture_analysis.tracking import Kind
from tshark_case import Case
from tshark_oracle import Row

# Captures that tshark's analysis does not cover, and why.
NOT_ANALYSED = {
    "random/*": "two conversations share their ends",
    "mergecap/*": "two conversations share their ends, or each packet is there twice",
    "block/simple": "tshark also analyses the packets without a time",
    "editcap/snap-and-length": "tshark does not analyse what is longer by IP than its frame",
    "*fragments*": "tshark does not analyse fragments",
    "snap/*": "tshark does not analyse packets whose options are cut",
    "editcap/snap-60": "tshark does not analyse packets whose options are cut",
}
AGAIN = {Kind.RETRANSMISSION, Kind.LATE_DATA, Kind.PROBE, Kind.COPY}


def analysed(case: Case) -> bool:
    """Tell whether tshark's analysis covers a capture."""
    return not any(fnmatch(case.name, pattern) for pattern in NOT_ANALYSED)


def sequence_differences(case: Case) -> Iterator[str]:
    """Return packets whose relative numbers differ from tshark's.

    For a half whose SYN was not seen, tshark counts from another base, which must be the same for
    all of its packets.
    """
    bases: dict[tuple[int, int], int] = {}
    syn_seen = case.flows.syns_seen()
    for n, row in enumerate(case.tcp[: len(case.packets)]):
        flow, half = int(case.packets.flow[n]), int(case.packets.half[n])
        numbers = [("seq", half, int(case.tracked.seq_bytes[n]))]
        if int(case.packets.flags[n]) & FLAG_ACK and int(case.tracked.ack_bytes[n]) >= 0:
            numbers.append(("ack", 1 - half, int(case.tracked.ack_bytes[n])))
        for name, whose, ours in numbers:
            theirs = row.number(name)
            base = 0 if syn_seen[flow][whose] else (theirs - ours) % 2**32
            if (theirs - ours) % 2**32 != bases.setdefault((flow, whose), base):
                yield f"{case.where(n)}: {name} {ours}, tshark has {theirs}"
                return


@dataclass(frozen=True)
class RttDeviation:
    """A difference in round-trip times, in value or existence.

    Attributes:
        reason: why.
        holds: tells whether it applies to a packet, given our time and tshark's in ns, -1 for none.
    """

    reason: str
    holds: Callable[[Case, int, int, int], bool]


def _sent_again(case: Case, n: int) -> bool:
    """Tell whether earlier data of the other half was sent again or came late."""
    before = [m for m in range(n) if _other_half(case, m, n)]
    syns = [m for m in before if int(case.packets.flags[m]) & FLAG_SYN]
    late_syn = any(m > before[0] for m in syns)
    return late_syn or any(int(case.tracked.kind[m]) in AGAIN for m in before)


def _ends_nowhere(case: Case, n: int) -> bool:
    """Tell whether no earlier segment ends where a packet's acknowledgement does."""
    ends = set()
    for m in range(n):
        flags = int(case.packets.flags[m])
        length = (
            int(case.packets.payload_bytes[m]) + bool(flags & FLAG_SYN) + bool(flags & FLAG_FIN)
        )
        if length and _other_half(case, m, n):
            ends.add((int(case.packets.seq[m]) + length) % 2**32)
    return int(case.packets.ack[n]) not in ends


def _nothing_new(case: Case, n: int) -> bool:
    """Tell whether an earlier packet acknowledged the same or more."""
    packets = case.packets
    mine = (packets.flow[:n] == packets.flow[n]) & (packets.half[:n] == packets.half[n])
    before = packets.ack[:n][mine & (packets.flags[:n] & FLAG_ACK > 0)]
    return bool(((before - packets.ack[n]) % 2**32 < 2**31).any())


def _other_half(case: Case, m: int, n: int) -> bool:
    """Tell whether two packets have opposite directions on a connection."""
    same = int(case.packets.flow[m]) == int(case.packets.flow[n])
    return same and int(case.packets.half[m]) != int(case.packets.half[n])


def _set_back(case: Case, n: int) -> bool:
    """Tell whether a clock was set back by 10 ms before a packet, on its connection."""
    times = case.packets.time_ns[: n + 1][case.packets.flow[: n + 1] == case.packets.flow[n]]
    return bool((np.diff(times) <= -10_000_000).any())


RTT_DEVIATIONS = [
    RttDeviation(
        "tshark shows no time of 0", lambda _, __, ours, theirs: (ours, theirs) == (0, -1)
    ),
    RttDeviation(
        "tshark takes the time since the last of several transmissions; we none (Karn)",
        lambda case, n, ours, _: ours == -1 and _sent_again(case, n),
    ),
    RttDeviation(
        "tshark needs a segment that ends where the packet acknowledges",
        lambda case, n, _, theirs: theirs == -1 and _ends_nowhere(case, n),
    ),
    RttDeviation(
        "tshark shows the negative time of a capture whose clock goes back",
        lambda _, __, ours, theirs: ours == -1 and theirs < -1,
    ),
    RttDeviation(
        "tshark times data across a clock's step back; we none",
        lambda case, n, ours, _: ours == -1 and _set_back(case, n),
    ),
    RttDeviation(
        "tshark also times a segment that was acknowledged before the capture has it",
        lambda case, n, ours, _: ours == -1 and _nothing_new(case, n),
    ),
]


def rtt_differences(case: Case, seen: set[str]) -> Iterator[str]:
    """Return packets whose round-trip time differs; add reasons of deviations to `seen`."""
    for n, row in enumerate(case.tcp[: len(case.packets)]):
        ours, theirs = int(case.tracked.rtt_ns[n]), _rtt_ns(row)
        if ours == theirs:
            continue
        reasons = [each.reason for each in RTT_DEVIATIONS if each.holds(case, n, ours, theirs)]
        seen |= set(reasons)
        if not reasons:
            yield f"{case.where(n)}: rtt_ns {ours}, tshark has {theirs}"


def _rtt_ns(row: Row) -> int:
    """Return tshark's time, -1 for none."""
    seconds, _, fraction = row["ack_rtt"].partition(".")
    magnitude = abs(int(seconds or 0)) * 10**9 + int(fraction.ljust(9, "0"))
    if not seconds:
        return -1
    return -magnitude if seconds.startswith("-") else magnitude
