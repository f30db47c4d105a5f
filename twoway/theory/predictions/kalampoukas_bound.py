"""The bound on the data in a queue of two-way traffic with fixed windows.

After Lemma 5 of Kalampoukas et al. (1998), and for equal rates Lemma 4. The lemmas are of a fluid;
whole segments exceed the printed bound by one segment at most, so that the bound here is one more.
The segment in transmission is no reason: the paper's worked example counts it, too.
"""

from twoway.theory.network import Setup
from twoway.theory.predictions import kalampoukas

_LEMMA_5 = "queue_peak_data."


def predict(setup: Setup) -> dict[str, float]:
    """Bound the data packets in each direction's queue.

    Raises: ValueError with a sentence if the theory does not cover the setup.
    """
    return {name: bound + 1 for name, bound in printed(setup).items()}


def printed(setup: Setup) -> dict[str, float]:
    """Compute Lemma 5's bound."""
    forms = kalampoukas.printed(setup)
    return {name: bound for name, bound in forms.items() if name.startswith(_LEMMA_5)}
