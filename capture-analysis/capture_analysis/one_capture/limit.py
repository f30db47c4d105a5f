"""The limit of a transfer: one cause, its share of the time, and a sentence.

Shares are over the time in which the connection sends: the metrics' shares divide all of its time,
and pauses of the application, one part of it, are named apart. A link is full if the connections of
the capture take nearly all of a measured or given rate. Otherwise a queue on the path limits, if it
stands nearly always while data waits for ACKs (standing_queue): a link is full on the path of the
data or of its ACKs. Otherwise the cause with the longest waits limits (transfer_limits; beyond the
sender limits_from_afar). A cause that looks like a full link is named only if the capture would
show a full link.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from capture_analysis.facts.facts import LAN_NS
from capture_analysis.one_capture.evidence import ONE_TIME
from capture_analysis.one_capture.trouble import Numbers, short, troubles

# A link is full at this share of its rate.
FULL = 0.9
# A capture that lacks more of the data than this shows no cause.
LACKS = 0.25
CANNOT_TELL = "cannot tell"
# A cause that holds for more of the time than this is the longest, whatever else is unknown.
MOST_OF_IT = 0.5
# A queue that stands for less of the time than this may be an accident.
SOMETIMES = 0.05
# Segments in flight; a receiver that delays ACKs answers to the second one at once.
SEVERAL = 2
LAN_MS = LAN_NS / 1e6
# A peak of delivery below this share of the goodput says nothing of the link.
SHORT = 0.5
# A median round trip above this multiple of the shortest has a queue.
QUEUED = 1.2
# Round trips that correlate less than this with the flight are longer for small flights.
SHRINKS = -0.3
# Round trips that correlate less than this with the flight do not grow with it.
GROWS = 0.2
LINK, QUEUE = "link", "queue"
# Each cause and the words for it, by the metric of its share.
CAUSES = {
    "limited_application": ("application", "its application has nothing to send"),
    "limited_recovery": ("recovery", "losses are being repaired"),
    "limited_receive_window": ("receive window", "the receiver's window is full"),
    "limited_congestion_window": ("congestion window", "its congestion window is full"),
    "limited_ack_compression": ("ACK compression", "ACKs are held on their path, and then bunched"),
    "limited_send_buffer": ("send buffer", "its send buffer is empty"),
    "limited_nagle": ("Nagle", "its small data wait for ACKs (Nagle's algorithm)"),
    "limited_zero_window": ("zero window", "the receiver's window is shut (zero window)"),
}
# Causes, words and metrics if the sender is far from the tap.
CAUSES_AFAR = {
    "afar_recovery": CAUSES["limited_recovery"],
    "afar_receive_window": CAUSES["limited_receive_window"],
    "afar_zero_window": CAUSES["limited_zero_window"],
    "afar_application": CAUSES["limited_application"],
    "afar_nagle": CAUSES["limited_nagle"],
    "afar_sender": (
        "sender",
        "its congestion window is full or its application has nothing to send",
    ),
}
# Causes whose waits end with ACKs, which a queue on the path delays.
_WAITS_FOR_ACKS = {
    *("recovery", "receive window", "congestion window", "ACK compression", "send buffer")
}
_PAUSES = "limited_pause", "afar_pause"
# Causes that look like a full link if neither its rate nor its queue is seen.
_HIDES_A_QUEUE = {"congestion window", "sender"}
AT_ONCE = "its data came at one time"
_NO_RATE_SEEN = "the link's rate cannot be seen, and it may be full"
_MERGED = "an offload merged segments, which hides the link's rate, and it may be full"
_NO_QUEUE_SEEN = "neither the link's rate nor a queue can be seen, and it may be full"

Causes = Mapping[str, tuple[str, str]]


@dataclass(frozen=True)
class Limit:
    """The limit of a direction.

    Attributes:
        cause: LINK, QUEUE, a cause of CAUSES or CAUSES_AFAR, or CANNOT_TELL.
        share: of the link's rate, or of the time in which the connection sends; None if unknown.
        sentence: the same with numbers, or the reason why it cannot be told.
    """

    cause: str
    share: float | None
    sentence: str


def limit_of(values: Numbers) -> Limit:
    """Find the limit of a direction.

    Args:
        values: the direction's metrics by name; a text, or None, for an undefined one.
    """
    afar = any(_number(values, name) is not None for name in CAUSES_AFAR)
    waits = CAUSES_AFAR if afar else CAUSES
    found = (
        _lacks_data(values)
        or _idle(values)
        or _full_link(values)
        or _standing_queue(values, waits)
        or _hidden_link(values, waits)
        or _longest_wait(values, waits)
    )
    return replace(found, sentence=" ".join((found.sentence, *troubles(values))))


def queueing(values: Numbers) -> str:
    """Describe the delay that is added to the round trip; "" if there is none.

    A receiver that shuts its window delays its ACKs, too. A queue adds it only if several segments
    are in flight, and the round trip grows with them or a queue stands most of the time. With less
    in flight the receiver delays ACKs, or sends them with its answers.
    """
    shortest, median = _number(values, "rtt_min"), _number(values, "rtt_median")
    if shortest is None or median is None or not 0 < QUEUED * shortest < median:
        return ""
    if _number(values, "zero_windows"):
        return ""
    flight = _number(values, "in_flight_segments") or 0.0
    trips = f"the round trip is at least {short(shortest)} ms, in the median {short(median)} ms."
    if flight < SEVERAL or _receiver_delays(values):
        return f"ACKs come {short(median - shortest)} ms late, or with answers: {trips}"
    if max(_number(values, "rtt_growth") or 0.0, _stands(values)) < MOST_OF_IT:
        return ""
    return f"The queue adds {short(median - shortest)} ms: {trips}"


def _lacks_data(values: Numbers) -> Limit | None:
    """Tell whether the capture lacks too much of the data that were acknowledged.

    Data that are captured behind their ACK, by several threads, are late and not missing.
    """
    names = "unseen", "late_segments", "segments"
    unseen, late, sent = (_number(values, name) or 0.0 for name in names)
    if unseen - late / max(sent, 1) < LACKS:
        return None
    text = f"It cannot be told: the capture lacks {_percent(unseen)} of the data."
    return Limit(CANNOT_TELL, None, text)


def _idle(values: Numbers) -> Limit | None:
    """Tell whether the application paused nearly all the time."""
    share, pauses = _paused_share(values), _number(values, "pauses")
    if share < FULL or not pauses:
        return None
    text = "its application has nothing to send: it was idle for"
    return Limit(
        "application", share, f"For {_percent(share)} of the time, {text} {short(pauses)} s."
    )


def _paused_share(values: Numbers) -> float:
    return next((found for name in _PAUSES if (found := _number(values, name)) is not None), 0.0)


def _full_link(values: Numbers) -> Limit | None:
    rate = _number(values, "bottleneck_rate")
    shares = [_number(values, name) or 0.0 for name in ("efficiency", "link_share", "link_use")]
    share = max(shares)
    if not share and _fills_a_queue(values):
        rate, share = rate or _number(values, "rate_reached"), _steady(values)
    if rate is None or share < FULL or _application_paces(values):
        return None
    # Data that the link drops behind the tap were sent, too.
    share = min(share, 1.0)
    text = f"The link is full: {_percent(share)} of {short(rate)} Mbit/s"
    return Limit(LINK, share, f"{text}{_paused(values)}.")


def _steady(values: Numbers) -> float:
    """Return the share of a rate that was measured, or guessed and reached; 0 without one."""
    rate = _number(values, "bottleneck_rate") or _number(values, "rate_reached")
    mean = _number(values, "throughput")
    return min(mean / rate, 1.0) if rate and mean else 0.0


def _fills_a_queue(values: Numbers) -> bool:
    """Tell whether a transfer fills a queue now and then, so that its even pace is the link's.

    Near the sender round trips grow with the flight; from afar the sender always has more to send.
    """
    grows, holds = (_number(values, name) or 0.0 for name in ("rtt_growth", "afar_sender"))
    return max(grows, holds) > MOST_OF_IT and _stands(values) > SOMETIMES


def _application_paces(values: Numbers) -> bool:
    """Tell whether an even pace is the application's: it waits for that, and no queue forms."""
    names = "limited_application", "afar_application"
    waits = max(_number(values, name) or 0.0 for name in names)
    return waits > MOST_OF_IT and _number(values, "standing_queue") == 0


