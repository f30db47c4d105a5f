"""The UDP flows of a capture as rows for readers: one for each direction, most payload first."""

from collections.abc import Mapping, Sequence
from typing import Any

from capture_analysis.metrics.numbered_datagrams import NO_CLOCK

HEADINGS = (
    *("UDP flow", "packets", "payload", "time, s", "Mbit/s", "packets/s", "longest gap, s"),
    *("what", "lost", "jitter, ms", "round trip, ms", "CE"),
)
_VERSIONS = {1: "1", 0x6B3343CF: "2"}
_DIRECTIONS = ("forward", "backward")


def datagram_rows(flows: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Return the cells of each direction's row, in the order of HEADINGS.

    Args:
        flows: the UDP flows of a document.
    """
    found = [(flow, name) for flow in flows for name in _DIRECTIONS if flow[name]]
    found.sort(key=lambda each: -each[0][each[1]]["udp_payload"]["value"])
    return [_row(flow, flow[name], name) for flow, name in found]


def largest(flows: Sequence[Mapping[str, Any]]) -> str:
    """Say what the direction with most payload does; "" without UDP."""
    rows = datagram_rows(flows)
    if not rows:
        return ""
    told = dict(zip(HEADINGS, rows[0], strict=True))
    parts = [f"{told['Mbit/s']} Mbit/s in {told['packets']} packets, {told['what']}"]
    parts += [
        f"{name} {told[name]}" for name in HEADINGS[6:] if name != "what" and told[name] != "-"
    ]
    return f"No TCP. The UDP flow with most payload is {told['UDP flow']}: {'; '.join(parts)}."


def _row(flow: Mapping[str, Any], metrics: Mapping[str, Any], direction: str) -> tuple[str, ...]:
    def cell(name: str, shape: str = ".3g") -> str:
        value = metrics[name]["value"]
        return "-" if value is None else format(value, shape)

    ends = flow["name"].split(" > ")[:: 1 if direction == "forward" else -1]
    lost, share = (metrics[name]["value"] for name in ("numbered_lost", "numbered_lost_share"))
    rate, packets = metrics["udp_packet_rate"]["value"], metrics["udp_packets"]["value"]
    return (
        " > ".join(ends),
        str(packets),
        cell("udp_payload", ""),
        f"{(packets - 1) / rate:.3f}" if rate else "-",
        cell("udp_rate"),
        cell("udp_packet_rate"),
        cell("udp_gap"),
        _protocol(metrics),
        "-" if lost is None else f"{lost} ({100 * share:.3g} %)",
        cell("rtp_jitter"),
        cell("spin_rtt"),
        cell("udp_marked", ""),
    )


def _protocol(metrics: Mapping[str, Any]) -> str:
    version, clock = (metrics[name]["value"] for name in ("quic_version", "rtp_clock"))
    if version:
        return f"QUIC {_VERSIONS.get(version, hex(version))}"
    if metrics["numbered"]["value"] is None:
        return "-"
    if clock:
        return f"RTP {clock / 1000:g} kHz"
    return "RTP" if metrics["rtp_clock"]["why"] == NO_CLOCK else "numbered"
