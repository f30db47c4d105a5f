"""Closed forms of small theories, by hand and against simulations."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.connections import setup_at

from twoway.links.loss import Loss
from twoway.links.rate import Rate
from twoway.runs.points import load_point
from twoway.theory import registry
from twoway.theory.network import Bottleneck, Setup
from twoway.theory.predictions import (
    ack_clock,
    alone,
    counted_loss_cubic,
    least_windows,
    link_impairments,
    link_loss,
)
from twoway.theory.predictions.counted_loss import cubic_window, predict, reno_window

# Finding theories.


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


# Gilbert's model is for random losses with a constant share.


@pytest.mark.parametrize("loss", [{"every": 100}, {"schedule": [[0, 1]]}])
def test_losses_without_a_constant_chance_are_refused(loss: dict[str, object]) -> None:
    """A link that loses by count or by a schedule has no deviation from a share."""
    setup = setup_at("link-loss@control=reno,burst=1,seed=1")
    assert link_loss.predict(setup)["link_loss_deviation.flow"] == 0
    link = setup.links["forward"].with_fields(loss=Loss.model_validate(loss))
    with pytest.raises(ValueError, match="forward loses no constant share of packets by chance"):
        link_loss.predict(replace(setup, links={**setup.links, "forward": link}))


def test_a_path_over_several_links_is_refused() -> None:
    """A theory of one link predicts nothing for a connection over two."""
    setup = setup_at("link-loss@control=reno,burst=1,seed=1")
    (flow,) = setup.connections
    over_two = flow.model_copy(update={"directions": ("forward", "reverse")})
    longer = replace(setup, connections=(over_two,))
    for theory in (link_loss, link_impairments):
        with pytest.raises(ValueError, match="flow passes several links"):
            theory.predict(longer)


# The closed forms of UDP on a link, against an independent simulation.

SERVICE_S, FIXED_S = 1e-3, 9e-3
WINDOW_S, PATHS = 100, 100


def _mean_waits(load: float) -> np.ndarray:
    """Return mean waits over the window, for some sample paths, by Lindley's recursion."""
    source, means = np.random.default_rng(1), []
    for _ in range(PATHS):
        gaps = source.exponential(SERVICE_S / load, int(load * (WINDOW_S + 20) / SERVICE_S))
        walk = np.concatenate(([0], np.cumsum(SERVICE_S - gaps[1:])))
        waits, at_s = walk - np.minimum.accumulate(walk), np.cumsum(gaps)
        means.append(waits[at_s >= 20].mean())
    return np.array(means)


@pytest.mark.parametrize(("rate", "load"), [(4, 0.5), (6.4, 0.8)])
def test_an_m_d_1_queue(rate: float, load: float) -> None:
    """Prediction and tolerance of udp-poisson are a simulation's mean and four deviations."""
    point = load_point(f"udp-poisson@rate={rate:g},buffer=1000")
    (prediction,) = point.predictions
    waits = _mean_waits(load)
    assert prediction.value == pytest.approx(FIXED_S + waits.mean(), abs=4 * waits.std() / 10)
    assert prediction.tolerance == pytest.approx(4 * waits.std(), rel=0.2)


@pytest.mark.parametrize(("rate", "loss"), [(6, 0), (10, 0.2), (16, 0.5)])
def test_a_full_queue(rate: int, loss: float) -> None:
    """A link of 8 Mbit/s loses the rate above its own, and nothing below."""
    (prediction,) = load_point(f"udp-loss@rate={rate}").predictions
    assert prediction.value == pytest.approx(loss)


