"""A picture as a plain description, which `plots` and `interactive` draw."""

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

# Colours that colour-blind readers can tell apart (Okabe and Ito 2008).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c8c00")

FloatArray = NDArray[np.float64]
OVER_TIME = "time, s"  # the x label of pictures that share a time axis
_MARGIN = 0.03  # space around what a picture opens on, as a share of its time
_MOST_TICKS = 12
Style = Literal[
    "steps", "line", "marked", "points", "crosses", "bars", "dashed", "spans", "letters", "cells"
]


@dataclass(frozen=True)
class Line:
    """One trace, of n points.

    Attributes:
        name: name in the legend.
        x, y: shape (n,).
        style: `marked` is a line with a dot at each point; `steps` holds each level until the next
            point; `spans` are vertical lines from y to `top`; `letters` writes `letter` at each
            point; `cells` colours the places x and y by `top`, in files alone.
        colour: number in the palette.
        top: shape (n,), only for `spans` and `cells`.
        letter: only for `letters`.
        links: n addresses, opened by a click on a point; empty for none.
    """

    name: str
    x: FloatArray
    y: FloatArray
    style: Style = "line"
    colour: int = 0
    top: FloatArray | None = None
    letter: str = ""
    links: tuple[str, ...] = ()

    def highest(self) -> FloatArray:
        """Return the upper end of each point, shape (n,)."""
        return self.y if self.top is None else self.top


@dataclass(frozen=True)
class Figure:
    """One picture with its caption.

    Attributes:
        x_names: names of 0, 1, 2 and so on of x; empty where x is a number.
        y_names: the same of y, in files alone.
        view: the part of x on which the picture opens; None for all.
    """

    id: str
    title: str
    caption: str
    x_label: str
    y_label: str
    lines: list[Line] = field(repr=False)
    log_y: bool = False
    log_x: bool = False
    x_names: tuple[str, ...] = ()
    y_names: tuple[str, ...] = ()
    view: tuple[float, float] | None = None

    @property
    def x_ticks(self) -> list[float]:
        """The values of a logarithmic x, where they are few enough for a tick each; else none."""
        if not self.log_x or not self.lines:
            return []
        values = np.unique(np.concatenate([line.x for line in self.lines])).tolist()
        return values if len(values) <= _MOST_TICKS else []

    def view_since(self, first_s: float) -> tuple[float, float] | None:
        """Choose a view from a time on, s; None if nothing is drawn before it."""
        times = [line.x for line in self.lines if len(line.x)]
        if self.x_label != OVER_TIME or not times or min(x.min() for x in times) >= first_s:
            return None
        last = float(max(x.max() for x in times))
        margin = _MARGIN * (last - first_s)
        return (first_s - margin, last + margin) if margin > 0 else None

    def with_stretch(self) -> "Figure":
        """Name the part that is shown in the caption of a picture over time."""
        ends = [edge for line in self.lines if len(line.x) for edge in (line.x.min(), line.x.max())]
        if self.x_label != OVER_TIME or not ends:
            return self
        says = f"It shows {min(ends):.6g} to {max(ends):.6g} s."
        if self.view:
            says = f"It opens on {self.view[0]:.6g} to {self.view[1]:.6g} s; double-click for all."
        return replace(self, caption=f"{self.caption} {says}")
