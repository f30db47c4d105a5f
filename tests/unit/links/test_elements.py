"""A link's elements say what they do to packets, and which properties no check proves."""

from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from capture_analysis.columns import BoolArray, IntArray
from site_pages import ELEMENTS, element_page

from twoway.description.experiment import Profile
from twoway.links.delay import ChangingDelay
from twoway.links.direction import Direction, elements, pages
from twoway.links.element import BeforeQueue, BehindQueue, Elements
from twoway.links.half_duplex import HalfDuplex
from twoway.links.impairments import Impairments
from twoway.links.proof import not_proven
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


@pytest.mark.parametrize(("name", "title"), pages().items())
def test_each_element_has_a_page(name: str, title: str) -> None:
    """The site has a page for each element and for a shared medium, with its title and field."""
    page = element_page(name, Profile.model_json_schema(), lambda _: [])
    assert page.startswith(f"# {title}: `{name}`\n")


def test_pages_are_those_of_the_fields_on_links() -> None:
    """A field of a profile or of a direction has a page if it is a part of links."""
    assert ELEMENTS.keys() == {*elements(), HalfDuplex.FIELD}
    assert elements().keys() <= Direction.model_fields.keys()
    assert HalfDuplex.FIELD in Profile.model_fields


def test_two_elements_of_a_kind_are_no_answer() -> None:
    """Looking for one element of a kind fails if there are two: neither is left out in silence."""
    two = Elements((Corruption(), Corruption()))
    with pytest.raises(ValueError, match="BehindQueue: 2 elements"):
        two.find(BehindQueue)
    assert two.find(ChangingDelay) is None


def test_a_new_elements_link_loses_packets() -> None:
    """A run with a link that has a new element loses packets on links, and its ACKs move."""
    link = SimpleNamespace(elements=Elements((Corruption(),)))
    profile = SimpleNamespace(directions={"forward": link})
    run = SimpleNamespace(
        manifest=SimpleNamespace(profile=profile), elements=lambda _: link.elements
    )
    assert Run.loses_on_links.func(run)  # type: ignore[attr-defined]
    assert Run.follows_packets.func(run)  # type: ignore[attr-defined]
    queues = {"reverse": SimpleNamespace(queue=None)}
    connection = SimpleNamespace(ack_directions=("reverse",))
    analysis = SimpleNamespace(run=run, queues=queues)
    assert not Analysis.keeps_spacing(analysis, connection)  # type: ignore[arg-type]


class Odd(BeforeQueue):
    """An element before the queue that refuses every second frame which reaches it."""

    def refuses(self, time_ns: IntArray, frame_bytes: IntArray) -> BoolArray:
        """Mark every second frame."""
        assert len(time_ns) == len(frame_bytes)
        return np.asarray(np.arange(len(time_ns)) % 2 == 1)


def test_the_second_element_before_a_queue_sees_what_the_first_passes() -> None:
    """Two elements that each refuse every second frame pass one in four."""
    frames = np.arange(8)
    assert Elements((Odd(), Odd())).refuse(frames, frames).tolist() == [False, True, True, True] * 2
    assert not Elements().refuse(frames, frames).any()


def test_elements_that_drop_and_that_act_behind() -> None:
    """An element before the queue drops packets; one behind the queue acts there, as delays do."""
    assert (Elements((Odd(),)).drop, Elements((Odd(),)).act_behind) == (True, False)
    assert (Elements((Corruption(),)).drop, Elements((Corruption(),)).act_behind) == (True, True)
    assert Elements((ChangingDelay(schedule=[(0, 5)]),)).act_behind
    assert not Elements((Impairments(),)).drop


def test_links_without_such_elements() -> None:
    """A link without elements loses nothing and keeps spacing, which a changing delay does not."""
    assert (Elements().lose, Elements().keep_spacing) == (False, True)
    assert not ChangingDelay.KEEPS_SPACING


# Properties of a link that no check proves.

POLICER = {"policer": {"rate_mbit": 4, "burst_bytes": 15140}}
SCHEDULE = {"delay_ms": None, "delay": {"schedule": [[0, 20]]}}


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({}, []),
        ({"aqm": "codel", "rate_mbit": None, "rate": {"schedule": [[0, 8]]}}, []),
        (POLICER, []),
        (POLICER | {"aqm": "codel"}, ["the share that the policer dropped (down)"]),
        (
            {"aqm": "codel", "rate_mbit": None, "dtm": {"rate": {"count": "accepted"}}},
            ["when the channel's slots change (down)"],
        ),
        (
            SCHEDULE | {"impairments": {"jitter_ms": 8}},
            ["each packet's delay by the schedule (down)"],
        ),
    ],
)
def test_what_no_check_proves(fields: dict[str, Any], what: list[str]) -> None:
    """A pair of elements that a check cannot follow is listed with its direction, and no other."""
    link = {"rate_mbit": 8, "delay_ms": 8, "queue_packets": 20} | fields
    found = not_proven({"down": Direction.model_validate(link)})
    assert [each.what for each in found] == what
