"""The bound on the data in a queue of two-way traffic with fixed windows, and a segment more.

The bounds of Lemma 4 (equal rates) and Lemma 5 of Kalampoukas et al. (1998) are of a fluid. Whole
segments exceed them by one at most, which is a finding about the paper: its worked example counts
the segment in transmission, as a measured queue does, so that this segment is no excuse. Where the
bound is at least the sender's own window it says nothing, and experiments do not predict it.
"""

from twoway.theory.network import Setup
from twoway.theory.predictions import kalampoukas

_BOUND = "queue_peak_data."


def predict(setup: Setup) -> dict[str, float]:
    """Bound the data packets in each direction's queue.

    Raises: ValueError with a sentence if the theory does not cover the setup.
    """
    return {name: bound + 1 for name, bound in printed_values(setup).items()}


def printed_values(setup: Setup) -> dict[str, float]:
    """Compute the bounds of Lemmas 4 and 5."""
    forms = kalampoukas.printed_values(setup)
    return {name: bound for name, bound in forms.items() if name.startswith(_BOUND)}
