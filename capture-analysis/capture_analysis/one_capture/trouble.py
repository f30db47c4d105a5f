"""Sentences on what besides its limit troubles a transfer, by evidence from several metrics."""

from collections.abc import Callable, Iterator, Mapping

Numbers = Mapping[str, float | str | None]

# A policer drops often, delays nothing, and lets data pass at a steady rate.
_LOSSES, _STANDING, _STEADY = 10, 0.1, 0.15
# A stall of this length is named, whatever the transfer's limit.
_STALL_S = 1.0
# Of stall_cause, in metrics/stalls.py.
_WAITS = (
    "the sender's application had nothing",
    "the handshake did not end",
    "data were sent again",
    "the receiver's window was 0",
    "the network brought nothing",
)


def troubles(values: Numbers) -> Iterator[str]:
    """Yield a sentence for each trouble of a direction that its metrics show.

    Args:
        values: the direction's metrics by name; a text, or None, for an undefined one.
    """
    number = {name: float(each) for name, each in values.items() if isinstance(each, int | float)}

    def value(name: str) -> float:
        return number.get(name, 0.0)

    for holds, sentence in _TROUBLES:
        if holds(value):
            yield sentence(value)


Value = Callable[[str], float]


def _stalled(value: Value) -> str:
    cause = _WAITS[int(value("stall_cause"))]
    begin = value("stall_begin")
    when = f"{begin:.3g} s after its first data" if begin >= 0 else "before its first data"
    return f"It stalled for {value('stall_longest'):.3g} s, {when}: {cause}."


_TROUBLES: tuple[tuple[Callable[[Value], bool], Callable[[Value], str]], ...] = (
    (
        lambda value: value("mtu_black_hole") > 0,
        lambda value: (
            f"Segments of {value('mtu_black_hole'):.0f} bytes never pass, smaller ones do: the path"
            " drops large packets (path MTU black hole)."
        ),
    ),
    (
        lambda value: (
            value("loss_events") >= _LOSSES
            and value("standing_queue") < _STANDING
            and value("rtt_growth") < _STANDING
            and abs(value("loss_rate_share") - 1) < _STEADY
        ),
        lambda value: (
            f"Losses come without a queue, at a steady {value('loss_rate'):.3g} Mbit/s, as a"
            " policer makes them."
        ),
    ),
    (
        lambda value: value("nagle_waits") > 1 and value("limited_nagle") > _STANDING,
        lambda value: (
            f"{value('nagle_waits'):.0f} small data waited for ACKs, {value('nagle_time'):.3g} s in"
            " all."
        ),
    ),
    (lambda value: value("stall_longest") >= _STALL_S, _stalled),
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
            f"After {value('idle_death'):.3g} s of silence its data were sent again and never"
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
