"""What the name of a quantity means, wherever it is computed."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Definition:
    """A quantity: one name, one unit, one meaning.

    Attributes:
        name: its key in documents and in experiments.
        unit: "1" for shares, ratios and numbers of things that have no unit of their own.
        meaning: what it is, in one line.
        source: the paper that defines it; "" if none does.
        least: the lowest value that it can have.
        most: the highest value that it can have.
    """

    name: str
    unit: str
    meaning: str
    source: str = ""
    least: float = 0.0
    most: float = math.inf
