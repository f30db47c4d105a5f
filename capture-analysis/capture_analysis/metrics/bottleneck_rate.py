"""Rate of the bottleneck that a direction's data pass, and how well it is known.

    given     by the user (--rate-mbit)
    measured  a true mode of the gaps between packets; nothing in the capture contradicts it
    guessed   a weaker mode, or that of the opposite way
    none      nothing, or what there was is contradicted

A rate is the mode of size / gap: of data behind the bottleneck; before it of ACKs, which come as
their data arrived. From the gaps of one direction, or of all connections one way together, which
share the link. By data it is the narrowest link *before* the tap, by ACKs that of the whole path.

It is a **true mode** if of all n gaps a share of 0.1 + 2 / sqrt(n) or more lies within 5 % of it,
half or more of those within 20 %. Of samples of random gaps (exponential, uniform, lognormal,
Pareto) 1 in 1000 has one, at most (`tests/facts/test_false_alarms.py`). It is still a guess if
there were fewer than three pauses of twice the pace, unless several connections share the link
(a pace without a pause may be the application's); if a segment lasts fewer than ten clock ticks;
if segments are small or merged by an offload; if all connections one way delivered more together,
so that it may be a share of their link; or, by ACKs, if they delivered less than a quarter of it,
so that it may be the rate of the ACKs' own link. A guess of more than ten times what was delivered
is no rate: it is the pace within an aggregate.

**Self-check:** no link is slower than what it delivers. A rate is **contradicted** if over a window
of time more than 1.05 of it was delivered, by the direction or, if they share the link, by all
(`delivered_peak`: the lesser of data and of data acknowledged, less what was on its way when the
window began). Then there is no rate, and none of the metrics that need one; a rate that was given
stays. A window lasts five round trips, 0.1 s, and, up to an eighth of the direction's time, twenty
times what queues add to the round trips in the mean, so that ACKs which waited together weigh
little. Windows are a power of two of ns long and do not overlap. ACKs of data that were sent again
do not count: they acknowledge at once what had arrived before. A rate is also a guess if data and
data acknowledged both came faster in all their time, pauses left out, which may be less than a
window.

Verdicts need a rate that is given or measured (compression_verdict); pictures take a guess, too.

Vantage: any.
"""

from collections.abc import Sequence
from typing import ClassVar

from typing_extensions import override

from capture_analysis.definition import Definition
from capture_analysis.facts.facts import Facts
from capture_analysis.one_capture.evidence import missing_rate
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally

BOTTLENECK_RATE = Definition(
    "bottleneck_rate", "Mbit/s", "rate of the data's bottleneck, given or measured"
)
DELIVERED_PEAK = Definition(
    "delivered_peak",
    "Mbit/s",
    "most that the data's link delivered over five round trips or more, 0.1 s at least",
)


class BottleneckRate(FromOne):
    """The rate where it is no guess, and the least that it can be."""

    title = "Bottleneck rate"
    picture = "rates"
    per_direction: ClassVar[Sequence[Definition]] = (
        BOTTLENECK_RATE,
        DELIVERED_PEAK,
    )

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        return {
            BOTTLENECK_RATE: missing_rate(direction, facts)
            or float(facts.rate_bit[direction]) / 1e6,
            DELIVERED_PEAK: float(facts.delivered_bit[direction]) / 1e6,
        }
