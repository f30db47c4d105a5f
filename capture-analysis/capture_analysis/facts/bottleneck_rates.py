"""Find the rate of each direction's bottleneck from the head of a capture."""

from dataclasses import replace

import numpy as np

from capture_analysis.columns import BoolArray
from capture_analysis.facts.delivery_rate import LINK_SOURCES, MOST_UTILISATION, Delivered
from capture_analysis.facts.directions import Block, View
from capture_analysis.facts.facts import (
    AGREES,
    Evidence,
    Facts,
    FloatArray,
    RateSource,
    swap_directions,
)
from capture_analysis.facts.gap_modes import TRAIN_GAPS, Modes, modes
from capture_analysis.facts.running_totals import occurrences
from capture_analysis.row_order import by_lane

# The argument `peak` of `modes` for gaps of ACKs, and of data that ACKs release. Such gaps are the
# data's transmission times unless ACKs are compressed.
_PEAK = 0.5
# A mode with a smaller share of the gaps is not even a guess.
_LEAST_SHARE = 0.05
_PSH = 8
# A connection with this share of a link's data counts as alone on it.
_ALONE = 0.8
# Least number of clock ticks in a segment's transmission, for a rate within a tenth.
_TICKS = 10
# A guess of more than this multiple of the delivery is discarded: the pace within an aggregate, and
# that of ACKs that waited together, looks like a rate.
_MOST_UNUSED = 10
# A rate from ACKs is doubted if less than this share of it is delivered. On a link as fast as the
# data's, two segments take 46 times as long as their ACK; on a link with a tenth of the rate, about
# 4 times as long.
_LEAST_USED = 0.25


def bottleneck_rates(head: Block, facts: Facts, one_pair: bool) -> Facts:
    """Estimate the rate with which most of the gaps visible at the tap agree.

    Args:
        head: the first packets.
        facts: the facts without the rates.
        one_pair: True if all connections have the same two hosts.
    """
    head = head.with_facts(facts)
    data, acks = head.data, head.acks
    choice = _Choice(head, one_pair)
    # A tap behind the queue sees its spacing in the data; a tap before it, only in the ACKs.
    behind, before = ~(facts.tap_at < 0.5), ~(facts.tap_at > 0.5)
    bits = (
        8.0 * data["frame_bytes"].astype(np.float64) * data.spread(_with_their_links(behind, facts))
    )
    found = choice.choose_best(
        facts,
        {
            RateSource.DATA: _own_modes(data, bits, facts, np.where(facts.tap_at > 0.5, 1, _PEAK)),
            RateSource.LINK_DATA: _of_link(data, bits, head, 1, shortest_ns=0),
        },
        behind,
    )
    # ACKs back to back on their own bottleneck carry no information about the data's.
    facts = choice.opposite_if_unknown(found)
    known = head.with_facts(facts)
    frame_share = facts.segment_frame_bytes / np.maximum(facts.segment_bytes, 1)
    bits = 8 * acks["acked_bytes"] * acks.spread(frame_share)
    # An ACK that fills a hole acknowledges data that arrived earlier; it has no round trip.
    bits[(acks["rtt_ns"] < 0) & acks.spread(facts.segment_bytes > 0)] = 0
    bits *= acks.spread(_with_their_links(before, facts))
    by_acks = choice.choose_best(
        found,
        {
            RateSource.ACKS: _by_acks(acks, bits * ~known.acks_back_to_back, facts),
            RateSource.LINK_ACKS: _of_link(
                acks, bits, head, _PEAK, shortest_ns=known.back_to_back_ns
            ),
        },
        before,
    )
    return choice.without_unused(choice.opposite_if_unknown(by_acks))


def _with_their_links(usable: BoolArray, facts: Facts) -> BoolArray:
    """Mark usable directions, and those that share a link with one: `modes` leaves out the rest."""
    linked = np.zeros(facts.links + 1, dtype=np.bool_)
    linked[facts.link[usable] + 1] = True
    return usable | (linked[facts.link + 1] & (facts.link >= 0))


