"""The meaning of a quantity's name, wherever it is computed."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Definition:
    """A quantity: one name, one unit, one meaning.

    Attributes:
        name: its key in documents and in experiments.
        unit: "1" for shares, ratios and counts of things without a unit.
        meaning: the quantity in one line.
        source: the paper that defines it; "" if there is none.
        least: the lowest possible value.
        most: the highest possible value.
    """

    name: str
    unit: str
    meaning: str
    source: str = ""
    least: float = 0.0
    most: float = math.inf

    def __hash__(self) -> int:
        # That of all fields takes seven times as long, and documents look up thousands.
        return hash(self.name)