# One flow alone: bounds of its round trip and of the link's idle time, by hand.


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        # 10 ms, 100 segments of 0.24 ms and an ACK of 52 bytes; 10, 20 and 40 fill a pipe of 42.7.
        ("control=cubic,line=fast", {"rtt_p95.flow": 34.00832, "idle_s": 4 * 0.01024832}),
        # Six times 200 ms and two round trips; 10 and 20 fill a pipe of 17.7.
        ("control=bbr,line=slow", {"rtt_p95.flow": 1400.416, "idle_s": 1.2 + 14 * 0.212416}),
        # Three segments of 12 ms wait; the window grows by one in each of 17.7 round trips.
        (
            "control=vegas,line=slow",
            {"rtt_p95.flow": 1400.416, "idle_s": 0.212416**2 / 0.012, "rtt_median.flow": 248.416},
        ),
    ],
)
def test_bounds(point: str, expected: dict[str, float]) -> None:
    """A full buffer bounds the round trip, and growing windows the link's idle time."""
    found = alone.predict(setup_at(f"pantheon@{point}"))
    found["idle_s"] = 60 * (1 - found.pop("utilisation.forward"))
    assert found == pytest.approx(expected, rel=1e-9)


def test_other_networks_are_refused() -> None:
    """Networks of two connections, other controls or a small CUBIC buffer are refused."""
    setup = setup_at("pantheon@control=cubic,line=fast")
    there, (flow,) = setup.links["forward"], setup.connections
    short = {**setup.links, "forward": there.with_fields(queue_packets=19)}
    reno = flow.model_copy(update={"congestion": "reno"})
    refused = {
        "is about one connection, not 2": replace(setup, connections=(flow, flow)),
        "flow runs its queue empty after each loss": replace(setup, links=short),
        "flow is none of CUBIC, BBR and Vegas: reno": replace(setup, connections=(reno,)),
    }
    for problem, other in refused.items():
        with pytest.raises(ValueError, match=problem):
            alone.predict(other)
    just = {**setup.links, "forward": there.with_fields(queue_packets=20)}
    assert alone.predict(replace(setup, links=just))


# The theory of ACKs on links that send by a table, against numbers counted by hand.


def _rate(link: Bottleneck) -> dict[str, Any]:
    given = link.elements.find(Rate)
    assert given
    return given.model_dump()


def _ack_setup(name: str, **rate: Any) -> Setup:
    found = setup_at(name)
    back = found.links["reverse"]
    changed = back.with_fields(rate=Rate.model_validate({**_rate(back), **rate}))
    if "grants" in rate:
        changed = replace(changed, ack_s=40 * 8 / changed.rate_bit)
    return replace(found, links={**found.links, "reverse": changed})


@pytest.mark.parametrize(("every_ms", "mbit"), [(3, 4), (4, 3), (5, 2.4)])
@pytest.mark.parametrize(("acks", "segments"), [("every-segment", 1), ("delayed", 2)])
def test_a_grant_for_each_ack(every_ms: int, mbit: float, acks: str, segments: int) -> None:
    """One or two packets of 1500 bytes come down in each interval."""
    (prediction,) = load_point(f"request-grant@every_ms={every_ms},acks={acks}").predictions
    assert prediction.value == pytest.approx(mbit * segments, abs=12e3 * segments / 24e6)


def test_a_grant_for_four_acks() -> None:
    """Grants with room for all ACKs do not slow data; ACKs since the last grant leave together."""
    grants = {"every_ms": 0.54, "bytes": 400}
    found = ack_clock.predict(
        _ack_setup("request-grant@every_ms=3,acks=every-segment", grants=grants)
    )
    assert found == {"throughput.download": 100, "ack_bunch_max.download": 5}


@pytest.mark.parametrize(("wait", "bunch"), [("0.002", 3), ("0.004", 6), ("0.008", 13)])
def test_acks_that_came_in_a_silence_leave_in_one_bunch(wait: str, bunch: int) -> None:
    """ACKs come every 0.6 ms; silences of 1.4, 3.4 and 7.4 ms bunch 3, 6 and 13 of them."""
    found = ack_clock.predict(_ack_setup(f"wifi-uplink@wait={wait}"))
    assert found["ack_bunch_max.download"] == bunch
    assert found["compression_factor.download"] == pytest.approx(600e3 / (320 / 0.065), abs=0.025)


