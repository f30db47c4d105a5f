"""Estimate the facts of a capture's connections from its first packets."""

from dataclasses import fields, replace

import numpy as np

from capture_analysis.columns import IntArray, Mark
from capture_analysis.facts.bottleneck_rates import bottleneck_rates
from capture_analysis.facts.delivery_rate import delivery_shifts
from capture_analysis.facts.directions import Block
from capture_analysis.facts.facts import (
    MIN_SAMPLES,
    OPTION_CUT,
    Evidence,
    Facts,
    FloatArray,
    RateSource,
    swap_directions,
)
from capture_analysis.facts.paths import Sides, one_pair, path_numbers
from capture_analysis.facts.shared_links import shared_links
from capture_analysis.facts.vantage import locate_tap, round_trip_change_ns
from capture_analysis.flow_table import NO_SCALE, SCALE_CUT, FlowTable

# Resolutions of known clocks: Windows's timer, jiffies, tools that round.
UNITS_NS = (
    100_000_000, 15_625_000, 10_000_000, 4_000_000, 1_000_000, 100_000, 10_000, 1_000, 100
)  # fmt: skip
# Share of steps that must be multiples of a unit; a finer clock's steps are multiples by chance in
# 1 of 10.
_MULTIPLES, _LEAST_STEPS = 0.99, 10
# Steps are tested in this number of parts, because the first part excludes most units.
_PARTS = 32
# A step is common if it has this share of the first steps, which are a sample.
_COMMON, _SAMPLE = 0.01, 4096


def clock_resolution_ns(time_ns: IntArray) -> int:
    """Return the coarsest unit that divides the steps from packet to packet.

    With fewer than _LEAST_STEPS steps it is the shortest step if many packets share each time, else
    1. One step in a hundred may be odd, unless the common steps are multiples of a larger unit:
    then a link paces the packets, as in virtual time, and the odd steps show the clock.
    """
    steps = np.diff(time_ns)
    steps = steps[steps != 0]
    if len(steps) < _LEAST_STEPS:
        shared = len(time_ns) > _LEAST_STEPS * (len(steps) + 1)
        return int(np.abs(steps).min(initial=UNITS_NS[0])) if shared else 1
    unit = _unit_ns(steps, _MULTIPLES)
    return unit if _common_ns(steps) == unit else _unit_ns(steps, 1)


def _unit_ns(steps: IntArray, share: float) -> int:
    return next((unit for unit in UNITS_NS if _are_multiples(steps, unit, share)), 1)


def _common_ns(steps: IntArray) -> int:
    """Return the greatest common divisor of the common steps."""
    step, count = np.unique(np.abs(steps[:_SAMPLE]), return_counts=True)
    return int(np.gcd.reduce(step[count >= _COMMON * count.sum()]))


def _are_multiples(steps: IntArray, unit: int, share: float) -> bool:
    """Tell whether a share of the steps are multiples of a unit; a few steps exclude most units."""
    others, least = 0, share * len(steps)
    for part in np.array_split(steps, _PARTS):
        others += int(np.count_nonzero(part % unit))
        if len(steps) - others < least:
            return False
    return True


IP_HEADER_BYTES = {4: 20, 6: 40}
TCP_HEADER_BYTES = 20
TIMESTAMPS_BYTES = 12
# Ticks of time stamps: RFC 7323 allows 1 ms to 1 s; Linux also has 1 us.
TICKS_NS = np.array([1e3, 1e5, 1e6, 2e6, 4e6, 5e6, 1e7, 2e7, 1e8, 2.5e8, 5e8, 1e9])
_TICK_TOLERANCE = 0.05


class FactFinder:
    """Estimate facts from a capture's head; extend them to later flows.

    Args:
        head: the first packets.
        flows: the connections so far.
        rate_mbit: rate of the bottleneck in the direction of most data, Mbit/s; None to estimate.
        ack_rate_mbit: rate of the bottleneck in the opposite direction, Mbit/s; None to estimate.
    """

    def __init__(
        self,
        head: Block,
        flows: FlowTable,
        rate_mbit: float | None = None,
        ack_rate_mbit: float | None = None,
    ) -> None:
        self._sides = Sides(flows)
        side = self._sides.origins(flows)
        self._given = _given_by_side(head, side, rate_mbit, ack_rate_mbit)
        facts = _sizes(head, flows, replace(Facts.without_knowledge(len(side)), side=side))
        found = locate_tap(head.with_facts(facts))
        facts = replace(
            facts,
            tap_at=found.at,
            tap_evidence=found.evidence,
            tap_agreement=found.agreement,
            tap_samples=found.samples,
            round_trip_ns=found.round_trip_ns,
            delivery_shift=delivery_shifts(head, found.round_trip_ns, found.waiting_ns),
            handshake_ns=found.handshake_ns,
            clock_ns=np.full(len(side), clock_resolution_ns(head.packets.time_ns)),
        )
        facts = replace(
            facts, link=shared_links(head.with_facts(facts), facts, path_numbers(flows))
        )
        rated = bottleneck_rates(head, _ticks(head, facts), one_pair(flows))
        # A tool cut these frames and changed their sizes: a rate by them is no link's.
        cut = facts.segment_frame_bytes < facts.segment_bytes
        self.facts = self._with_given(rated.without_rates(cut | swap_directions(cut)))

    def cover(self, flows: FlowTable) -> Facts:
        """Return the facts of all connections so far.

        A connection that began after the head gets the facts of the first one between the same
        hosts; without one, only its side is known.
        """
        known = len(self.facts) // 2
        if len(flows) > known:
            late = FlowTable(flows.rows[known:])
            alike = self._sides.between_same_hosts(late)
            unknown = Facts.without_knowledge(len(alike))
            columns = {}
            for f in fields(Facts):
                mine, none = getattr(self.facts, f.name), getattr(unknown, f.name)
                copied = np.where(alike >= 0, mine[alike], none) if len(mine) else none
                columns[f.name] = np.concatenate((mine, copied))
            columns["side"][2 * known :] = self._sides.origins(late)
            self.facts = self._with_given(Facts(**columns))
        return self.facts

    def _with_given(self, facts: Facts) -> Facts:
        given = self._given[facts.side]
        rate_bit = np.where(np.isnan(given), facts.rate_bit, given)
        source = np.where(np.isnan(given), facts.rate_source, RateSource.GIVEN)
        evidence = np.where(np.isnan(given), facts.rate_evidence, Evidence.GIVEN)
        return replace(facts, rate_bit=rate_bit, rate_source=source, rate_evidence=evidence)