def _stands(values: Numbers) -> float:
    return _number(values, "standing_queue") or 0.0


def _receiver_delays(values: Numbers) -> bool:
    """Tell whether the receiver, and no queue, may delay the ACKs: its window is always full.

    Then round trips do not grow with the flight, and no pace is seen that a link would set.
    """
    full, grows = (_number(values, n) or 0.0 for n in ("limited_receive_window", "rtt_growth"))
    return full > FULL and grows < GROWS and not _steady(values)


def _standing_queue(values: Numbers, causes: Causes) -> Limit | None:
    """Tell whether data waits for a queue that is never empty, whoever fills it."""
    stands = _number(values, "standing_queue")
    cause = _longest_wait(values, causes).cause
    # A queue that empties after a loss, and yet the link is busy, stands for less of the time.
    busy = _steady(values) >= FULL and cause != "application"
    least = MOST_OF_IT if busy else FULL
    # Seen from afar, a wait for a queue looks like an idle sender.
    if stands is None or stands < least or (causes is CAUSES and cause not in _WAITS_FOR_ACKS):
        return None
    # A receiver that answers late delays small flights most.
    if (_number(values, "rtt_growth") or 0.0) < SHRINKS or _receiver_delays(values):
        return None
    delayed = "data" if causes is CAUSES_AFAR else "data or of their ACKs"
    text = f"A queue stood for {_percent(stands)} of the time, on the way of the {delayed}"
    return Limit(QUEUE, stands, f"{text}{_paused(values)}.{_least(values)}")


