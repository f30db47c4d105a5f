"""Tahoe with data in one or both directions, by an independent packet-level model.

After Zhang, Shenker and Clark (1991). It also covers connections with fixed windows, and delayed
ACKs. The model takes seconds a point, so its values for the experiments are in a table.
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
    """Collect the parameters that the model needs from a setup."""
    return parameters_of(setup)


def compute(setup: Setup) -> dict[str, float]:
    """Run the model.

    Raises: ValueError as `predict`.
    """
    return outcome_of(setup).metrics()
