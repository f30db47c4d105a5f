"""Tahoe in both directions, or one, by an independent packet-level model.

After Zhang, Shenker and Clark (1991). Connections with fixed windows, and delayed ACKs, too. The
model takes seconds a point: its values for the experiments are in a table.
"""

from collections.abc import Mapping
from typing import Any

from twoway.theory import tables
from twoway.theory.network import Setup
from twoway.theory.tahoe.setting import outcome_of
from twoway.theory.tahoe.setting import parameters as parameters_of

NAME = "tahoe"


def predict(setup: Setup) -> dict[str, float]:
    """Predict the metrics of a run.

    Raises: ValueError with a sentence if the model does not cover the setup.
    """
    return tables.look_up(NAME, parameters(setup)) or compute(setup)


def parameters(setup: Setup) -> Mapping[str, Any]:
    """Collect what the model takes from a setup."""
    return parameters_of(setup)


def compute(setup: Setup) -> dict[str, float]:
    """Run the model.

    Raises: ValueError as `predict`.
    """
    return outcome_of(setup).metrics()