def _given_by_side(
    head: Block, side: IntArray, rate_mbit: float | None, ack_rate_mbit: float | None
) -> FloatArray:
    """Assign the given rates to the sides of the data's senders.

    The rate of a side is NaN if it was not given.
    """
    payload = np.zeros(2)
    np.add.at(payload, side[head.data.directions], head.data.sum(head.data["payload_bytes"]))
    given = np.full(2, np.nan)
    main = int(payload.argmax())
    for at, mbit in ((main, rate_mbit), (1 - main, ack_rate_mbit)):
        if mbit is not None:
            given[at] = mbit * 1e6
    return given


def _sizes(head: Block, flows: FlowTable, facts: Facts) -> Facts:
    """Find the sizes of segments and ACKs, and the segments per ACK."""
    data, acks = head.data, head.acks
    segment, frame, smallest, header = (np.zeros(len(facts), dtype=np.int64) for _ in range(4))
    segment[data.directions] = data.reduce(np.maximum, data["payload_bytes"])
    frame[data.directions] = data.reduce(np.maximum, data["frame_bytes"])
    smallest[acks.directions] = acks.reduce(np.minimum, acks["frame_bytes"])
    stamped = acks.reduce(np.minimum, acks["marks"] & Mark.TIMESTAMPS)
    ip = np.repeat([IP_HEADER_BYTES[int(v)] for v in flows.rows["version"]], 2)
    header[acks.directions] = (
        ip[acks.directions] + TCP_HEADER_BYTES + (stamped > 0) * TIMESTAMPS_BYTES
    )
    new = acks["acked_bytes"] > 0
    acked, count = acks.sum(acks["acked_bytes"]), acks.sum(new)
    per_ack = np.full(len(facts), np.nan)
    known = (count > 0) & (segment[acks.directions] > 0)
    at = acks.directions[known]
    per_ack[at] = np.maximum(acked[known] / (count[known] * segment[at]), 1)
    return replace(
        facts,
        segment_bytes=segment,
        segment_frame_bytes=frame,
        mss_bytes=flows.rows["mss"][:, ::-1].ravel().astype(np.int64),
        window_shift=_window_shifts(flows),
        ack_frame_bytes=smallest,
        header_bytes=header,
        segments_per_ack=per_ack,
    )


def _window_shifts(flows: FlowTable) -> IntArray:
    """Find the scale of the windows that answer each direction's data.

    It is -1 without a handshake, and OPTION_CUT if the handshake's options end too early. Windows
    are scaled only if both ends offer a scale.
    """
    offered = flows.rows["window_scale"].astype(np.int64)
    scaled = (offered != NO_SCALE).all(axis=1, keepdims=True)
    seen = flows.syns_seen().all(axis=1, keepdims=True)
    cut = (offered == SCALE_CUT).any(axis=1, keepdims=True)
    known = np.where(cut, OPTION_CUT, np.where(scaled, offered[:, ::-1], 0))
    return np.where(seen, known, -1).ravel()


def _ticks(head: Block, facts: Facts) -> Facts:
    """Estimate the tick of each receiver's time stamps.

    Between its first and its last stamped packet, time and ticks agree but for _TICK_TOLERANCE and
    the change of the packets' delay, which is at most that of the round trips. The tick is known
    if only one of TICKS_NS agrees.
    """
    packets = head.packets
    rows = np.flatnonzero((packets.marks & Mark.TIMESTAMPS) != 0)
    lane = packets.flow[rows].astype(np.int64) << 1 | packets.half[rows]
    first, last = np.full((2, len(facts)), -1)
    first[lane[::-1]], last[lane] = rows[::-1], rows
    seen = np.flatnonzero(first >= 0)
    first, last = first[seen], last[seen]
    value = packets.ts_value
    ticks = (value[last] - value[first]).view(np.int32).astype(np.int64)
    time_ns = packets.time_ns[last] - packets.time_ns[first]
    # The time stamps of a direction's receiver are on packets of the opposite half.
    at = seen ^ 1
    passed_ns = ticks[:, None] * TICKS_NS
    change_ns = round_trip_change_ns(head, len(facts))[at]
    most_ns = _TICK_TOLERANCE * passed_ns + TICKS_NS + change_ns[:, None]
    agree = np.abs(time_ns[:, None] - passed_ns) <= most_ns
    known = (ticks >= MIN_SAMPLES) & (agree.sum(axis=1) == 1)
    tick_ns, counts = np.full(len(facts), np.nan), np.zeros(len(facts), dtype=np.int64)
    tick_ns[at] = np.where(known, TICKS_NS[agree.argmax(axis=1)], np.nan)
    counts[at] = np.maximum(ticks, 0)
    return replace(facts, tick_ns=tick_ns, ticks=counts)
