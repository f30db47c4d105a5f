"""Compute the values in twoway/theory/computed again, for all experiments.

Run it as `.venv/bin/python tests/support/computed_values.py`.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from twoway.paths import EXPERIMENTS
from twoway.runs.cases import load_case
from twoway.spec.point import case_names
from twoway.spec.predictions import setup_of
from twoway.theory import computed
from twoway.theory.network import Setup
from twoway.theory.predictions import tahoe_chain

FOLDER = Path(computed.__path__[0])
DIGITS = 6


def setups() -> Iterator[tuple[str, Setup]]:
    """The points of all experiments with the theory `tahoe_chain`, and their parameters."""
    for path in sorted(EXPERIMENTS.glob("*.yml")):
        if "theory: tahoe_chain" in path.read_text():
            for name in case_names(path.stem):
                case = load_case(name)
                yield (
                    name,
                    setup_of(case.experiment, case.profile, case.graph, list(case.connections)),
                )


def rounded(values: dict[str, float]) -> dict[str, float]:
    """As the file has them."""
    return {name: round(value, DIGITS) for name, value in values.items()}


def main() -> None:
    """Write the file."""
    values = {
        tahoe_chain.parameters(setup): rounded(tahoe_chain.compute(setup)) for _, setup in setups()
    }
    text = json.dumps(values, indent=1, sort_keys=True)
    (FOLDER / tahoe_chain.COMPUTED).write_text(text + "\n")


if __name__ == "__main__":
    main()
