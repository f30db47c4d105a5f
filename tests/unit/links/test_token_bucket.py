"""The kernel's token bucket, in its own integers."""

from fractions import Fraction

import numpy as np
import pytest

from twoway.links.policer import Policer, TokenBucket

MS = 1_000_000


@pytest.mark.parametrize("rate_mbit", [0.001, 0.05, 8, 131, 999.999, 100_000])
@pytest.mark.parametrize("frame_bytes", [54, 1514, 9194, 65535])
def test_a_frame_needs_its_transmission_time(rate_mbit: float, frame_bytes: int) -> None:
    """A frame's tokens are its time at the rate, cut to whole ns with at most 32 bits."""
    bucket = Policer(rate_mbit=rate_mbit, burst_bytes=65535).bucket
    exact = Fraction(frame_bytes * 8 * 10**9, bucket.rate_bit)
    error = float(exact - bucket.needs_ns(frame_bytes))
    assert 0 <= error < 1 + float(exact) / 2**31


def test_a_full_bucket_lets_its_size_through_at_once() -> None:
    """A full bucket passes as many simultaneous frames as it holds, and no more."""
    sizes = np.full(40, 1000)
    refused = TokenBucket(8_000_000, 30_000).refuses(np.full(40, 5 * MS), sizes)
    assert np.flatnonzero(~refused).tolist() == list(range(30))


def test_tokens_come_with_time_and_are_not_hoarded() -> None:
    """An empty bucket passes a frame of 1 ms after 1 ms; a long pause does not overfill it."""
    bucket = TokenBucket(8_000_000, 2000)
    times = np.array([0, 0, MS - 1, MS, 100 * MS, 100 * MS, 100 * MS])
    refused = bucket.refuses(times, np.full(len(times), 1000))
    assert refused.tolist() == [False, False, True, False, False, False, True]


def test_a_refused_frame_costs_nothing() -> None:
    """A frame too large for the tokens leaves them for the next, smaller one."""
    bucket = TokenBucket(8_000_000, 2000)
    refused = bucket.refuses(np.array([0, 0, 0]), np.array([1500, 1000, 500]))
    assert refused.tolist() == [False, True, False]


def test_the_share_in_the_long_run() -> None:
    """At twice the rate half of the frames pass, after those that the full bucket passes."""
    bucket = TokenBucket(8_000_000, 10_000)
    refused = bucket.refuses(np.arange(0, 10_000 * MS, MS // 2), np.full(20_000, 1000))
    assert int((~refused).sum()) == pytest.approx(10_000 + 10, abs=1)
