"""Rate of the bottleneck on the path of a direction's data, and its evidence.

    given      by the user (--rate-mbit)
    measured   a true mode of the gaps between packets; nothing in the capture contradicts it
    guessed    a weaker mode, or the rate of the opposite direction
    none       no mode, or the capture contradicts it; the path carries at least `delivered_peak`

A rate is the mode of size / gap: of data if the tap is behind the bottleneck; of ACKs if it is
before the bottleneck, because ACKs come as their data arrived. Gaps are taken within one direction,
or among all connections in one direction that share the link: those between the same two hosts, and
those between others whose packets follow each other at a pace that is a true mode, too. Data shows
the rate of the narrowest link *before* the tap, ACKs show that of the whole path.

A mode is **true** if at least a share of 0.1 + 2 / sqrt(n) of all n gaps lies within 5 % of it, and
if these are at least half of the gaps within 20 % of it. Among samples of random gaps (exponential,
uniform, lognormal, Pareto) at most 1 in 1000 has one (`tests/facts/test_link_times.py`). No rate
comes from gaps that do not grow with the packet: if half of the small packets, at most half as
large as the others, come at the others' gap, an application keeps that pace. The rate is a guess
unless small packets come at it, too, or ten gaps lie between packets that were sent together: the
first had no PSH, or was still outstanding. It is still a guess if there were fewer than three
pauses of twice the pace (a pace without a pause may be the application's), unless several
connections share the link, or ten ACKs kept the pace though their data left at most half as far
apart; if a segment lasts fewer than ten clock ticks; if segments are small or merged
by an offload; if all connections in one direction delivered more together, so that it may be a
share of their link; or, for a rate from ACKs, if they delivered less than a quarter of it, so that
it may be the rate of the ACKs' own link. A guess of more than ten times the delivery is discarded:
it is the pace within an aggregate.

**Self-check:** no link is slower than its delivery. A rate is **contradicted** if over a window of
time more than 1.05 of it was delivered, by the direction or, if they share the link, by all
(`delivered_peak`: the smaller of data and of data acknowledged, without the data under way when the
window began). Then there is no rate, and none of the metrics that need one; a given rate stays. A
window lasts five round trips, 0.1 s, and, up to an eighth of the direction's time, twenty times the
mean delay that queues add to the round trips, so that ACKs which waited together weigh little.
Windows are a power of two of ns long and do not overlap. ACKs of data that was sent again do not
count: they acknowledge at once data that arrived before. A rate is also a guess if data and data
acknowledged both came faster over all their time without pauses, which may be shorter than a
window.

Verdicts need a given or measured rate (compression_verdict); pictures accept a guess, too. So does
the sentence on the limit if the delivery reached the guess within a twentieth (`rate_reached`), and
a queue stood.

Vantage: any.
"""

from capture_analysis.definition import Definition
from capture_analysis.facts.facts import Evidence, Facts
from capture_analysis.one_capture.evidence import missing_rate
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override

BOTTLENECK_RATE = Definition(
    "bottleneck_rate", "Mbit/s", "rate of the data's bottleneck, given or measured"
)
DELIVERED_PEAK = Definition(
    "delivered_peak",
    "Mbit/s",
    "highest rate that the data's link delivered over at least five round trips and 0.1 s; less "
    "than the goodput of a shorter transfer",
)
RATE_REACHED = Definition(
    "rate_reached", "Mbit/s", "a guess of the rate within a twentieth of the most that it delivered"
)
_REACHED = 0.05
NO_DELIVERY = "the data come at one time, or without the other direction's packets"
NOT_REACHED = "no guess of the rate that its delivery reached"


class BottleneckRate(FromOne):
    """The rate if it is no guess, and its lower bound."""

    title = "Bottleneck rate"
    picture = "rates"
    per_direction = (BOTTLENECK_RATE, DELIVERED_PEAK, RATE_REACHED)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        rate, most = (float(b[direction]) / 1e6 for b in (facts.rate_bit, facts.delivered_bit))
        guessed = facts.rate_evidence[direction] == Evidence.GUESSED
        return {
            BOTTLENECK_RATE: missing_rate(direction, facts) or rate,
            DELIVERED_PEAK: most or NO_DELIVERY,
            RATE_REACHED: rate if guessed and abs(most - rate) <= _REACHED * rate else NOT_REACHED,
        }
