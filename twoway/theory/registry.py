"""All theories: the modules of the package `predictions`."""

from types import ModuleType

from capture_analysis.discovery import module_of, names_of

from twoway.links.dtm import Channel
from twoway.links.element import BeforeQueue, BehindQueue, Delay, Link, ManagedQueue, RateShaper
from twoway.links.mtu import Mtu
from twoway.links.queue import TcQueue
from twoway.theory import predictions
from twoway.theory.network import HALF_DUPLEX, Setup


def known_theories() -> list[str]:
    """List the names that `theory:` may have."""
    return names_of(predictions)


def find_theory(name: str) -> ModuleType:
    """Import one of the known theories."""
    return module_of(predictions, name)


def predict(theory: str, setup: Setup) -> dict[str, float]:
    """Predict values by metric name with one of the known theories.

    Raises: ValueError with a sentence if the theory does not cover these parameters.
    """
    if setup.medium and theory != HALF_DUPLEX:
        raise ValueError(
            f"each direction must have its own medium; {HALF_DUPLEX} covers a shared one"
        )
    for name, bottleneck in setup.links.items():
        if why := _not_covered(bottleneck.link, half_duplex=bool(setup.medium)):
            raise ValueError(f"links.{name}: no theory covers {why}")
    predicted: dict[str, float] = find_theory(theory).predict(setup)
    return predicted


def _not_covered(link: Link, *, half_duplex: bool) -> str:
    """Name the elements of a link that no theory combines; empty if there are none."""
    elements = link.elements
    manager, rate = elements.find(ManagedQueue), elements.find(RateShaper)
    shaper = rate.FIELD if rate else "half_duplex" if half_duplex else ""
    if elements.contains(TcQueue):
        return "a queue in tc's own words"
    if elements.contains(Mtu):
        return "an MTU of the link's own"
    if manager and shaper:
        return f"{manager.FIELD} {manager.name} beside {shaper}"
    if elements.contains(BeforeQueue) and (manager or half_duplex or elements.contains(Channel)):
        return f"a policer before {manager.FIELD if manager else shaper}"
    if elements.contains(BehindQueue) and elements.contains(Delay):
        return "losses, jitter or copies behind a delay that changes"
    return ""


def tests_testbed(theory: str, metric: str) -> bool:
    """Tell whether a theory's value of a metric only repeats the profile, and so tests the testbed.

    Such a theory lists the families of these metrics in TESTBED.
    """
    return metric.partition(".")[0] in getattr(find_theory(theory), "TESTBED", ())


def printed_values(theory: str, setup: Setup) -> dict[str, float]:
    """Compute the paper's own formulas, by metric name, if a theory has them.

    Raises: ValueError as `predict`.
    """
    forms: dict[str, float] = getattr(find_theory(theory), "printed_values", lambda _: {})(setup)
    return forms
