"""Sentences on what besides its limit troubles a transfer, and on what its receiver shows.

Near the receiver they name segments lost before the tap and sent again, and segments that came out
of order; delayed ACKs and a shut window only from a share of NOTABLE on (receiving). A window that
only shrinks is not named: data that wait for a lost segment shrink it, too.
"""

import math
from collections.abc import Callable, Iterator, Mapping

Numbers = Mapping[str, float | str | None]

# A policer drops often, delays nothing, and lets data pass at a steady rate.
_LOSSES, _STANDING, _STEADY, _DELAYED = 10, 0.1, 0.15, 1.3
# A window that halves at each random loss has 1.5 of share lost times window squared (Mathis et
# al. 1997), CUBIC's up to 3; a policer drops many packets of one window. The least share near the
# sender, and from afar, where the window is not seen.
_DROPS, _LOST, _LOST_AFAR = 6, 0.02, 0.04
# A stall of this length is named, whatever limits the transfer. One of this share of the time is an
# interruption, and no policer.
_STALL_S, _INTERRUPTED = 1.0, 0.2
# A ServerHello that takes as long as this, and as many round trips of the handshake, is late.
_TLS_S, _TRIPS = 0.2, 3
# Of stall_cause, in metrics/stalls.py.
_WAITS = (
    "the sender's application had nothing",
    "the handshake did not end",
    "data were sent again",
    "the receiver's window was 0",
    "the network brought nothing",
)


def short(value: float) -> str:
    """Write a number with three significant digits."""
    return f"{float(f'{value:.3g}'):g}"


def _known(values: Numbers) -> dict[str, float]:
    return {name: float(each) for name, each in values.items() if isinstance(each, int | float)}


def troubles(values: Numbers) -> Iterator[str]:
    """Yield a sentence for each trouble of a direction that its metrics show.

    Args:
        values: the direction's metrics by name; a text, or None, for an undefined one.
    """
    number = _known(values)

    def value(name: str) -> float:
        return number.get(name, math.nan)  # which no comparison takes for evidence

    for holds, sentence in _TROUBLES:
        if holds(value):
            yield sentence(value)


Value = Callable[[str], float]


def _stalled(value: Value) -> str:
    known = value("stall_cause")
    cause = "its cause cannot be told" if math.isnan(known) else _WAITS[int(known)]
    begin = value("stall_begin")
    when = f"{short(begin)} s after its first data" if begin >= 0 else "before its first data"
    return f"It stalled for {short(value('stall_longest'))} s, {when}: {cause}."


def _lost(value: Value) -> float:
    """Count lost segments: overtaken ones, and those sent again without need, were not lost."""
    if value("reordered_segments") >= 0:  # at the receiver
        return value("late_segments") - value("reordered_segments")
    # Each is 0 if it is unknown.
    needless = max(0, value("retransmissions_spurious")), max(0, value("duplicates_told"))
    return value("loss_events") - max(needless)


def _policed(value: Value) -> bool:
    lost = _lost(value) / max(value("segments"), 1)
    drops = lost * value("in_flight_segments") ** 2
    near = lost >= _LOST and drops > _DROPS and value("rtt_p95") < _DELAYED * value("rtt_min")
    afar = value("afar_recovery") >= 0 and lost >= _LOST_AFAR
    steady = abs(value("loss_rate_share") - 1) < _STEADY and value("loss_events") >= _LOSSES
    whole = value("stall_longest") < _INTERRUPTED * value("data_time")
    return steady and whole and (near or afar) and value("standing_queue") < _STANDING


_TROUBLES: tuple[tuple[Callable[[Value], bool], Callable[[Value], str]], ...] = (
    (
        lambda value: value("mtu_black_hole") > 0,
        lambda value: (
            f"Segments of {value('mtu_black_hole'):.0f} bytes never pass, smaller ones do: the path"
            " drops large packets (path MTU black hole)."
        ),
    ),
    (
        _policed,
        lambda value: (
            f"Losses come without a queue, at a steady {short(value('loss_rate'))} Mbit/s, as a"
            " policer makes them."
        ),
    ),
    (
        lambda value: value("nagle_waits") > 1 and value("limited_nagle") > _STANDING,
        lambda value: (
            f"{value('nagle_waits'):.0f} small data waited for ACKs,"
            f" {short(value('nagle_time'))} s in all."
        ),
    ),
    (lambda value: value("stall_longest") >= _STALL_S, _stalled),
    (
        lambda value: value("tls_hello") >= max(_TLS_S, _TRIPS * value("handshake_rtt") / 1e3),
        lambda value: (
            f"TLS: the ServerHello came {short(value('tls_hello'))} s after the ClientHello."
        ),
    ),
    (
        lambda value: value("silly_segments") >= _LOSSES,
        lambda value: (
            f"{value('silly_segments'):.0f} segments were small because the receiver announced less"
            " than a segment (silly windows)."
        ),
    ),
    (
        lambda value: value("idle_death") > 0,
        lambda value: (
            f"After {short(value('idle_death'))} s of silence its data were sent again and never"
            " acknowledged."
        ),
    ),
    (
        lambda value: value("reset_untaken") > 0,
        lambda value: (
            f"Its sender reset the connection and left {value('reset_untaken'):,.0f} bytes of the"
            " other end."
        ),
    ),
)


# Smaller shares are not named: a timer or two at the ends of a transfer reach them.
NOTABLE = 0.01
NOTHING = "nothing"
_NONE = "no segment was lost before the tap or came out of order, and few ACKs were delayed"


def receiver_sentence(values: Numbers) -> str:
    """Say in a sentence what the receiver's side shows; "" if the capture was made elsewhere.

    Args:
        values: the direction's metrics by name; a text, or None, for an undefined one.
    """
    if not _is_seen(values):
        return ""
    said = [sentence for _, sentence in _findings(values)]
    return f"Seen at the receiver: {'; '.join(said) or _NONE}."


def receiver_words(values: Numbers) -> str:
    """Describe the receiver in a table: "lost 12, delayed 40%"; NOTHING, or "-" if not near it."""
    words = [word for word, _ in _findings(values)]
    return (", ".join(words) or NOTHING) if _is_seen(values) else "-"


def _is_seen(values: Numbers) -> bool:
    return "repaired_segments" in _known(values)


def _findings(values: Numbers) -> Iterator[tuple[str, str]]:
    known = _known(values)
    names = "repaired_segments", "reordered_segments", "acks_delayed", "window_shut"
    lost, overtaken, delayed, shut = (known.get(name, 0.0) for name in names)
    reads = known.get("application_reads", 0.0)
    if lost:
        yield f"lost {lost:.0f}", f"{_count(lost)} lost before the tap and sent again"
    if overtaken:
        yield f"reordered {overtaken:.0f}", f"{_count(overtaken)} overtaken by later ones"
    if delayed >= NOTABLE:
        yield f"delayed {delayed:.0%}", f"{delayed:.1%} of the ACKs were delayed by 10 ms or more"
    if shut >= NOTABLE:
        opened = f", and {reads:,.0f} reads of its application opened it" if reads else ""
        yield f"shut {shut:.0%}", f"its window was shut for {shut:.1%} of the time{opened}"


def _count(segments: float) -> str:
    return f"{segments:,.0f} {'segment was' if segments == 1 else 'segments were'}"
