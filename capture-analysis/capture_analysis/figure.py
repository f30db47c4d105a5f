"""A picture, as a plain description; `plots` and `page` draw it."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """One trace. Style `steps` holds each level until the next point."""

    name: str
    x: FloatArray
    y: FloatArray
    style: Literal["steps", "line", "points", "crosses", "bars", "dashed"] = "line"
    colour: int = 0


@dataclass(frozen=True)
class Figure:
    """One picture: what it shows and how to read it."""

    id: str
    title: str
    caption: str
    x_label: str
    y_label: str
    lines: list[Line] = field(repr=False)
    log_y: bool = False
