"""The page of an interval of a run, packet by packet."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from capture_analysis.pictures.figure import OVER_TIME, Figure, Line, Style

from twoway.report.pages import write

TITLES = (
    "time, s",
    "where",
    "flow",
    "what",
    "why",
    "cwnd",
    "in flight",
    "ssthresh",
    "state",
    "queue",
)
# A name, a function that finds the quantity in a moment, and how it is drawn.
_Quantity = tuple[str, Callable[[Any], Any], Style]


def cells(moment: Any) -> tuple[str, ...]:
    """Write a moment (sweeps/trace.py) as a row under TITLES."""
    of = moment.socket or {}
    numbers = (of.get(name) for name in ("cwnd", "in_flight", "ssthresh", "state"))
    return (
        f"{moment.time_s:.6f}",
        moment.where,
        moment.flow,
        moment.what,
        moment.why,
        *("" if each is None else str(each) for each in (*numbers, moment.queue)),
    )


def write_trace_page(trace: Any, path: Path) -> None:
    """Write the page of an interval (sweeps/trace.py), whole or not at all."""
    rows = list(map(cells, trace.moments))
    figures = [each for each in _figures(trace.moments) if each.lines]
    write(path, "trace.html.j2", figures, trace=trace, titles=TITLES, rows=rows)


def _figures(moments: Sequence[Any]) -> Iterator[Figure]:
    yield Figure(
        "packets",
        "Packets",
        "Each segment when its sender sends it, at the number of its first byte after the "
        "flow's first number here; R: not for the first time; each that is dropped; and the "
        "number of each ACK when it arrives.",
        OVER_TIME,
        "number of a byte",
        [*_lines(moments, _PACKETS, from_first=True)],
    )
    yield Figure(
        "windows",
        "Windows",
        "The congestion window, its threshold, and the segments in flight, as the kernel has them "
        "at each segment and at each ACK.",
        OVER_TIME,
        "packets",
        [*_lines(moments, _WINDOWS)],
    )
    yield Figure(
        "queue-lengths",
        "Queues",
        "Packets in each queue after each that comes and goes.",
        OVER_TIME,
        "packets",
        [*_lines(moments, (("", lambda m: m.queue, "steps"),), "where")],
    )


def _field_of_socket(name: str) -> Any:
    return lambda moment: (moment.socket or {}).get(name)


_PACKETS: tuple[_Quantity, ...] = (
    ("sent", lambda m: None if m.again or m.kind != "send" else m.seq, "points"),
    ("sent again", lambda m: m.seq if m.again else None, "letters"),
    ("dropped", lambda m: m.seq if m.kind == "drop" else None, "crosses"),
    ("acknowledged", lambda m: m.ack if m.kind == "ack" and m.socket else None, "steps"),
)
_WINDOWS: tuple[_Quantity, ...] = (
    ("window", _field_of_socket("cwnd"), "steps"),
    ("in flight", _field_of_socket("in_flight"), "points"),
    ("threshold", _field_of_socket("ssthresh"), "dashed"),
)


def _lines(
    moments: Sequence[Any],
    wanted: Sequence[_Quantity],
    by: str = "flow",
    *,
    from_first: bool = False,
) -> Iterator[Line]:
    """Draw each quantity that a moment has, of each flow or queue apart."""
    colour = 0
    for name in dict.fromkeys(getattr(each, by) for each in moments):
        mine = [each for each in moments if getattr(each, by) == name]
        first = min((each.seq for each in mine if each.seq), default=0) if from_first else 0
        for what, value, style in wanted:
            points = [(each.time_s, y) for each in mine if (y := value(each)) is not None]
            if points:
                x, y = np.array(points, dtype=float).T
                yield Line(f"{name} {what}".strip(), x, y - first, style, colour, letter="R")
                colour += 1
