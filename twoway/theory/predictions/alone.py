"""One flow alone behind a drop-tail queue: its round trip, and the link's idle time.

An empty path takes T, including a segment's transmission S, and holds a pipe of T / S segments. A
full buffer of B packets, with the one in transmission, makes the round trip

    T + (B - 1) S

which is the flow's longest.

The link idles while the window grows to the pipe, from the initial window of 10: it doubles in each
round trip with CUBIC and BBR, and grows by at least one with Vegas. CUBIC keeps 0.7 of the pipe and
the buffer after a loss: more than the pipe, if B S is at least 0.43 T. BBR sends four packets in
each 10 s for 200 ms and a round trip, and has filled its pipe a round trip later (Cardwell et al.
2016).

Vegas keeps between 2 and 4 packets queued, alpha and beta of Linux: about 3.
"""

import math

from twoway.contract.network import Connection
from twoway.theory.network import Setup

NAME = "alone"
_INITIAL_WINDOW, _CUBIC_KEPT = 10, 0.7
_PROBE_EACH_S, _PROBE_S = 10, 0.2
_VEGAS_QUEUED = 3


def predict(setup: Setup) -> dict[str, float]:
    """Bound round trip and utilisation of the one connection, and predict Vegas's round trip.

    Raises: ValueError with a sentence if the connection is not alone, uses another control, or has
        a buffer that CUBIC runs empty.
    """
    if len(setup.connections) != 1:
        raise ValueError(f"is about one connection, not {len(setup.connections)}")
    (flow,) = setup.connections
    there, back = setup.links[flow.direction], setup.links[flow.ack_direction]
    trip_s = there.data_s + back.ack_s + (there.delay_ns + back.delay_ns) / 1e9
    queued_s = (there.buffer_packets - 1) * there.data_s
    if flow.congestion == "cubic" and _CUBIC_KEPT * (trip_s + queued_s) < trip_s:
        raise ValueError(f"{flow.name} runs its queue empty after each loss")
    idle_s = _idle_s(flow, trip_s, trip_s / there.data_s, setup.duration_s)
    found = {
        f"rtt_p95.{flow.name}": 1e3 * (trip_s + queued_s),
        f"utilisation.{flow.direction}": 1 - idle_s / setup.duration_s,
    }
    if flow.congestion == "vegas":
        found[f"rtt_median.{flow.name}"] = 1e3 * (trip_s + _VEGAS_QUEUED * there.data_s)
    return found


def _idle_s(flow: Connection, trip_s: float, pipe: float, duration_s: float) -> float:
    """Bound the time in which the link idles, s."""
    doubling_s = trip_s * max(1, math.ceil(math.log2(pipe / _INITIAL_WINDOW)) + 1)
    if flow.congestion == "cubic":
        return doubling_s
    if flow.congestion == "bbr":
        probes = duration_s // _PROBE_EACH_S
        return doubling_s + probes * (_PROBE_S + 2 * trip_s)
    if flow.congestion == "vegas":
        return trip_s * max(1.0, pipe)
    raise ValueError(f"{flow.name} is none of CUBIC, BBR and Vegas: {flow.congestion}")