class _Choice:
    """Chooses among rates by their evidence.

    A rate lower than the delivery is no candidate (delivery_rate.py).

    Args:
        head: the first packets.
        one_pair: True if all connections have the same two hosts.
    """

    def __init__(self, head: Block, one_pair: bool) -> None:
        self._facts = facts = head.facts
        delivered = Delivered(facts)
        delivered.add(head)
        self._alone_bit, together = delivered.least_bit(facts)
        self._shared_bit = np.maximum(self._alone_bit, together)
        # Of what no capture shows to be shared: as if all on a side of the tap shared one link.
        self._at_most_shared_bit = self._shared_bit
        if (facts.link < 0).any():
            sharing = replace(facts, link=facts.side)
            delivered = Delivered(sharing)
            delivered.add(head.with_facts(sharing))
            _, together = delivered.least_bit(sharing)
            most = np.maximum(self._alone_bit, together)
            self._at_most_shared_bit = np.where(facts.link < 0, most, self._shared_bit)
        same_hosts = one_pair | (facts.link >= 2)
        self._own_bit = np.where(same_hosts, self._shared_bit, self._alone_bit)
        # Independent applications keep a common pace only if a link imposes it.
        packets = np.zeros(len(facts), dtype=np.int64)
        packets[head.data.directions] = head.data.counts
        most = np.zeros(facts.links + 1)
        whole = np.bincount(facts.link + 1, packets, len(most))
        np.maximum.at(most, facts.link + 1, packets)
        self._many = (most < _ALONE * whole)[facts.link + 1] & (facts.link >= 0)

    def choose_best(
        self, facts: Facts, sources: dict[RateSource, Modes], usable: BoolArray
    ) -> Facts:
        """Replace a rate by another source's with more evidence, or with more gaps that agree.

        Connections that alternate on a link each keep a slower pace, as regular as the link's: the
        link's rate is taken if it is higher and at least half as many gaps agree.
        """
        for source, found in sources.items():
            shared = source in LINK_SOURCES
            paced = found.paused | (shared & self._many)
            measured = found.true & found.trains & paced & ~self._doubted(source, found)
            evidence = np.where(measured, Evidence.MEASURED, Evidence.GUESSED)
            better = found.share > facts.rate_share
            if shared:
                faster = found.rate_bit > (1 + AGREES) * facts.rate_bit
                better |= faster & (2 * found.share > facts.rate_share)
            better &= evidence >= facts.rate_evidence
            better |= evidence > facts.rate_evidence
            least_bit = self._shared_bit if shared else self._own_bit
            better &= usable & (found.share >= _LEAST_SHARE) & ~found.flat
            better &= MOST_UTILISATION * found.rate_bit >= least_bit
            facts = replace(
                facts,
                rate_bit=np.where(better, found.rate_bit, facts.rate_bit),
                rate_share=np.where(better, found.share, facts.rate_share),
                rate_gaps=np.where(better, found.gaps, facts.rate_gaps),
                rate_other_pace=np.where(better, found.other_pace, facts.rate_other_pace),
                rate_source=np.where(better, source, facts.rate_source),
                rate_evidence=np.where(better, evidence, facts.rate_evidence),
            )
        return facts

    def _doubted(self, source: RateSource, found: Modes) -> BoolArray:
        """Mark rates that rest on a coarse clock, on unusual segments, or on another pace.

        Small segments come as the application writes, merged ones as an offload takes them. A pace
        that all connections together exceed may be the connection's share of the link. A pace of
        ACKs may be that of their own link, if less than _LEAST_USED of it is delivered.
        """
        facts = self._facts
        odd, frame_bytes = facts.small | facts.merged, facts.segment_frame_bytes
        if source in LINK_SOURCES:
            odd, frame_bytes = odd.copy(), frame_bytes.copy()
            for link in occurrences(facts.link + 1)[0] - 1:
                mine = facts.link == link
                sends = mine & (facts.segment_bytes > 0)
                odd[mine] = facts.small[sends].all() or facts.merged[sends].any()
                frame_bytes[mine] = frame_bytes[mine].max(initial=0)
        else:
            # ACKs keep the pace of a link that data of others may have shared, unseen.
            by_acks = source is RateSource.ACKS
            shared_bit = self._at_most_shared_bit if by_acks else self._shared_bit
            odd |= MOST_UTILISATION * found.rate_bit < shared_bit
        segment_ns = 8e9 * frame_bytes / found.rate_bit
        doubt = odd | (_TICKS * facts.clock_ns > segment_ns)
        if source in (RateSource.ACKS, RateSource.LINK_ACKS):
            doubt |= _LEAST_USED * found.rate_bit > self._shared_bit
        return doubt

    def without_unused(self, facts: Facts) -> Facts:
        """Remove guesses that are out of proportion to the delivery."""
        most_bit = np.where(self._shared_bit > 0, _MOST_UNUSED * self._shared_bit, np.inf)
        beyond = (facts.rate_bit > most_bit) & (facts.rate_evidence == Evidence.GUESSED)
        copied = swap_directions(beyond) & (facts.rate_source == RateSource.OPPOSITE)
        return facts.without_rates(beyond | copied)

    def opposite_if_unknown(self, facts: Facts) -> Facts:
        """Guess the opposite link's rate for a link that carried no more than that."""
        guess = np.isnan(facts.rate_bit) & (MOST_UTILISATION * facts.ack_rate_bit >= self._own_bit)
        rate_bit = np.where(guess, swap_directions(facts.rate_bit), facts.rate_bit)
        source = np.where(guess, RateSource.OPPOSITE, facts.rate_source)
        evidence = np.where(guess, Evidence.GUESSED, facts.rate_evidence)
        return replace(facts, rate_bit=rate_bit, rate_source=source, rate_evidence=evidence)


