"""A link's elements say what they do to packets, so that no reader has to know their classes."""

from types import SimpleNamespace
from typing import ClassVar

import pytest

from twoway.contract.links import BehindQueue, Elements
from twoway.contract.links.delay import ChangingDelay
from twoway.contract.links.registry import elements
from twoway.measure.analysis import Analysis
from twoway.measure.run_folder import Run


class Corruption(BehindQueue):
    """An element that no reader knows: it loses packets, and moves those before and after."""

    LOSES: ClassVar = True
    KEEPS_SPACING: ClassVar = False


@pytest.mark.parametrize(
    "kind", [kind for kind in elements().values() if issubclass(kind, BehindQueue)]
)
def test_elements_behind_the_queue_say_what_they_do(kind: type[BehindQueue]) -> None:
    """Each element behind the queue sets for itself whether it loses, and keeps spacing."""
    assert {"LOSES", "KEEPS_SPACING"} <= vars(kind).keys()


def test_a_new_elements_link_loses_packets() -> None:
    """A run with a link that has a new element loses packets on links, and its ACKs move."""
    link = SimpleNamespace(elements=Elements((Corruption(),)))
    profile = SimpleNamespace(directions={"forward": link})
    run = SimpleNamespace(manifest=SimpleNamespace(profile=profile), link=lambda _: link)
    assert Run.loses_on_links.func(run)  # type: ignore[attr-defined]
    queues = {"reverse": SimpleNamespace(queue=None)}
    connection = SimpleNamespace(ack_directions=("reverse",))
    analysis = SimpleNamespace(run=run, queues=queues)
    assert not Analysis.keeps_spacing(analysis, connection)  # type: ignore[arg-type]


def test_links_without_such_elements() -> None:
    """A link without elements loses nothing and keeps spacing, which a changing delay does not."""
    assert (Elements().lose, Elements().keep_spacing) == (False, True)
    assert not ChangingDelay.KEEPS_SPACING
