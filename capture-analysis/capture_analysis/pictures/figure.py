"""A picture, as a plain description; `plots` and `interactive` draw it."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Style = Literal[
    "steps", "line", "marked", "points", "crosses", "bars", "dashed", "spans", "letters"
]


@dataclass(frozen=True)
class Line:
    """One trace, of n points.

    Attributes:
        name: name in the legend.
        x, y: shape (n,).
        style: `marked` is a line with a dot at each point; `steps` holds each level until the next
            point; `spans` are vertical lines from y to `top`; `letters` writes `letter` at each
            point.
        colour: number in the palette.
        top: shape (n,), only for `spans`.
        letter: only for `letters`.
    """

    name: str
    x: FloatArray
    y: FloatArray
    style: Style = "line"
    colour: int = 0
    top: FloatArray | None = None
    letter: str = ""

    def highest(self) -> FloatArray:
        """Return the upper end of each point, shape (n,)."""
        return self.y if self.top is None else self.top


@dataclass(frozen=True)
class Figure:
    """One picture with its caption.

    Attributes:
        view: the part of x that the picture opens on; None for all.
    """

    id: str
    title: str
    caption: str
    x_label: str
    y_label: str
    lines: list[Line] = field(repr=False)
    log_y: bool = False
    log_x: bool = False
    view: tuple[float, float] | None = None
