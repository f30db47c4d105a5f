"""One-way delay between the taps, of data and ACKs, and queueing.

    d_i = second_i - first_i        q_i = d_i - min d

first, second: when packet i passed its first and its second tap, on one clock; unit ns, by
direction; quantiles to 1/256. The minimum is over the direction's packets of the same kind.

The delay is as accurate as the clocks' offset (`clock.uncertainty_ns` of the document). q does not
depend on the offset as long as no delay is negative: a wrong offset shifts all delays by the same
amount.
"""

import math

import numpy as np

from capture_analysis.definition import Definition
from capture_analysis.facts.running_totals import LaneArray
from capture_analysis.histogram import Histogram
from capture_analysis.overriding import override
from capture_analysis.two_captures.from_pair import FromPair, Step, Values
from capture_analysis.two_captures.packets_between import View

_NEVER = np.iinfo(np.int64).max
NO_PACKETS = "no packet of the kind passed both taps"


def _definitions(kind: str) -> tuple[Definition, ...]:
    name = {"data": "data", "ack": "pure ACKs"}[kind]
    return (
        Definition(f"{kind}_delay_min", "ns", f"shortest one-way delay of {name}", least=-math.inf),
        Definition(
            f"{kind}_delay_median", "ns", f"median one-way delay of {name}", least=-math.inf
        ),
        Definition(
            f"{kind}_delay_p95",
            "ns",
            f"95th percentile of the one-way delay of {name}",
            least=-math.inf,
        ),
        Definition(f"{kind}_delay_max", "ns", f"longest one-way delay of {name}", least=-math.inf),
        Definition(f"{kind}_queueing_median", "ns", f"median delay of {name} minus the shortest"),
        Definition(
            f"{kind}_queueing_p95",
            "ns",
            f"95th percentile of the delay of {name} minus the shortest",
        ),
    )


_OF_DATA, _OF_ACKS = _definitions("data"), _definitions("ack")


class OneWayDelay(FromPair):
    """One-way delays of each direction's data and ACKs."""

    title = "One-way delay and queueing"
    picture = "one-way-delay"
    per_direction = (*_OF_DATA, *_OF_ACKS)

    @override
    def start(self) -> None:
        self._delays = Histogram()
        self._least = LaneArray(np.minimum, _NEVER)
        self._most = LaneArray(np.maximum, -_NEVER)

    @override
    def add(self, step: Step) -> None:
        for crossings in step.crossings:
            for kind, view in enumerate((crossings.data, crossings.acks)):
                self._take(view, kind)

    def _take(self, view: View, kind: int) -> None:
        if not len(view):
            return
        delay_ns = view["second_ns"] - view["first_ns"]
        lanes = view.directions * 2 + kind
        self._least.add(lanes, np.minimum.reduceat(delay_ns, view.starts))
        self._most.add(lanes, np.maximum.reduceat(delay_ns, view.starts))
        # A step of a clock or a wrong offset may make delays negative.
        self._delays.add(view.direction * 2 + kind, np.maximum(delay_ns, 0))

    @override
    def of_direction(self, direction: int) -> Values:
        found: dict[Definition, float | str] = {}
        for number, definitions in enumerate((_OF_DATA, _OF_ACKS)):
            lane = direction * 2 + number
            least = self._least.value_of(lane)
            if least == _NEVER:
                found |= dict.fromkeys(definitions, NO_PACKETS)
                continue
            bins = self._delays.bins(lane)
            most = self._most.value_of(lane)
            median, p95 = (max(bins.quantile(q) or 0, least) for q in (0.5, 0.95))
            queueing = (max(delay - max(least, 0), 0) for delay in (median, p95))
            delays = (least, median, p95, most, *queueing)
            found |= dict(zip(definitions, delays, strict=True))
        return found
