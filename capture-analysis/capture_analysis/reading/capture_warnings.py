"""Warnings about a capture that could be read."""

from collections.abc import Iterable
from enum import Enum

from capture_analysis.reading.datagrams import NO_DATAGRAMS, Datagrams
from capture_analysis.reading.parsing import LINK_TYPES, Counts

# The more common link types in which the parser does not look for IP (tcpdump.org/linktypes.html).
_LINK_TYPE_NAMES = {
    119: "IEEE 802.11 with Prism header",
    163: "IEEE 802.11 with AVS header",
    187: "Bluetooth HCI",
    189: "USB",
    192: "PPI",
    195: "IEEE 802.15.4",
    220: "USB",
    227: "CAN",
    249: "USB",
    253: "netlink",
}


# Kinds of tunnels, by the names of their counts.
_TUNNELS = {
    "tunnels_ip": "IP in IP",
    "tunnels_gre": "GRE",
    "tunnels_erspan": "ERSPAN",
    "tunnels_vxlan": "VXLAN",
    "tunnels_geneve": "Geneve",
    "tunnels_gtp": "GTP-U",
}


class Tunnels(Enum):
    """The ways to treat packets inside tunnels, each with its warning."""

    LEFT_OUT = "{count} packets are inside tunnels ({kinds}), left out: --inside reads them"
    NOTHING_ELSE = (
        "all TCP is inside tunnels ({kinds}): sizes of frames are those with their headers"
    )
    ASKED_FOR = (
        "{count} packets are inside tunnels ({kinds}), and read: sizes of frames are those with"
        " their headers"
    )


# The words for frames and packets that are counted under a name, and the consequence.
_SENTENCES = {
    "malformed": "{frames} with contradictory headers, left out",
    "no_timestamp": "{frames} without a time, left out",
    "later_fragments": (
        "{packets} are fragments of IP packets behind the first ones: without TCP's header they "
        "belong to no connection, and their bytes are not counted"
    ),
    "beyond_2262": "{frames} at a time beyond the year 2262, left out",
    "encrypted": (
        "{frames} of an encrypted wireless link, left out: capture on a machine that decrypts, or"
        " decrypt the file"
    ),
    "aggregated": "{frames} of a wireless link with several packets each (A-MSDU), left out",
    "no_interface": (
        "{frames} whose interface no block before them describes, left out: a tool dropped the"
        " interface description from the pcapng file, and link type and clock are unknown"
    ),
    "fraction_beyond": (
        "{packets} whose time has a fraction of a second or more: the fraction is added, "
        "and their times may be wrong"
    ),
    "backward": (
        "{packets} with an earlier time than the packet before them: three or more that are less "
        "than a second late are put in order; else gaps to them are left out, and if a clock was "
        "set all later times are shifted"
    ),
    "options_cut": (
        "{packets} with TCP options that end too early: time stamps, SACK and the scale of windows "
        "after that end are missing; a snap length of 128 bytes (tcpdump -s 128) keeps them"
    ),
    "length_guessed": (
        "{packets} of IP length 0 (segmentation offload): their payload is taken from "
        "the frame's length"
    ),
    "length_beyond": (
        "{packets} whose IP length exceeds their frame (a tool cut them and changed the "
        "sizes): rates and shares of links are too low"
    ),
}


def warnings_of(
    counts: Counts,
    link_types: Iterable[int],
    datagrams: Datagrams = NO_DATAGRAMS,
    tunnels: Tunnels = Tunnels.LEFT_OUT,
) -> list[str]:
    """Describe missing frames and odd packets of a capture.

    Args:
        counts: counts of the frames by their fate.
        link_types: the link types that the file names.
        datagrams: its UDP flows.
        tunnels: the treatment of packets in tunnels.
    """
    found = []
    if not counts.frames:
        found.append("it has no frame, only a header")
    if counts.unknown_link_type:
        names = ", ".join(_link_type(each) for each in link_types if each not in LINK_TYPES)
        found.append(f"{_many(counts.unknown_link_type, 'frame')} of unknown link type: {names}")
    if counts.too_short:
        frames = _many(counts.too_short, "frame")
        found.append(
            f"of {frames} too little was kept to identify the protocol (the snap length "
            "cuts headers): they are left out, and their payload is missing in every "
            "number; 128 bytes (tcpdump -s 128) are enough"
        )
    others = counts.not_tcp - counts.tunnels() - datagrams.packets()
    if others > counts.packets + datagrams.packets():
        found.append(f"{_many(others, 'packet')} of neither TCP nor UDP are not analysed")
    if datagrams.quic():
        found.append(
            "QUIC encrypts its acknowledgements (RFC 9001): the endpoint's log (qlog) has losses "
            "and reasons for waiting"
        )
    if datagrams.left_out:
        packets = _many(datagrams.left_out, "packet")
        found.append(f"{packets} of UDP are of flows beyond the first {len(datagrams)}, left out")
    if counts.tunnels():
        each = ((getattr(counts, name), kind) for name, kind in _TUNNELS.items())
        kinds = ", ".join(f"{count} {kind}" for count, kind in each if count)
        found.append(tunnels.value.format(count=counts.tunnels(), kinds=kinds))
    for name, sentence in _SENTENCES.items():
        count = getattr(counts, name)
        if count:
            named = {f"{what}s": _many(count, what) for what in ("frame", "packet")}
            found.append(sentence.format(**named))
    return found


def _link_type(number: int) -> str:
    name = _LINK_TYPE_NAMES.get(number)
    return f"{number} ({name})" if name else str(number)


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count != 1 else ''}"
