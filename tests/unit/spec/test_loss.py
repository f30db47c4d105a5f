"""Losses of a link: what netem is told, and what of it must be read back."""

import pytest

from twoway.spec.links.loss import Loss


def test_single_losses() -> None:
    """Without bursts each packet is lost by itself."""
    loss = Loss(percent=0.1)
    assert loss.arguments == ("loss", "random", "0.1%")
    assert loss.readback() == ((("options", "loss-random", "loss"), 0.001),)


def test_bursts_keep_the_share() -> None:
    """A link that enters bursts of 4 with chance e and leaves them with 1/4 loses e / (e + 1/4)."""
    loss = Loss(percent=20, burst_packets=4)
    enter, leave = loss.chances()
    assert leave == 0.25
    assert enter / (enter + leave) == pytest.approx(0.2, rel=1e-12)
    assert loss.arguments == ("loss", "gemodel", "6.25%", "25%")
    assert dict(loss.readback()) == {
        ("options", "loss-gemodel", "p"): 0.0625,
        ("options", "loss-gemodel", "r"): 0.25,
        ("options", "loss-gemodel", "1-h"): 1,
        ("options", "loss-gemodel", "1-k"): 0,
    }
