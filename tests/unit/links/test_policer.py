"""Policers: tc's arguments, refusals, and the kernel's token bucket in its own integers."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from support.running import SMALL, problems_of, write_experiment

from twoway.description.experiment import Profile
from twoway.description.rules import profile_problems
from twoway.description.topology import load_topology
from twoway.links.policer import Policer, TokenBucket
from twoway.paths import TOPOLOGIES
from twoway.plan.shaping import compile_profile

POLICER = {"rate_mbit": 8, "burst_bytes": 30_000}


def _document(**fields: Any) -> dict[str, Any]:
    direction = {"rate_mbit": 10, "queue_packets": 9, "delay_ms": 8, "policer": POLICER, **fields}
    return {"schema": 1, "title": "t", "directions": {"forward": direction, "reverse": direction}}


def test_tc_is_told() -> None:
    """The bucket is on egress of the queue's interface, and takes frames of any size."""
    profile = Profile.model_validate(_document())
    assert profile_problems(profile) == []
    shaper = compile_profile(profile, load_topology(TOPOLOGIES / "two_node.py", {}))[0]
    name = shaper.interface.name
    police = "police rate 8000000bit burst 30000 mtu 65535 conform-exceed drop/pass"
    assert shaper.inner == (
        f"qdisc add dev {name} clsact",
        f"filter add dev {name} egress matchall action {police}",
    )


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"policer": {"rate_mbit": 0.001, "burst_bytes": 40_000}},
            ".policer.burst_bytes: at most 274 s of tokens (34250), got 40000",
        )
    ],
)
def test_unmeasurable_policer_is_refused(fields: dict[str, Any], sentence: str) -> None:
    """A policer whose drops could not be measured, or that tc cannot set, is refused."""
    found = profile_problems(Profile.model_validate(_document(**fields)))
    assert [problem.partition("forward")[2].startswith(sentence) for problem in found[:1]] == [True]


def test_a_bucket_smaller_than_a_packet_is_refused(tmp_path: Path) -> None:
    """A bucket smaller than a full frame would drop every full frame, and is refused."""
    small = {"rate_mbit": 8, "burst_bytes": 9193}
    (tmp_path / "tight.yml").write_text(yaml.safe_dump(_document(policer=small)))
    path = write_experiment(tmp_path, {**SMALL, "profile": "tight"})
    assert problems_of(path)[0].endswith("a full frame has 9194, got 9193")


# The kernel's token bucket, in its own integers.

MS = 1_000_000


def test_a_frame_needs_its_transmission_time() -> None:
    """A frame's tokens are its time at the rate, cut to whole ns with at most 32 bits."""
    for rate_mbit in (0.001, 0.05, 8, 131, 999.999, 100_000):
        bucket = Policer(rate_mbit=rate_mbit, burst_bytes=65535).bucket
        for frame_bytes in (54, 1514, 9194, 65535):
            exact = Fraction(frame_bytes * 8 * 10**9, bucket.rate_bit)
            error = float(exact - bucket.needs_ns(frame_bytes))
            assert 0 <= error < 1 + float(exact) / 2**31, (rate_mbit, frame_bytes)


def test_a_full_bucket_lets_its_size_through_at_once() -> None:
    """A full bucket passes as many simultaneous frames as it holds, and no more."""
    sizes = np.full(40, 1000)
    refused = TokenBucket(8_000_000, 30_000).refuses(np.full(40, 5 * MS), sizes)
    assert np.flatnonzero(~refused).tolist() == list(range(30))


def test_a_refused_frame_costs_nothing() -> None:
    """A frame too large for the tokens leaves them for the next, smaller one."""
    bucket = TokenBucket(8_000_000, 2000)
    refused = bucket.refuses(np.array([0, 0, 0]), np.array([1500, 1000, 500]))
    assert refused.tolist() == [False, True, False]
