"""Small drawings of figures, as SVG within a page."""

from collections.abc import Iterator

import numpy as np
from capture_analysis.pictures.figure import COLOURS, Figure, FloatArray, Line
from capture_analysis.pictures.thinning import thin_line
from markupsafe import Markup

_WIDTH, _HEIGHT = 280, 150
_EDGE = 6
_DOT = 1.8


def thumbnail(figure: Figure) -> Markup:
    """Draw a figure without axes; each point is within a pixel of its place."""
    thin = (thin_line(_finite(line), _WIDTH, _HEIGHT, small=_WIDTH) for line in figure.lines)
    lines = [line for line in thin if len(line.x)]
    across = _scale([line.x for line in lines], _EDGE, _WIDTH - _EDGE)
    up = _scale([each for line in lines for each in _heights(line)], _HEIGHT - _EDGE, _EDGE)
    shapes = "".join(
        f'<path d="{path}" {look}/>'
        for line in lines
        for path, look in _draw(line, _on(across, line.x), _on(up, line.y), _tops(line, up))
    )
    return Markup(  # noqa: S704 - numbers and the palette's colours alone
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="presentation">{shapes}</svg>'
    )


def _finite(line: Line) -> Line:
    kept = np.isfinite(line.x) & np.isfinite(line.y)
    top = None if line.top is None else line.top[kept]
    return Line(line.name, line.x[kept], line.y[kept], line.style, line.colour, top=top)


def _heights(line: Line) -> list[FloatArray]:
    floor = [np.zeros(1)] if line.style == "bars" else []
    return [line.y, line.highest(), *floor]


def _scale(columns: list[FloatArray], start: float, stop: float) -> tuple[float, float]:
    """Return the factor and the offset that map columns to a range of pixels."""
    values = np.concatenate(columns) if columns else np.zeros(1)
    low, high = values.min(), values.max()
    factor = (stop - start) / (high - low) if high > low else 0.0
    return factor, (start if factor else (start + stop) / 2) - factor * low


def _on(scale: tuple[float, float], values: FloatArray) -> FloatArray:
    return np.round(scale[0] * values + scale[1])


def _tops(line: Line, up: tuple[float, float]) -> FloatArray:
    if line.style == "bars":
        return _on(up, np.zeros(len(line.x)))
    return _on(up, line.highest())


def _draw(line: Line, x: FloatArray, y: FloatArray, top: FloatArray) -> Iterator[tuple[str, str]]:
    """Yield the figure's paths, each with its style."""
    colour = COLOURS[line.colour % len(COLOURS)]
    ink = "currentColor" if colour == "#000000" else colour
    stroke = f'fill="none" stroke="{ink}" stroke-width="1.2"'
    points = list(zip(x.tolist(), y.tolist(), strict=True))
    if line.style in ("points", "letters"):
        yield _dots(points), f'fill="{ink}"'
    elif line.style in ("spans", "bars"):
        ends = zip(points, top.tolist(), strict=True)
        yield "".join(f"M{a:g} {b:g}V{t:g}" for (a, b), t in ends), stroke
    elif line.style == "crosses":
        yield "".join(f"M{a - 3:g} {b - 3:g}l6 6m0-6l-6 6" for a, b in points), stroke
    else:
        step = "H{0:g}V{1:g}" if line.style == "steps" else "L{0:g} {1:g}"
        (a, b), *others = points
        path = f"M{a:g} {b:g}" + "".join(step.format(*each) for each in others)
        yield path, stroke + (' stroke-dasharray="5 3"' if line.style == "dashed" else "")
        if line.style == "marked":
            yield _dots(points), f'fill="{ink}"'


def _dots(points: list[tuple[float, float]]) -> str:
    size = 2 * _DOT
    return "".join(
        f"M{a - _DOT:.1f} {b - _DOT:.1f}h{size:g}v{size:g}h-{size:g}z" for a, b in points
    )
