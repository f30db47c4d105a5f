"""Count the claims of Zhang et al. that the packet model meets under each reading of the paper.

A reading is how slow start ends, which timer retransmits, and whether a buffer of 20 packets counts
the one in transmission. Claims are those of the files for figures 2 and 4 to 7; a claim is met if
all of its metrics meet it at all its points, over 20 and the larger buffers. Figure 3 is left out:
its model is a mean of random starts, and takes minutes for each reading.
"""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from twoway.contract.statements import Claim
from twoway.description.predictions import setup_of
from twoway.runs.points import load_point
from twoway.theory.predictions import tahoe

# The points that claims are about; a reading replaces three of their parameters.
POINTS = {
    "figure 2": (
        "zhang-fig2@tau_ms=1000.74,slow_start=paper,buffer=20",
        "zhang-fig2@tau_ms=10,slow_start=paper,buffer=20",
    ),
    "figures 4, 5": ("zhang-fig4-5@buffer=20", "zhang-fig4-5@buffer=60", "zhang-fig4-5@buffer=120"),
    "figures 6, 7": ("zhang-fig6-7@start_s=1.2,slow_start=paper",),
    "figures 6, 7, started together": ("zhang-fig6-7@start_s=0,slow_start=paper",),
}
READINGS = tuple(itertools.product(("paper", "bsd"), ("linux", "bsd"), (20, 21)))


@cache
def outcome(name: str, slow_start: str, timer: str, buffer: int) -> dict[str, float]:
    """Compute a point's metrics under a reading; a buffer other than 20 stays as it is."""
    point = load_point(name)
    setup = setup_of(point.experiment, point.profile, point.graph, list(point.connections))
    links = {
        direction: link.with_fields(queue_packets=buffer) if link.buffer_packets == 20 else link
        for direction, link in setup.links.items()
    }
    modules = {"tcp_tahoe": {"slow_start": slow_start, "timer": timer}}
    return tahoe.predict(replace(setup, links=links, modules=modules))


def is_met(said: Claim, name: str, reading: tuple[str, str, int]) -> bool:
    """Tell whether the model's value meets a claim at a point under a reading."""
    value = outcome(name, *reading)[said.metric]
    if said.against:
        value -= outcome(said.against, *reading)[said.metric]
    if said.value is not None:
        return abs(value - said.value) <= (said.tolerance or 0) + 1e-9
    return (said.at_least is None or value >= said.at_least - 1e-9) and (
        said.at_most is None or value <= said.at_most + 1e-9
    )


def claims_of(names: tuple[str, ...]) -> Iterator[tuple[str, list[tuple[Claim, str]]]]:
    """List the claims about some points, each with its metrics and points."""
    found: dict[str, list[tuple[Claim, str]]] = {}
    for name in names:
        for said in load_point(name).claims:
            found.setdefault(said.claim, []).append((said, name))
    yield from found.items()


def main() -> None:
    """Print the number of claims that each reading meets, and which."""
    print("figure", "claim", *("/".join(map(str, reading)) for reading in READINGS), sep="\t")
    for figure, names in POINTS.items():
        sums = [0] * len(READINGS)
        for claim, rows in claims_of(names):
            met = [all(is_met(*row, reading) for row in rows) for reading in READINGS]
            sums = [count + each for count, each in zip(sums, met, strict=True)]
            print(figure, claim, *("yes" if each else "no" for each in met), sep="\t")
        print(figure, "met", *sums, sep="\t")


if __name__ == "__main__":
    main()
