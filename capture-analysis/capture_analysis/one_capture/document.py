"""The measurements of one capture as a document for JSON."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from capture_analysis.columns import IntArray
from capture_analysis.definition import Definition
from capture_analysis.errors import AnalysisError
from capture_analysis.facts.facts import NEAR, Evidence, Facts, Placed, RateSource
from capture_analysis.flow_table import FlowTable
from capture_analysis.one_capture import lives
from capture_analysis.one_capture.from_one import Values
from capture_analysis.one_capture.limit import limit_of
from capture_analysis.one_capture.single import NOTHING, Described, Given, Measured, measure
from capture_analysis.one_capture.trouble import Numbers
from capture_analysis.reading.capture import Capture

SCHEMA = 1
FLOWS_LISTED = 100
# Clocks with longer steps than this deserve a warning: a segment's time at 120 Mbit/s.
COARSE_NS = 100_000


def analyse(path: Path, given: Given = NOTHING, flows: int = FLOWS_LISTED) -> dict[str, Any]:
    """Measure a capture and return its document.

    Args:
        path: a capture; "-" is standard input.
        given: the user's knowledge of the capture.
        flows: number of connections to list, those with most payload in one direction first.

    Raises: AnalysisError if the file is not a capture or has no TCP packet.
    """
    return document(measure(Capture(path, inside=given.inside), given), flows)


def document(
    measured: Measured, flows: int = FLOWS_LISTED, first: Sequence[int] = ()
) -> dict[str, Any]:
    """Convert all results for JSON.

    Undefined numbers are null, with the reason beside them.

    Args:
        measured: the result of `measure` for the whole capture.
        flows: number of connections to list.
        first: connections to list before those with most payload.

    Raises: AnalysisError if there was no packet of TCP or UDP.
    """
    capture = measured.capture
    need_packets(capture)
    listed = list(dict.fromkeys([*first, *connections_in_order(measured)]))[:flows]
    undefined: Counter[str] = Counter()
    metrics: dict[str, Any] = {}
    for each in measured.estimators:
        found = each.of_capture(measured.tally, measured.facts)
        metrics |= named_metrics(each.per_capture, found, undefined)
    return {
        "schema": SCHEMA,
        "capture": _capture(measured),
        "flows": [flow(measured, int(number), undefined) for number in listed],
        "flows_not_listed": len(measured.flows) - len(listed),
        "datagrams": _datagram_flows(measured, flows, undefined),
        "metrics": metrics,
        "undefined": dict(sorted(undefined.items())),
        "warnings": warnings(measured),
    }


def directions_in_order(measured: Measured) -> Sequence[int]:
    """List the directions with data, 2 * flow + half, most new payload first."""
    payload = _new_payload(measured)
    order = np.argsort(-payload, kind="stable")
    found: Sequence[int] = order[payload[order] > 0].tolist()
    return found


def connections_in_order(measured: Measured) -> Sequence[int]:
    """List the connections in the order of `directions_in_order`, those without data last."""
    return by_larger_direction(_new_payload(measured))


def by_larger_direction(size: IntArray) -> Sequence[int]:
    """Sort connections by their larger direction, largest first.

    Args:
        size: size of each direction, shape (2 * connections,).
    """
    order: Sequence[int] = np.argsort(-size.reshape(-1, 2).max(axis=1), kind="stable").tolist()
    return order


def _new_payload(measured: Measured) -> IntArray:
    return measured.tally.new_payload.values_of(np.arange(2 * len(measured.flows)))


def flow(measured: Measured, number: int, undefined: Counter[str]) -> dict[str, Any]:
    """Describe a connection for JSON; count reasons for nulls in `undefined`."""
    found = named_flow(measured.flows, number)
    found |= {"facts": facts(measured, number), "limits": {}}
    for half, name in enumerate(("forward", "backward")):
        direction = 2 * number + half
        if not measured.tally.payload.value_of(direction):
            found[name] = None
            continue
        metrics: dict[str, Any] = {}
        for each in measured.estimators:
            values = each.of_direction(direction, measured.tally, measured.facts)
            metrics |= named_metrics(each.per_direction, values, undefined)
        limit = limit_of(numbers(metrics))
        described = {"value": limit.cause, "share": limit.share, "sentence": limit.sentence}
        found[name], found["limits"][name] = metrics, described
    return found


def _datagram_flows(
    measured: Measured, count: int, undefined: Counter[str]
) -> list[dict[str, Any]]:
    """Describe the UDP flows with most payload in one direction."""
    datagrams, described = measured.capture.datagrams, []
    for number in by_larger_direction(datagrams.directions["bytes"].ravel())[:count]:
        found = named_flow(datagrams.flows, number)
        for name, ends in (("forward", (0, 1)), ("backward", (1, 0))):
            mine, other = datagrams.directions[number, ends]
            metrics: dict[str, Any] = {}
            for each in measured.estimators if mine["packets"] else ():
                values = each.of_datagrams(mine, other)
                metrics |= named_metrics(each.per_datagrams, values, undefined)
            found[name] = metrics or None
        described.append(found)
    return described


def numbers(metrics: Mapping[str, Mapping[str, Any]]) -> Numbers:
    """Return the values of named metrics, or the reasons for missing values."""
    return {
        name: each.get("why") if each["value"] is None else each["value"]
        for name, each in metrics.items()
    }


def named_flow(flows: FlowTable, number: int) -> dict[str, Any]:
    """Name a connection for JSON; its VLANs, the outer first, only if it has any."""
    vlans = flows.vlans(number)
    return {
        "id": number,
        "source": "{}:{}".format(*flows.source(number)),
        "destination": "{}:{}".format(*flows.destination(number)),
        "name": flows.name(number),
        **({"vlans": vlans} if vlans else {}),
        "wireshark_filter": flows.wireshark_filter(number),
    }


def named_metrics(
    definitions: Iterable[Definition], values: Values, undefined: Counter[str]
) -> dict[str, Any]:
    """Name values for JSON; count the reasons for nulls in `undefined`."""
    named: dict[str, Any] = {}
    for each in definitions:
        value = values[each]
        if isinstance(value, str):
            undefined[value] += 1
            named[each.name] = {"value": None, "unit": each.unit, "why": value}
        else:
            named[each.name] = {"value": value, "unit": each.unit}
    return named


def _capture(measured: Measured) -> dict[str, Any]:
    capture = measured.capture
    first_ns, last_ns = _span_ns(measured)
    return {
        "path": str(capture.path),
        "format": capture.format,
        "first_ns": first_ns,
        "last_ns": last_ns,
        "packets": capture.counts.packets,
        "connections": len(measured.flows),
        "counts": asdict(capture.counts),
        "forgotten": asdict(measured.forgotten),
    }


def _span_ns(measured: Measured) -> tuple[int, int]:
    """Return the times of the first packet and of the last, or of the last begin."""
    tally, begun = measured.tally, measured.flows.rows["first_ns"]
    if not len(begun):
        sent = measured.capture.datagrams.directions.ravel()
        sent = sent[sent["packets"] > 0]
        return int(sent["first_ns"].min()), int(sent["last_ns"].max())
    ends = (each.values().max(initial=-1) for each in (tally.last_ns, tally.last_ack_ns))
    return int(begun.min()), int(max(begun.max(), *ends))


def facts(measured: Measured, number: int) -> dict[str, Any]:
    """Return the facts of a connection for JSON, with their confidence."""
    row, known = measured.flows.rows[number], measured.facts
    payload = [measured.tally.payload.value_of(2 * number + half) for half in (0, 1)]
    return {
        "data": data_direction(payload[0], payload[1]),
        "handshake_seen": bool(FlowTable(measured.flows.rows[[number]]).syns_seen().all()),
        "forward": _direction_facts(known, 2 * number, int(row["mss"][0])),
        "backward": _direction_facts(known, 2 * number + 1, int(row["mss"][1])),
    }


def data_direction(forward: int, backward: int) -> str:
    """Name the direction of the payload.

    It is "both" if the smaller direction has at least a tenth of all payload.
    """
    if not forward + backward:
        return "none"
    if min(forward, backward) * 10 >= forward + backward:
        return "both"
    return "forward" if forward > backward else "backward"


def vantage(at: float) -> str:
    """Describe the tap's place on the path of the data in words."""
    if np.isnan(at):
        return "unknown"
    if at <= NEAR:
        return "near the data sender"
    return "near the data receiver" if at >= 1 - NEAR else "in the middle"


