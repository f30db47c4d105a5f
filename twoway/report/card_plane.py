"""Throughput over delay of all controls in a situation, as SVG: up and left is better."""

from collections.abc import Sequence
from itertools import groupby

from capture_analysis.pages.page_template import number
from capture_analysis.pictures.figure import COLOURS
from markupsafe import Markup, escape

from twoway.report.card import Card, Spot

_WIDTH, _HEIGHT = 280, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 10, 270, 14, 160
_MIDDLE = (_LEFT + _RIGHT) / 2
# The space of a label, pixels.
_WORD, _LINE = 60, 11


def planes(card: Card) -> list[tuple[str, Markup]]:
    """Draw a plane for each point; return its title with it."""
    suite = f"{card.suite}-"
    return [
        (f"{row.removeprefix(suite)} {at}", _plane(list(spots), card.columns))
        for (row, at), spots in groupby(card.spots, lambda spot: (spot.row, spot.at))
    ]


def _plane(spots: Sequence[Spot], columns: Sequence[str]) -> Markup:
    most = max(spot.goodput for spot in spots) or 1
    longest = max(spot.rtt_p95 for spot in spots) or 1
    label = "; ".join(
        f"{each.control} {number(each.goodput)} Mbit/s, {number(each.rtt_p95)} ms" for each in spots
    )
    shapes = [
        f'<path d="M{_LEFT} {_TOP}V{_BOTTOM}H{_RIGHT}" class="axes"/>',
        f'<text x="{_LEFT + 4}" y="{_TOP - 4}">{number(most)} Mbit/s</text>',
        f'<text x="{_RIGHT}" y="{_BOTTOM + 14}" class="end">{number(longest)} ms</text>',
        f'<text x="{_LEFT}" y="{_BOTTOM + 14}">0</text>',
    ]
    labels: list[tuple[float, float]] = []
    # Labels give way towards the middle, so those at the top and at the bottom are placed first.
    for spot in sorted(spots, key=lambda each: -abs(each.goodput / most - 0.5)):
        colour = COLOURS[columns.index(spot.control) % len(COLOURS)]
        ink = "currentColor" if colour == "#000000" else colour
        x = _LEFT + (_RIGHT - _LEFT) * spot.rtt_p95 / longest
        y = _BOTTOM - (_BOTTOM - _TOP) * spot.goodput / most
        place = f'x="{x - 8:.1f}" class="end"' if x > _MIDDLE else f'x="{x + 8:.1f}"'
        line = y
        while any(abs(x - a) < _WORD and abs(line - b) < _LINE for a, b in labels):
            line += _LINE / 2 if spot.goodput > most / 2 else -_LINE / 2
        labels.append((x, line))
        shapes += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{ink}"/>',
            f'<text {place} y="{line + 4:.1f}" fill="{ink}">{escape(spot.control)}</text>',
        ]
    return Markup(  # noqa: S704 - numbers, the palette's colours and escaped names
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(label)}">'
        f"{''.join(shapes)}</svg>"
    )
