"""Many flows of DCTCP that fill one marking queue with their least windows.

Linux's DCTCP never has a window below two segments (`dctcp_ssthresh`). If windows of two keep a
queue above its threshold, each packet is marked, so that each window stays at two. A flow's round
trip is the wait q in the shared queue, which all have, and the rest of its path, r_i. It sends
2 / (q + r_i) segments a second, and q follows from the time S in which the queue sends a segment:

    sum of 2 / (q + r_i) = 1 / S

In another marking queue on the path packets wait about as long as its threshold: DCTCP keeps a
queue there (Alizadeh et al. 2010). The flows that pass that queue alone share the rest of its
rate. Receivers acknowledge at once: a segment whose ACK is delayed is not in the path.
"""

from collections.abc import Sequence

from twoway.contract.network import Connection
from twoway.theory.network import Setup

NAME = "least_windows"
_LEAST_WINDOW = 2
_HALVINGS = 100


def predict(setup: Setup) -> dict[str, float]:
    """Predict throughputs at the queue that least windows fill, and the mean of the other flows.

    Raises: ValueError with a sentence if a flow is not of DCTCP, if not exactly one queue is filled
        so, or if the other flows do not share one queue.
    """
    if wrong := [c.name for c in setup.connections if c.congestion != "dctcp"]:
        raise ValueError(f"is about DCTCP alone, not {', '.join(wrong)}")
    by_queue: dict[str, list[Connection]] = {}
    for each in setup.connections:
        by_queue.setdefault(each.direction, []).append(each)
    filled = [name for name in by_queue if _is_filled(setup, name, by_queue[name])]
    if len(filled) != 1 or len(by_queue) != 2:
        raise ValueError(f"one of two queues must be filled by least windows, got {len(filled)}")
    (shared,) = filled
    (other,) = by_queue.keys() - {shared}
    found = {
        f"throughput.{each.name}": _LEAST_WINDOW * _segment_mbit(setup, shared) / trip_s
        for each, trip_s in zip(
            by_queue[shared], _trips_s(setup, shared, by_queue[shared]), strict=True
        )
    }
    link = setup.links[other]
    left = link.rate_bit / 1e6 - sum(
        found[f"throughput.{each.name}"] for each in by_queue[shared] if other in each.directions
    )
    found["throughput_sum"] = sum(found.values()) + left
    mean = left / len(by_queue[other])
    return found | {f"throughput.{each.name}": mean for each in by_queue[other]}


def _segment_mbit(setup: Setup, name: str) -> float:
    """Return the size of a full segment on a link, Mbit."""
    link = setup.links[name]
    return link.data_s * link.rate_bit / 1e6


def _rest_s(setup: Setup, shared: str, each: Connection) -> float:
    """Compute a flow's round trip without its wait in the shared queue, s."""
    there = [setup.links[name] for name in each.directions]
    back = [setup.links[name] for name in each.ack_directions]
    delay_ns = there[-1].delay_ns + back[-1].delay_ns
    waits_s = sum(setup.links[name].mark_above_s for name in each.directions if name != shared)
    return sum(x.data_s for x in there) + sum(x.ack_s for x in back) + delay_ns / 1e9 + waits_s


def _wait_s(setup: Setup, shared: str, flows: Sequence[Connection]) -> float:
    """Compute the wait in a queue that least windows fill, s; negative if they do not fill it."""
    service_s = setup.links[shared].data_s
    rests_s = [_rest_s(setup, shared, each) for each in flows]
    low_s, high_s = -min(rests_s), _LEAST_WINDOW * len(flows) * service_s
    for _ in range(_HALVINGS):
        middle_s = (low_s + high_s) / 2
        sent = sum(_LEAST_WINDOW / max(middle_s + rest_s, 1e-12) for rest_s in rests_s)
        low_s, high_s = (middle_s, high_s) if sent > 1 / service_s else (low_s, middle_s)
    return low_s


def _trips_s(setup: Setup, shared: str, flows: Sequence[Connection]) -> list[float]:
    wait_s = _wait_s(setup, shared, flows)
    return [wait_s + _rest_s(setup, shared, each) for each in flows]


def _is_filled(setup: Setup, name: str, flows: Sequence[Connection]) -> bool:
    """Tell whether least windows keep a queue above the threshold at which it marks."""
    threshold_s = setup.links[name].mark_above_s
    return threshold_s > 0 and _wait_s(setup, name, flows) > threshold_s
