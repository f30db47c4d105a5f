"""Our columns of a capture, and the tracker's numbers, against tshark's fields.

Where tshark differs for a reason, DEVIATIONS says in which field, for which packets and why.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch

import numpy as np
from capture_analysis.columns import FLAG_ACK, FLAG_FIN, FLAG_SYN, Mark
from capture_analysis.flow_table import Seen
from capture_analysis.tracking import Kind
from tshark_oracle import Compared, Row, fate


@dataclass(frozen=True)
class Deviation:
    """A field in which tshark is not followed.

    Attributes:
        fields: fields of Packets, or of Tracked.
        reason: why.
        holds: tells whether it applies to a packet, given our value and tshark's; a time is -1 for
            none.
    """

    fields: tuple[str, ...]
    reason: str
    holds: Callable[[Compared, int, int, int], bool]


DEVIATIONS = [
    Deviation(
        ("payload_bytes",),
        "tshark 4.0 states no length for a fragment",
        lambda case, n, _, theirs: theirs == 0 and case.marked(n, Mark.FIRST_FRAGMENT),
    ),
    Deviation(
        ("payload_bytes",),
        "tshark lets a frame's length, which editcap -L cuts to the kept bytes, limit IP's",
        lambda case, _, ours, theirs: theirs < ours and case.name == "editcap/snap-and-length",
    ),
    Deviation(
        ("flags",),
        "tshark's field has the three reserved bits besides the nine flags",
        lambda _, __, ours, theirs: ours == theirs & 0x1FF,
    ),
    Deviation(
        ("ts_value", "ts_echo", "sack_left", "sack_right"),
        "tshark reads the first part of an option whose other part the capture lacks",
        lambda case, n, ours, _: ours == 0 and case.marked(n, Mark.OPTIONS_CUT),
    ),
    Deviation(
        ("flow",),
        "tshark 4.0 takes connections between the same ends in different VLANs for one",
        lambda case, _, __, ___: case.has_namesakes,
    ),
]


def count_differences(case: Compared) -> Iterator[str]:
    """Compare the totals of each kind of frame; the corpus has no unknown link types."""
    fates = [fate(row) for row in case.rows]
    ours = vars(case.counts)
    theirs = {name: fates.count(name) for name in _FATES} | {"frames": len(fates)}
    theirs["too_short"] += theirs.pop("malformed")
    theirs["no_timestamp"] -= ours["beyond_2262"]  # tshark shows no time for either kind
    for name, count in theirs.items():
        mine = ours[name] + sum(ours[each] for each in _ELSEWHERE.get(name, ()))
        if mine != count:
            yield f"{case.name}: {name}: {mine}, tshark has {count}"


# Counts that tshark's fields do not distinguish.
_ELSEWHERE = {"too_short": ("malformed", "no_interface"), "not_ip": ("encrypted",)}
_FATES = (
    "packets",
    "not_ip",
    "not_tcp",
    "later_fragments",
    "no_timestamp",
    "too_short",
    "malformed",
)


def field_differences(case: Compared, seen: set[str]) -> Iterator[str]:
    """Return the first packet that differs in each field; add reasons of deviations to `seen`."""
    if len(case.tcp) != len(case.packets):
        yield f"{case.name}: {len(case.packets)} packets, tshark has {len(case.tcp)}"
        return
    columns = {name: [read(row) for row in case.tcp] for name, read in _FIELDS.items()}
    for field, theirs in (columns | {"flow": case.streams}).items():
        ours = getattr(case.packets, field).tolist()
        different = [n for n, value in enumerate(ours) if value != theirs[n]]
        for n in list(different):
            for each in DEVIATIONS:
                if field in each.fields and each.holds(case, n, ours[n], theirs[n]):
                    seen.add(each.reason)
                    different.remove(n)
                    break
        if different:
            n = different[0]
            yield (
                f"{case.name}: {field}: {len(different)} differ, first packet {n} "
                f"(frame {case.tcp[n]['number']}): {ours[n]}, tshark has {theirs[n]}"
            )


def _field(name: str) -> Callable[[Row], int]:
    return lambda row: row.number(name)


def _edge(name: str) -> Callable[[Row], int]:
    """Return an edge of the first SACK block; tshark's is relative to the acknowledged half."""

    def read(row: Row) -> int:
        base = row.number("ack_raw") - row.number("ack")
        return (row.number(name) + base) % 2**32 if row[name] else 0

    return read


_FIELDS: dict[str, Callable[[Row], int]] = {
    "frame": _field("number"),
    "time_ns": lambda row: row.ns("time"),
    "seq": _field("seq_raw"),
    "ack": _field("ack_raw"),
    "sack_left": _edge("sack_left"),
    "sack_right": _edge("sack_right"),
    **{
        name: _field(name)
        for name in (
            "frame_bytes",
            "payload_bytes",
            "flags",
            "window",
            "ip_id",
            "interface",
            "ts_value",
            "ts_echo",
        )
    },
}


