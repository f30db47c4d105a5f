"""Sum up a whole direction in a fixed number of intervals."""

import numpy as np

from capture_analysis.columns import BoolArray, IntArray, Packets
from capture_analysis.pictures.direction import ACK_KINDS, DATA_KINDS
from capture_analysis.pictures.figure import FloatArray, Line
from capture_analysis.tracking import Tracked

# More intervals than a page has columns of pixels.
OVERVIEW_BINS = 1500
# Number of intervals over which rates are averaged.
RATE_BINS = 150
# A silence is long if it lasts at least this share of the whole time; what comes before is little
# if it is below this share of the payload, or of the packets.
SILENCE, LITTLE = 0.1, 0.01
_LARGEST = np.iinfo(np.int64).max


class Overview:
    """Extremes and sums of a direction's packets, in equal intervals.

    Args:
        half: the half that sends the data.
        first_ns: time of the direction's first data; ACKs before it count as of that time.
        last_ns: time of the direction's last packet.
    """

    def __init__(self, half: int, first_ns: int, last_ns: int) -> None:
        self.half, self.first_ns = half, first_ns
        self.bin_ns = max(-(-(last_ns - first_ns + 1) // OVERVIEW_BINS), 1)
        self._lowest = {name: np.full(OVERVIEW_BINS, _LARGEST) for name in ("seq", "flight", "rtt")}
        self._highest = {name: np.full(OVERVIEW_BINS, -1) for name in self._lowest}
        self.new_bytes = np.zeros(OVERVIEW_BINS, dtype=np.int64)
        self.frame_bytes = np.zeros(OVERVIEW_BINS, dtype=np.int64)

    def add(self, packets: Packets, tracked: Tracked) -> None:
        """Take the next packets of the connection, int64."""
        bins = np.clip((packets.time_ns - self.first_ns) // self.bin_ns, 0, OVERVIEW_BINS - 1)
        mine = packets.half == self.half
        data = mine & np.isin(tracked.kind, DATA_KINDS)
        acks = ~mine & np.isin(tracked.kind, ACK_KINDS)
        end = tracked.seq_bytes + packets.payload_bytes
        self._extend("seq", bins, data, tracked.seq_bytes, end)
        flight = tracked.in_flight_bytes
        self._extend("flight", bins, data | acks, flight, flight)
        self._extend("rtt", bins, ~mine & (tracked.rtt_ns >= 0), tracked.rtt_ns, tracked.rtt_ns)
        np.add.at(self.new_bytes, bins[data], tracked.new_bytes[data])
        np.add.at(self.frame_bytes, bins[data], packets.frame_bytes[data])

    def _extend(
        self, name: str, bins: IntArray, rows: BoolArray, low: IntArray, high: IntArray
    ) -> None:
        np.minimum.at(self._lowest[name], bins[rows], low[rows])
        np.maximum.at(self._highest[name], bins[rows], high[rows])

    def begins_ns(self) -> int:
        """Return the time from which on data flow, ns.

        A little data before a long silence, such as a greeting, does not count.
        """
        busy = np.flatnonzero(self.new_bytes)
        before = np.cumsum(self.new_bytes)[busy[:-1]]
        silent = np.diff(busy) > SILENCE * OVERVIEW_BINS
        ends = np.flatnonzero(silent & (before < LITTLE * self.new_bytes.sum()))
        return self.first_ns + (self.bin_ns * int(busy[ends[-1] + 1]) if len(ends) else 0)

    def seconds(self, origin_ns: int) -> FloatArray:
        """Return the intervals' middles, s from origin; (OVERVIEW_BINS,)."""
        middle = self.first_ns + self.bin_ns * np.arange(OVERVIEW_BINS) + self.bin_ns // 2
        return np.asarray((middle - origin_ns) / 1e9)

    def line_of_rest(self, name: str, origin_ns: int, unit: int, drawn_ns: tuple[int, int]) -> Line:
        """Make a line of the extremes in intervals that are not drawn packet by packet.

        Args:
            name: "seq", "flight" or "rtt".
            origin_ns: the time that figures call 0.
            unit: the divisor of the values.
            drawn_ns: time of the first and the last packet drawn singly.
        """
        low, high = self._lowest[name], self._highest[name]
        start_ns = self.first_ns + self.bin_ns * np.arange(OVERVIEW_BINS)
        drawn = (start_ns + self.bin_ns > drawn_ns[0]) & (start_ns <= drawn_ns[1])
        y = np.stack((low, high), axis=1) / unit
        y[(low > high) | drawn] = np.nan
        return Line("the rest", np.repeat(self.seconds(origin_ns), 2), y.ravel(), "line", 7)

    def rate_mbit(self, total_bytes: IntArray) -> FloatArray:
        """Average a rate, Mbit/s, over larger intervals; (RATE_BINS,)."""
        together = OVERVIEW_BINS // RATE_BINS
        bits = 8 * total_bytes.reshape(RATE_BINS, together).sum(axis=1)
        return np.asarray(np.round(bits / (self.bin_ns * together) * 1e3, 6))