def _direction_facts(known: Facts, direction: int, mss: int) -> dict[str, Any]:
    tick_ns = float(known.tick_ns[direction])
    return {
        "segment": {
            "value": int(known.segment_bytes[direction]) or None,
            "unit": "bytes",
            "announced_mss": mss or None,
        },
        "segments_per_ack": {"value": _number(known.segments_per_ack[direction]), "unit": "1"},
        "vantage": {
            "value": vantage(float(known.tap_at[direction])),
            "fraction": _number(known.tap_at[direction]),
            "evidence": Placed(int(known.tap_evidence[direction])).words(),
            "confidence": float(known.tap_agreement[direction]),
            "samples": int(known.tap_samples[direction]),
        },
        "bottleneck": {
            "value": _number(known.rate_bit[direction] / 1e6),
            "unit": "Mbit/s",
            "source": str(RateSource(int(known.rate_source[direction]))),
            "evidence": str(Evidence(int(known.rate_evidence[direction]))),
            "confidence": float(known.rate_share[direction]),
            "samples": int(known.rate_gaps[direction]),
        },
        "round_trip": {"value": _number(known.round_trip_ns[direction] / 1e6), "unit": "ms"},
        "clock": {"value": int(known.clock_ns[direction]) / 1e3, "unit": "us"},
        "timestamp_tick": {
            "value": _number(tick_ns / 1e3),
            "unit": "us",
            "samples": int(known.ticks[direction]),
        },
    }


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def warnings(measured: Measured) -> list[str]:
    """Return the warnings that a reader of the numbers needs."""
    capture = measured.capture
    found = [*capture.warnings, *filter(None, [measured.times.warning()])]
    seen = measured.tally.lives.values_of(np.arange(len(measured.flows)))[:, lives.SEEN]
    # Nothing answered a SYN that failed: its connection shows all that there was.
    _, unanswered = lives.failed_connects(seen)
    one_sided = int((~measured.flows.ends_seen().all(axis=1) & ~unanswered).sum())
    if one_sided:
        found.append(
            f"{one_sided} of {len(measured.flows)} connections have packets of one direction only: "
            "round trip times, acknowledgements and the tap's place are unknown for them"
        )
    if faces := measured.flows.nat_faces():
        names = " and ".join(map(measured.flows.name, faces[0]))
        found.append(
            f"{len(faces)} of {len(measured.flows)} connections are captured on both sides of a "
            f"NAT, {names} for one: sums count their packets twice, and shares of links, too; a "
            "capture of one interface, or a filter of one side's addresses, counts them once"
        )
    clock_ns = int(measured.facts.clock_ns.max(initial=0))
    first_ns, last_ns = _span_ns(measured)
    if first_ns == last_ns and capture.counts.packets > 1:
        found.append("all packets have one time: nothing that needs times can be told")
    elif clock_ns >= COARSE_NS:
        found.append(
            f"all times are multiples of {clock_ns / 1e6:g} ms: shorter gaps are unknown, "
            "the clock may make bunches, and rates of links that carry more than a tenth "
            "of a segment in that time are guesses"
        )
    merged = int(measured.tally.merged.values().sum())
    if merged:
        found.append(
            f"{merged} packets have more payload than a segment can have, merged by an offload of "
            "the machine that captured: their gaps are not the network's, and there is no verdict "
            "on their connections; `ethtool -K INTERFACE tso off gso off gro off lro off` ends it"
        )
    unseen, holes = (int(n) for n in measured.tally.unseen.values().sum(axis=0))
    if unseen:
        why = (
            "they are in later fragments"
            if capture.counts.later_fragments
            else "it missed packets, or saw one of several paths"
        )
        found.append(
            f"{unseen} bytes are acknowledged that the capture lacks, at {holes} places: {why}; "
            "goodput, rates, losses and what limits a transfer lack them, too"
        )
    if len(measured.interfaces) > 1:
        found.append(
            f"packets of {len(measured.interfaces)} interfaces in one capture: gaps between them "
            "compare different places, and maybe different clocks"
        )
    return found


def need_packets(capture: Described) -> None:
    """Check that a capture has a packet of TCP or of UDP, after reading it.

    Raises: AnalysisError if it has none.
    """
    if not len(capture.datagrams):
        need_tcp(capture)


def need_tcp(capture: Described) -> None:
    """Check that a capture has a TCP packet, after reading it.

    Raises: AnalysisError if it has none.
    """
    if capture.counts.packets:
        return
    counts = {k: v for k, v in asdict(capture.counts).items() if v and k != "frames"}
    fates = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
    why = "; ".join(filter(None, (fates, *capture.warnings)))
    frames = capture.counts.frames
    said = f"{capture.path}: no TCP packet in {frames} frames"
    raise AnalysisError(said + (f": {why}" if why else ""))