def _hidden_link(values: Numbers, causes: Causes) -> Limit | None:
    """Tell whether merged segments hide the rate of a link that may be full, as delays suggest."""
    shortest, median = (_number(values, name) or 0.0 for name in ("rtt_min", "rtt_median"))
    known = _number(values, "link_use") is not None or not _number(values, "segments_merged")
    if known or not 0 < QUEUED * shortest < median:
        return None
    if _longest_wait(values, causes).cause not in _HIDES_A_QUEUE:
        return None
    return Limit(CANNOT_TELL, None, f"It cannot be told: {_MERGED}.{_least(values)}")


def _longest_wait(values: Numbers, causes: Causes) -> Limit:
    shares = dict(_waits(values, causes))
    longest = max(shares, key=lambda name: shares[name], default="")
    # The share of an undefined cause may be larger.
    if not longest or shares[longest] < 1 - sum(shares.values()):
        shut = _number(values, "zero_window_share") or 0.0
        if shut > MOST_OF_IT:
            cause, what = CAUSES["limited_zero_window"]
            return Limit(cause, shut, f"For {_percent(shut)} of the time, {what}.")
        why = _reason(values, causes)
        return Limit(CANNOT_TELL, None, f"It cannot be told: {why}.{_least(values)}")
    cause, what = causes[longest]
    if cause in _HIDES_A_QUEUE and not _shows_full_link(values):
        adds = queueing(values).startswith("The queue")
        why = _NO_RATE_SEEN if adds else _NO_QUEUE_SEEN
        return Limit(CANNOT_TELL, None, f"It cannot be told: {why}.{_least(values)}")
    text = f"For {_percent(shares[longest])} of the time in which it sends, {what}"
    return Limit(cause, shares[longest], f"{text}{_paused(values)}.{_least(values)}")


def _reason(values: Numbers, causes: Causes) -> str:
    reasons = (values.get(name) for name in causes)
    why = next((each for each in reasons if isinstance(each, str)), "it was not measured")
    return AT_ONCE if values.get("data_time") == 0 and why != ONE_TIME else why


def _shows_full_link(values: Numbers) -> bool:
    """Tell whether a full link would show: by its rate, or by the queue.

    On a LAN a queue may be shorter than a tick of time stamps, or before the tap.
    """
    trip = _number(values, "handshake_rtt")
    shown = ("link_use",) if trip is not None and trip < LAN_MS else ("link_use", "standing_queue")
    return any(_number(values, name) is not None for name in shown)


def _waits(values: Numbers, causes: Causes) -> Iterator[tuple[str, float]]:
    """Yield the share of each known cause, pauses left out."""
    paused = _paused_share(values)
    if paused == 1 or not _number(values, "data_time"):
        return
    for name in causes:
        share = _number(values, name)
        if share is not None:
            yield name, share / (1 - paused)


def _paused(values: Numbers) -> str:
    pauses = _number(values, "pauses")
    return f" (besides, it was idle for {short(pauses)} s)" if pauses else ""


def _least(values: Numbers) -> str:
    """Write the delivery, for a link of unknown rate."""
    peak, rate = _number(values, "delivered_peak"), _number(values, "bottleneck_rate")
    # A transfer that is short for the peak's window has a peak far below its goodput.
    if not peak or rate is not None or peak < SHORT * (_number(values, "goodput") or 0.0):
        return ""
    return f" Its link carries at least {short(peak)} Mbit/s, which it delivered."


def _number(values: Numbers, name: str) -> float | None:
    found = values.get(name)
    return None if found is None or isinstance(found, str) else float(found)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