def _own_modes(view: View, bits: FloatArray, facts: Facts, peak: FloatArray | float) -> Modes:
    """Find the modes of the gaps between each direction's own packets."""
    return modes(view.direction, bits, view["gap_ns"], len(facts), peak, _in_trains(view))


def _by_acks(acks: View, bits: FloatArray, facts: Facts) -> Modes:
    """Find the modes of the gaps between a direction's ACKs.

    If data left much closer together than its ACKs came at the mode, the path made this pace, and
    no application.
    """
    found = _own_modes(acks, bits, facts, _PEAK)
    gap_ns = acks["gap_ns"]
    sent_ns = acks["time_ns"] - acks["rtt_ns"]
    timed = (acks["rtt_ns"] >= 0) & (gap_ns > 0) & (bits > 0)
    timed[1:] &= acks["rtt_ns"][:-1] >= 0
    sent_gap_ns = np.diff(sent_ns, prepend=0)
    spread = timed & (sent_gap_ns >= 0) & (2 * sent_gap_ns < gap_ns)
    pace = np.abs(bits * 1e9 / np.maximum(gap_ns, 1) / acks.spread(found.rate_bit) - 1) <= AGREES
    count = np.bincount(acks.direction, spread & pace, len(facts))
    return replace(found, paused=found.paused | (count >= TRAIN_GAPS))


def _in_trains(data: View) -> BoolArray:
    """Mark data that were sent together: those before had no PSH, or are still outstanding.

    Pure ACKs have no PSH, and are all marked.
    """
    pushed = np.concatenate(([False], (data["flags"][:-1] & _PSH) != 0))
    found: BoolArray = ~pushed | (data["in_flight_bytes"] > data["payload_bytes"])
    return found


def _of_link(
    view: View, bits: FloatArray, head: Block, peak: float, *, shortest_ns: FloatArray | float
) -> Modes:
    """Find the modes of the gaps on the link, of all connections together.

    Args:
        view: data or ACKs.
        bits: shape (n,), see `modes`.
        head: the first packets.
        peak: see `modes`.
        shortest_ns: gaps must be longer; shape (n,) or one for all, NaN: any gap.

    Returns: columns by direction (2 * flow + half).
    """
    facts, order = head.facts, view.places
    link = facts.link.take(view.direction.take(order))
    time_ns = head.packets.time_ns.take(view.rows.take(order))
    gap_ns = np.full(len(order), -1)
    by_link = by_lane((link + 1).astype(np.uint32), np.arange(len(link))).rows
    same = np.diff(link[by_link]) == 0
    gap_ns[by_link[1:]] = np.where(same, np.diff(time_ns[by_link]), -1)
    gap_ns[link < 0] = -1
    close = gap_ns <= np.broadcast_to(shortest_ns, len(order))[order]
    bits, train = bits.take(order) * ~close, _in_trains(view)[order]
    found = modes(link + 1, bits, gap_ns, facts.links + 1, peak, train)
    return Modes(*(column[facts.link + 1] for column in vars(found).values()))
