"""Finding theories."""

from twoway.runs.points import load_point
from twoway.theory import registry


def test_a_theory_says_which_metrics_a_profile_sets() -> None:
    """The theory link_loss predicts a setting of the link; theories of TCP and of slots do not."""
    assert registry.tests_testbed("link_loss", "link_loss_burst.flow")
    assert not registry.tests_testbed("kalampoukas", "efficiency.left")
    assert not registry.tests_testbed("dtm", "slots_min.channel")


def test_points_record_what_is_of_the_testbed() -> None:
    """A prediction of the link's own drops is of the testbed; one of a channel's slots is not."""
    said = load_point("dtm-allocators@allocator=static").predictions
    marked = {each.metric: each.of_testbed for each in said}
    assert marked == {"capacity_goodput.channel": False, "drops_data.channel": True}
