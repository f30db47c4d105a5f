"""Say what limits a transfer: one cause, its share of the time, and a sentence.

Shares are over the time in which the connection sends: pauses of the application (goodput) are
named apart. A link is full if the connection alone takes nearly all of a rate that is measured or
given; otherwise the cause that data waited for longest limits (transfer_limits).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

# A link is full with this share of its rate.
FULL = 0.9
CANNOT_TELL = "cannot tell"
LINK = "link"
# Each cause and the words for it, by the metric of its share.
CAUSES = {
    "limited_application": ("application", "its application has nothing to send"),
    "limited_recovery": ("recovery", "losses are being repaired"),
    "limited_receive_window": ("receive window", "the receiver's window is full"),
    "limited_congestion_window": ("congestion window", "its congestion window is full"),
    "limited_ack_compression": ("ACK compression", "ACKs are held on their way, and then bunched"),
    "limited_send_buffer": ("send buffer", "its send buffer is empty"),
}
# Numbers in sentences have this number of significant digits.
_DIGITS = 3

Numbers = Mapping[str, float | str | None]


@dataclass(frozen=True)
class Limit:
    """The limit of a direction.

    Attributes:
        cause: LINK, a cause of CAUSES, or CANNOT_TELL.
        share: of the link's rate, or of the time in which the connection sends; None if unknown.
        sentence: the same with numbers, or why it cannot be told.
    """

    cause: str
    share: float | None
    sentence: str


def limit_of(values: Numbers) -> Limit:
    """Find what limits a direction.

    Args:
        values: the direction's metrics by name; text, or None, where one is undefined.
    """
    return _full_link(values) or _longest_wait(values)


def queueing(values: Numbers) -> str:
    """Say what the queue adds to the round trip; "" if that is nothing."""
    shortest, median = _number(values, "rtt_min"), _number(values, "rtt_median")
    if shortest is None or median is None or not 0 < 1.2 * shortest < median:
        return ""
    return (
        f"The queue adds {_short(median - shortest)} ms: the round trip is {_short(shortest)} ms "
        f"at its least, {_short(median)} at the median."
    )


def _full_link(values: Numbers) -> Limit | None:
    rate = _number(values, "bottleneck_rate")
    shares = [_number(values, name) or 0.0 for name in ("efficiency", "link_share")]
    if rate is None or max(shares) < FULL:
        return None
    text = f"The link is full: {_percent(max(shares))} of {_short(rate)} Mbit/s"
    return Limit(LINK, max(shares), f"{text}{_paused(values)}.")


def _longest_wait(values: Numbers) -> Limit:
    shares = dict(_waits(values))
    longest = max(shares, key=lambda name: shares[name], default="")
    # What an undefined cause has may be more.
    if not longest or shares[longest] < 1 - sum(shares.values()):
        reasons = (values.get(name) for name in CAUSES)
        why = next((each for each in reasons if isinstance(each, str)), "it was not measured")
        return Limit(CANNOT_TELL, None, f"It cannot be told: {why}.{_least(values)}")
    cause, what = CAUSES[longest]
    text = f"For {_percent(shares[longest])} of the time in which it sends, {what}"
    return Limit(cause, shares[longest], f"{text}{_paused(values)}.{_least(values)}")


def _waits(values: Numbers) -> Iterator[tuple[str, float]]:
    """Yield the share of each known cause, pauses left out."""
    pauses, active = (_number(values, name) or 0.0 for name in ("pauses", "data_time"))
    whole = pauses + active
    for name in CAUSES:
        share = _number(values, name)
        if share is not None and active:
            waited = share * whole - (pauses if name == "limited_application" else 0.0)
            yield name, min(max(waited / active, 0.0), 1.0)


def _paused(values: Numbers) -> str:
    pauses = _number(values, "pauses")
    return f" (it was idle for {_short(pauses)} s beside)" if pauses else ""


def _least(values: Numbers) -> str:
    """Say what it delivered, where no rate is known."""
    goodput, rate = _number(values, "goodput"), _number(values, "bottleneck_rate")
    if goodput is None or rate is not None:
        return ""
    time = _short(_number(values, "data_time") or 0.0)
    return f" It delivered {_short(goodput)} Mbit/s for {time} s: its link carries at least that."


def _number(values: Numbers, name: str) -> float | None:
    found = values.get(name)
    return None if found is None or isinstance(found, str) else float(found)


def _short(value: float) -> str:
    return f"{float(f'{value:.{_DIGITS}g}'):g}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