def test_a_bunch_that_hangs_on_chance_is_not_predicted() -> None:
    """A silence that holds 5 or 6 ACKs, depending on the first ACK's arrival, is refused."""
    with pytest.raises(ValueError, match=r"depend on when the first ACK comes: \[5, 6\]"):
        ack_clock.predict(
            _ack_setup("wifi-uplink@wait=0.004", schedule=[[0, 65], [0.0008, 0]], repeat_s=0.0042)
        )


# Least windows of DCTCP: two segments a round trip each, and a busy queue together.


@pytest.fixture(scope="module", name="racks")
def _racks() -> Setup:
    return setup_at("dctcp-racks@acks=every-segment")


def test_least_windows_fill_the_port(racks: Setup) -> None:
    """S1 and S3 fill 1 Gbit/s; their trips are 97 us apart: the trunk and 16 us of path."""
    found = least_windows.predict(racks)
    near, far = found["throughput.s3-1"], found["throughput.s1-1"]
    assert 10 * (near + far) == pytest.approx(1000)
    # A trip is two segments of 12.304 kbit over the throughput.
    apart_us = 2 * 12304 / far - 2 * 12304 / near
    trunk_us, path_us = 80 + 1.2304, 16 + 90 * 8 / 1e4
    assert apart_us == pytest.approx(trunk_us + path_us, abs=0.01)


def test_the_others_have_what_is_left_of_the_trunk(racks: Setup) -> None:
    """Each of S2 has a twentieth of 10 Gbit/s less S1, and the sum is both links less S1 once."""
    found = least_windows.predict(racks)
    through = 10 * found["throughput.s1-1"]
    assert found["throughput.s2-20"] == pytest.approx((10_000 - through) / 20)
    assert found["throughput_sum"] == pytest.approx(11_000 - through)


def test_without_a_wait_in_the_trunk_shares_differ_by_the_paths(racks: Setup) -> None:
    """With a trunk that marks at once, S1 and S3 are 17 us apart, of 430."""
    trunk = racks.links["trunk"].with_fields(mark_above_ms=1e-6)
    found = least_windows.predict(replace(racks, links={**racks.links, "trunk": trunk}))
    assert found["throughput.s1-1"] == pytest.approx(49.12, abs=0.005)


def test_least_windows_need_their_network(racks: Setup) -> None:
    """Other controls, a port that few flows leave below its threshold, and no marks are refused."""
    few = tuple(c for c in racks.connections if c.direction == "trunk" or c.name == "s3-1")
    cubic = racks.connections[0].model_copy(update={"congestion": "cubic"})
    unmarked = racks.links["port"].with_fields(mark_above_ms=0)
    refused = {
        "DCTCP alone, not s1-1": replace(racks, connections=(cubic, *racks.connections[1:])),
        "filled by least windows, got 0": replace(racks, connections=few),
        "got 0": replace(racks, links={**racks.links, "port": unmarked}),
    }
    for sentence, other in refused.items():
        with pytest.raises(ValueError, match=sentence):
            least_windows.predict(other)


# RFC 9438's mean windows for one loss in N packets, by hand and by cycles of segments.


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
    assert predict(setup_at(f"counted-loss@{point}")) == {
        "throughput.flow": pytest.approx(mbit, rel=1e-4)
    }


def test_cubic_without_its_region_is_slower_near() -> None:
    """CUBIC without its Reno-friendly region has 16.8 segments at 40 ms and one loss in 1000."""
    near, far = (
        setup_at(f"counted-loss@control=cubic,lost=1000-{place}") for place in ("near", "far")
    )
    alone = counted_loss_cubic.predict(near)["throughput.flow"]
    assert alone == pytest.approx(16.80 * 0.999 * 0.012 / 0.0401232, rel=1e-3)
    assert counted_loss_cubic.predict(far) == predict(far)
    with pytest.raises(ValueError, match="not of cubic: reno"):
        counted_loss_cubic.predict(setup_at("counted-loss@control=reno,lost=1000-near"))


def test_counted_losses_need_their_network() -> None:
    """Setups with random losses, other controls, delayed ACKs or full links are refused."""
    setup = setup_at("counted-loss@control=cubic,lost=10000-far")
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
