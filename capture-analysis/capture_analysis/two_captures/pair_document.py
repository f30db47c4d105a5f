"""The measurements of two captures as a document for JSON."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from capture_analysis.one_capture.document import by_larger_direction, named_flow, named_metrics
from capture_analysis.two_captures.matching import UNKNOWN
from capture_analysis.two_captures.pair import PairMeasured, PairOfCaptures, Sink
from capture_analysis.two_captures.path_facts import DirectionFacts

SCHEMA = 1
FLOWS_LISTED = 100
WAYS = ("a_to_b", "b_to_a")
# If less than this share of common connections' packets is in both captures, matches are in doubt.
_MIN_COMMON_SHARE = 0.5


def analyse_pair(
    a: Path,
    b: Path,
    *,
    one_clock: bool = False,
    inside: bool = False,
    flows: int = FLOWS_LISTED,
    sink: Sink | None = None,
) -> dict[str, Any]:
    """Measure two captures of one path and return their document.

    Args:
        a: one capture, a file; times in the document are on its clock.
        b: the other capture, a file.
        one_clock: True if both captures are known to have the same clock.
        inside: True to read the TCP in tunnels besides the TCP outside.
        flows: number of connections to list, those with most data packets in one direction first.
        sink: receives every packet.

    Raises: AnalysisError if a file is not a capture, or no packet is in both.
    """
    measured = PairOfCaptures.of_files(a, b, inside=inside).measure(one_clock=one_clock, sink=sink)
    return document(measured, flows)


def document(measured: PairMeasured, flows: int = FLOWS_LISTED) -> dict[str, Any]:
    """Convert all results for JSON.

    Undefined numbers are null, with the reason beside them.
    """
    undefined: Counter[str] = Counter()
    metrics: dict[str, Any] = {}
    directions: dict[str, Any] = {}
    for number, name in enumerate(WAYS):
        directions[name] = {"facts": _direction_facts(measured.facts.directions[number])}
        for each in measured.estimators:
            directions[name] |= named_metrics(
                each.per_path_direction, each.of_path_direction(number), undefined
            )
    for each in measured.estimators:
        metrics |= named_metrics(each.per_pair, each.of_pair(), undefined)
    data = np.zeros(2 * len(measured.packets), dtype=np.int64)
    data[: len(measured.data)] = measured.data
    common = [flow for flow in by_larger_direction(data) if _is_common(measured, flow)]
    return {
        "schema": SCHEMA,
        "captures": [_capture(measured, number) for number in (0, 1)],
        "matched": {
            "packets": measured.survey.pairs,
            "by": measured.contact.identity.value,
            "connections": len(common),
        },
        "clock": _clock(measured),
        "flows": [_flow(measured, flow, undefined) for flow in common[:flows]],
        "flows_not_listed": max(len(common) - flows, 0),
        "ways": directions,
        "metrics": metrics,
        "undefined": dict(sorted(undefined.items())),
        "warnings": _warnings(measured),
    }


def _is_common(measured: PairMeasured, flow: int) -> bool:
    return bool(measured.survey.first_half[flow] != UNKNOWN)


def _capture(measured: PairMeasured, number: int) -> dict[str, Any]:
    survey = measured.survey
    span = (survey.a_span_ns, survey.b_span_ns)[number]
    return {
        "path": measured.names[number],
        "connections": len(measured.sources[number].flows),
        "first_ns": span[0],
        "last_ns": span[1],
        "resolution_ns": measured.facts.resolution_ns[number],
        "copies": measured.readers[number].copies,
        "outside_common_time": measured.uncommon[number].outside,
        "of_other_connections": measured.uncommon[number].strangers,
    }


def _clock(measured: PairMeasured) -> dict[str, Any]:
    clock = measured.survey.clock
    line = clock.lines[0]
    return {
        "offset_ns": round(line.offset_ns),
        "at_ns": line.at_ns,
        "drift_ppm": line.drift * 1e6,
        "drift_uncertainty_ppm": line.drift_uncertainty * 1e6,
        "uncertainty_ns": clock.uncertainty_ns,
        "how": clock.how,
        "steps": [{"time_ns": time_ns, "by_ns": by_ns} for time_ns, by_ns in clock.steps],
    }


def _direction_facts(facts: DirectionFacts) -> dict[str, Any]:
    return {
        "shortest_ns": facts.shortest_ns,
        "propagation_ns": facts.propagation_ns,
        "data_transmission_ns": facts.data_ns,
        "data_frame_bytes": facts.data_bytes,
        "ack_transmission_ns": facts.ack_ns,
        "ack_frame_bytes": facts.ack_bytes,
        "waited": facts.waited,
    }


def _flow(measured: PairMeasured, number: int, undefined: Counter[str]) -> dict[str, Any]:
    found = named_flow(measured.sources[0].flows, number)
    for half, name in enumerate(("forward", "backward")):
        direction = 2 * number + half
        if direction >= len(measured.data) or not measured.data[direction]:
            found[name] = None
            continue
        passes_a_first = measured.survey.first_half[number] == half
        found[name] = {"data_go": WAYS[0 if passes_a_first else 1]}
        for each in measured.estimators:
            values = each.of_direction(direction)
            found[name] |= named_metrics(each.per_direction, values, undefined)
    return found


def _warnings(measured: PairMeasured) -> list[str]:
    found = list(measured.survey.warnings)
    for name, source in zip(measured.names, measured.sources, strict=True):
        found += [f"{name}: {text}" for text in getattr(source, "warnings", [])]
    clock = measured.survey.clock
    if clock.uncertainty_ns is None:
        found.append("one direction only: delays are relative to the shortest")
    for name, reader in zip(measured.names, measured.readers, strict=True):
        if reader.copies:
            found.append(f"{name}: {reader.copies} packets captured more than once, counted once")
    share = measured.both / max(int(measured.packets.sum()), 1)
    if share < _MIN_COMMON_SHARE:
        found.append(
            f"only {100 * share:.0f} % of the packets of common connections are in both captures:"
            " offloads may have cut them differently, or a path may be asymmetric"
        )
    return found
