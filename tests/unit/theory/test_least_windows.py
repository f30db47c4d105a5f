"""Least windows of DCTCP: two segments a round trip each, and a busy queue together."""

from dataclasses import replace

import pytest

from twoway.description.predictions import setup_of
from twoway.runs.points import load_point
from twoway.theory.network import Setup
from twoway.theory.predictions.least_windows import predict


@pytest.fixture(scope="module", name="racks")
def _racks() -> Setup:
    point = load_point("dctcp-racks@acks=every-segment")
    return setup_of(point.experiment, point.profile, point.graph, point.connections)


def test_least_windows_fill_the_port(racks: Setup) -> None:
    """S1 and S3 fill 1 Gbit/s; their trips are 97 us apart: the trunk and 16 us of path."""
    found = predict(racks)
    near, far = found["throughput.s3-1"], found["throughput.s1-1"]
    assert 10 * (near + far) == pytest.approx(1000)
    # A trip is two segments of 12.304 kbit over the throughput.
    apart_us = 2 * 12304 / far - 2 * 12304 / near
    trunk_us, path_us = 80 + 1.2304, 16 + 90 * 8 / 1e4
    assert apart_us == pytest.approx(trunk_us + path_us, abs=0.01)


def test_the_others_have_what_is_left_of_the_trunk(racks: Setup) -> None:
    """Each of S2 has a twentieth of 10 Gbit/s less S1, and the sum is both links less S1 once."""
    found = predict(racks)
    through = 10 * found["throughput.s1-1"]
    assert found["throughput.s2-20"] == pytest.approx((10_000 - through) / 20)
    assert found["throughput_sum"] == pytest.approx(11_000 - through)


def test_without_a_wait_in_the_trunk_shares_differ_by_the_paths(racks: Setup) -> None:
    """With a trunk that marks at once, S1 and S3 are 17 us apart, of 430."""
    trunk = racks.links["trunk"].with_fields(mark_above_ms=1e-6)
    found = predict(replace(racks, links={**racks.links, "trunk": trunk}))
    assert found["throughput.s1-1"] == pytest.approx(49.12, abs=0.005)


def test_other_networks_are_refused(racks: Setup) -> None:
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
            predict(other)
