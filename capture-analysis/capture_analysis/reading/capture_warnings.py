"""Warnings about a capture that could be read."""

from collections.abc import Iterable

from capture_analysis.reading.parsing import LINK_TYPES, Counts

# The more common link types in which the parser does not look for IP (tcpdump.org/linktypes.html).
_LINK_TYPE_NAMES = {
    9: "PPP",
    50: "PPP in HDLC",
    104: "Cisco HDLC",
    105: "IEEE 802.11",
    119: "IEEE 802.11 with Prism header",
    127: "IEEE 802.11 with radiotap",
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


def warnings_of(counts: Counts, link_types: Iterable[int]) -> list[str]:
    """Describe missing frames and odd packets of a capture.

    Args:
        counts: counts of the frames by what became of each.
        link_types: the link types that the file names.
    """
    found = []
    if not counts.frames:
        found.append("there is no frame in it, nothing but a header")
    if counts.unknown_link_type:
        names = ", ".join(_link_type(each) for each in link_types if each not in LINK_TYPES)
        found.append(f"{_frames(counts.unknown_link_type)} of unknown link type: {names}")
    if counts.too_short:
        found.append(f"of {_frames(counts.too_short)} too little was kept to tell the protocol")
    if counts.malformed:
        found.append(f"{_frames(counts.malformed)} with contradictory headers, left out")
    if counts.no_timestamp:
        found.append(f"{_frames(counts.no_timestamp)} without a time, left out")
    if counts.backward:
        found.append(f"{_packets(counts.backward)} captured before the packet in front of them")
    if counts.options_cut:
        found.append(f"{_packets(counts.options_cut)} with TCP options that end too early")
    if counts.length_guessed:
        found.append(
            f"{_packets(counts.length_guessed)} of IP length 0 (segmentation offload): what they"
            " carry is taken from the frame's length"
        )
    return found


def _link_type(number: int) -> str:
    name = _LINK_TYPE_NAMES.get(number)
    return f"{number} ({name})" if name else str(number)


def _frames(count: int) -> str:
    return f"{count} frame{'s' if count != 1 else ''}"


def _packets(count: int) -> str:
    return f"{count} packet{'s' if count != 1 else ''}"
