"""What is found of theories."""

from twoway.runs.cases import load_case
from twoway.theory import registry


def test_a_theory_says_which_metrics_a_profile_sets() -> None:
    """A theory of what a profile sets says so by metric; a theory of TCP says nothing of it."""
    assert registry.tests_testbed("link_loss", "link_loss_burst.flow")
    assert not registry.tests_testbed("kalampoukas", "efficiency.left")
    assert not registry.tests_testbed("dtm", "slots_min.channel")


def test_points_record_what_is_of_the_testbed() -> None:
    """A prediction of what a link does is marked, one of a channel's slots beside it is not."""
    said = load_case("dtm-allocators@allocator=static").predictions
    marked = {each.metric: each.of_testbed for each in said}
    assert marked == {"capacity_goodput.channel": False, "drops_data.channel": True}