def end_differences(case: Compared) -> Iterator[str]:
    """Return the first packet whose addresses, ports, VLANs or marks differ."""
    for n, row in enumerate(case.tcp[: len(case.packets)]):
        flow, half = int(case.packets.flow[n]), int(case.packets.half[n])
        ends = case.flows.source(flow), case.flows.destination(flow)
        address = "ip" if row["ip_source"] else "ipv6"
        theirs = tuple(
            (row[f"{address}_{end}"].split(",")[0], row.number(f"{end}_port"))
            for end in ("source", "destination")
        )
        implied = {
            Mark.TIMESTAMPS: row["ts_echo"] != "",
            Mark.SACK: row["sack_right"] != "",
            Mark.MPTCP: row["mptcp"] != "",
            Mark.ACCECN: row["accecn"] != "",
            Mark.FIRST_FRAGMENT: row.number("ip_more") or row.number("ipv6_more"),
        }
        if case.marked(n, Mark.OPTIONS_CUT):  # tshark reads what is left of the last one
            implied = {mark: case.marked(n, mark) and value for mark, value in implied.items()}
        wrong = [m.name for m, value in implied.items() if case.marked(n, m) != bool(value)]
        tags = [int(tag) for tag in f"{row['service_vlan']},{row['vlan']}".split(",") if tag]
        vlans = [vlan for vlan in tags if vlan][-2:]
        # A connection with a tag in one direction only has that direction's VLAN in the table.
        known = [case.flows.vlans(flow)]
        if case.flows.rows["seen"][flow] & Seen.IN_OTHER_VLANS:
            known.append([])
        if wrong or vlans not in known or theirs != (ends[::-1] if half else ends):
            where = f"{case.name}: packet {n} (frame {row['number']})"
            yield f"{where}: {wrong}, {ends}, half {half}, tshark has {theirs}"
            return


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


def analysed(case: Compared) -> bool:
    """Tell whether tshark's analysis covers a capture."""
    return not any(fnmatch(case.name, pattern) for pattern in NOT_ANALYSED)


def sequence_differences(case: Compared) -> Iterator[str]:
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


def _sent_again(case: Compared, n: int) -> bool:
    """Tell whether earlier data of the other half was sent again or came late."""
    before = [m for m in range(n) if _opposite(case, m, n)]
    syns = [m for m in before if int(case.packets.flags[m]) & FLAG_SYN]
    late_syn = any(m > before[0] for m in syns)
    return late_syn or any(int(case.tracked.kind[m]) in AGAIN for m in before)


def _ends_nowhere(case: Compared, n: int) -> bool:
    """Tell whether no earlier segment ends where a packet's acknowledgement does."""
    ends = set()
    for m in range(n):
        flags = int(case.packets.flags[m])
        length = (
            int(case.packets.payload_bytes[m]) + bool(flags & FLAG_SYN) + bool(flags & FLAG_FIN)
        )
        if length and _opposite(case, m, n):
            ends.add((int(case.packets.seq[m]) + length) % 2**32)
    return int(case.packets.ack[n]) not in ends


def _nothing_new(case: Compared, n: int) -> bool:
    """Tell whether an earlier packet acknowledged the same or more."""
    packets = case.packets
    mine = (packets.flow[:n] == packets.flow[n]) & (packets.half[:n] == packets.half[n])
    before = packets.ack[:n][mine & (packets.flags[:n] & FLAG_ACK > 0)]
    return bool(((before - packets.ack[n]) % 2**32 < 2**31).any())


def _opposite(case: Compared, m: int, n: int) -> bool:
    """Tell whether two packets have opposite directions on a connection."""
    same = int(case.packets.flow[m]) == int(case.packets.flow[n])
    return same and int(case.packets.half[m]) != int(case.packets.half[n])


def _set_back(case: Compared, n: int) -> bool:
    """Tell whether a clock was set back by 10 ms before a packet, on its connection."""
    times = case.packets.time_ns[: n + 1][case.packets.flow[: n + 1] == case.packets.flow[n]]
    return bool((np.diff(times) <= -10_000_000).any())


_RTT = ("rtt_ns",)
RTT_DEVIATIONS = [
    Deviation(
        _RTT, "tshark shows no time of 0", lambda _, __, ours, theirs: (ours, theirs) == (0, -1)
    ),
    Deviation(
        _RTT,
        "tshark takes the time since the last of several transmissions; we none (Karn)",
        lambda case, n, ours, _: ours == -1 and _sent_again(case, n),
    ),
    Deviation(
        _RTT,
        "tshark needs a segment that ends where the packet acknowledges",
        lambda case, n, _, theirs: theirs == -1 and _ends_nowhere(case, n),
    ),
    Deviation(
        _RTT,
        "tshark shows the negative time of a capture whose clock goes back",
        lambda _, __, ours, theirs: ours == -1 and theirs < -1,
    ),
    Deviation(
        _RTT,
        "tshark times data across a clock's step back; we none",
        lambda case, n, ours, _: ours == -1 and _set_back(case, n),
    ),
    Deviation(
        _RTT,
        "tshark also times a segment that was acknowledged before the capture has it",
        lambda case, n, ours, _: ours == -1 and _nothing_new(case, n),
    ),
]


def rtt_differences(case: Compared, seen: set[str]) -> Iterator[str]:
    """Return packets whose round-trip time differs; add reasons of deviations to `seen`."""
    for n, row in enumerate(case.tcp[: len(case.packets)]):
        ours, theirs = int(case.tracked.rtt_ns[n]), row.ns("ack_rtt")
        if ours == theirs:
            continue
        reasons = [each.reason for each in RTT_DEVIATIONS if each.holds(case, n, ours, theirs)]
        seen |= set(reasons)
        if not reasons:
            yield f"{case.where(n)}: rtt_ns {ours}, tshark has {theirs}"
