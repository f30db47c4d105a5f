"""RFC 9438's mean windows for one loss in N packets, by hand and by cycles of segments."""

from dataclasses import replace

import pytest

from twoway.description.predictions import setup_of
from twoway.links.loss import Loss
from twoway.runs.points import load_point
from twoway.theory.network import Setup
from twoway.theory.predictions import counted_loss_cubic
from twoway.theory.predictions.counted_loss import cubic_window, predict, reno_window


def _setup(name: str) -> Setup:
    point = load_point(f"counted-loss@{name}")
    return setup_of(point.experiment, point.profile, point.graph, point.connections)


def test_windows_are_those_of_the_rfc() -> None:
    """With a round trip of 0.1 s the mean windows equal those of RFC 9438's tables."""
    assert cubic_window(10, 0.1) == pytest.approx(1.054, abs=0.0005)
    assert cubic_window(10_000, 0.1) == pytest.approx(187.4, abs=0.05)
    assert reno_window(10_000) == pytest.approx(122.5, abs=0.05)


@pytest.mark.parametrize("packets", [1000, 10_000])
def test_cubic_has_its_mean_over_a_cycle(packets: int) -> None:
    """A cycle of CUBIC from 0.7 W to W sends N packets, summed by round trip."""
    trip_s = 0.001
    largest = cubic_window(packets, trip_s) * 4 / 3.7
    length_s = (0.3 * largest / 0.4) ** (1 / 3)
    trips = int(length_s / trip_s)
    sent = sum(largest - 0.4 * (length_s - n * trip_s) ** 3 for n in range(trips))
    assert sent == pytest.approx(packets, rel=0.005)


@pytest.mark.parametrize(
    ("point", "mbit"),
    [
        # 0.99 sqrt(150) segments of 12 kbit in 40.1232 ms.
        ("control=cubic,lost=100-near", 3.6263),
        # 0.9999 1.054 (10 000 * 0.2001232)^(3/4) in 200.1232 ms.
        ("control=cubic,lost=10000-far", 18.905),
        ("control=reno,lost=10000-far", 7.3432),
    ],
)
def test_throughput_is_a_window_a_trip(point: str, mbit: float) -> None:
    """Without losses a mean window arrives each round trip; CUBIC's is at least Reno's."""
    assert predict(_setup(point)) == {"throughput.flow": pytest.approx(mbit, rel=1e-4)}


def test_cubic_without_its_region_is_slower_near() -> None:
    """CUBIC without its Reno-friendly region has 16.8 segments at 40 ms and one loss in 1000."""
    near, far = (_setup(f"control=cubic,lost=1000-{place}") for place in ("near", "far"))
    alone = counted_loss_cubic.predict(near)["throughput.flow"]
    assert alone == pytest.approx(16.80 * 0.999 * 0.012 / 0.0401232, rel=1e-3)
    assert counted_loss_cubic.predict(far) == predict(far)
    with pytest.raises(ValueError, match="not of cubic: reno"):
        counted_loss_cubic.predict(_setup("control=reno,lost=1000-near"))


def test_other_networks_are_refused() -> None:
    """Setups with random losses, other controls, delayed ACKs or full links are refused."""
    setup = _setup("control=cubic,lost=10000-far")
    there, (flow,) = setup.links["forward"], setup.connections
    by_chance = there.with_fields(loss=Loss(percent=1))
    tenth = there.with_fields(rate_mbit=there.rate_bit / 1e7)
    slow = replace(tenth, data_s=10 * there.data_s)
    refused = {
        "flow loses no data by count": replace(setup, links={**setup.links, "forward": by_chance}),
        "flow fills the link": replace(setup, links={**setup.links, "forward": slow}),
        "not of reno or cubic: bbr": replace(
            setup, connections=(flow.model_copy(update={"congestion": "bbr"}),)
        ),
        "acknowledge each segment": replace(setup, acks_every_segment=False),
        "alone on their links": replace(setup, connections=(flow, flow)),
    }
    for sentence, other in refused.items():
        with pytest.raises(ValueError, match=sentence):
            predict(other)
