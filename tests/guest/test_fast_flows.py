"""FAST beyond bulk transfer: spurious losses, pauses, little data, and large windows.

The path has 10 Mbit/s and 40 ms, and holds 51 packets; with an alpha of 30 the window is 81.
"""

import json
from collections.abc import Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from support.guest.fast_flows import (
    ALPHA,
    BASE_US,
    CLAMP,
    FAST_ALPHA,
    FAST_BASE_US,
    FLOWS,
    GAMMA,
    PACKET_US,
    WRITTEN,
)
from support.guest.tcp_hosts import SEGMENT_BYTES
from support.running import ROOT
from support.runs import kept_in_guest

from twoway.guest.cache import Guest

PIPE_PACKETS = round(BASE_US / PACKET_US)
REST = PIPE_PACKETS + ALPHA
OPEN, CWR, RECOVERY = 0, 2, 3
INITIAL_WINDOW = 10

Samples = Sequence[SimpleNamespace]


@pytest.fixture(scope="module")
def flows(guest: Guest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Samples]:
    """Return TCP_INFO in each situation."""
    folder = tmp_path_factory.mktemp("guest") / "run"
    program = ROOT / "tests/support/guest/fast_flows.py"
    kept_in_guest(guest, folder, program, modules="tcp_fast")
    said: dict[str, list[dict[str, Any]]] = json.loads((folder / "flows.json").read_text())
    return {name: [SimpleNamespace(**each) for each in samples] for name, samples in said.items()}


@pytest.mark.parametrize("written", WRITTEN)
def test_what_is_not_used_does_not_grow(flows: dict[str, Samples], written: int) -> None:
    """A window that the application does not fill stays the same.

    It is full only while the application's first writes wait. The last of these cause two increases
    of gamma alpha packets; one increase spreads over the next round trip. With 8 segments per round
    trip the initial window of 10 is never full.
    """
    samples = flows[f"application_limited_{written}"]
    most = max(each.unacked for each in samples)
    last = samples[-1].cwnd
    if written < INITIAL_WINDOW:
        assert {each.cwnd for each in samples} == {INITIAL_WINDOW}
    assert last <= max(most + 2 * GAMMA * ALPHA, INITIAL_WINDOW)
    assert {each.cwnd for each in samples[len(samples) // 3 :]} == {last}


def test_pacing_leaves_slow_start(flows: dict[str, Samples]) -> None:
    """The pacing rate is 1.2 windows per round trip, not the two of slow start."""
    for each in flows["application_limited_45"][-100:]:
        window_mbit = each.cwnd * SEGMENT_BYTES * 8 / each.rtt_us
        assert each.pacing_mbit == pytest.approx(1.2 * window_mbit, rel=0.03)
        assert each.cwnd >= each.ssthresh


@pytest.mark.parametrize("timestamps", [0, 1])
def test_spurious_loss_is_undone(flows: dict[str, Samples], timestamps: int) -> None:
    """After a spurious loss the window is restored once the stack detects it, and then stays.

    With timestamps the stack detects it during recovery. Without timestamps it does so later, when
    FAST has controlled the halved window for a while.
    """
    samples = flows[f"spurious_loss_{timestamps}"]
    assert samples[0].cwnd == REST
    assert samples[-1].retransmitted > 0
    recovering = [at for at, each in enumerate(samples) if each.state == RECOVERY]
    restored = next(at for at in range(recovering[0], len(samples)) if samples[at].cwnd >= REST)
    assert samples[restored].cwnd == REST
    assert samples[restored - 1].cwnd < REST - 10
    assert (samples[restored - 1].state == RECOVERY) == bool(timestamps)
    # Meanwhile the queue was shorter, which increases of at most gamma alpha make up for.
    after = [each.cwnd for each in samples[restored:]]
    assert REST - 1 <= min(after) <= max(after) <= REST + GAMMA * ALPHA


def test_a_mark_is_a_loss_without_retransmission(flows: dict[str, Samples]) -> None:
    """One ECN mark halves the window once, without retransmissions; then the window settles."""
    samples = flows["congestion_marked"]
    assert {each.state for each in samples} == {OPEN, CWR}
    assert samples[-1].retransmitted == 0
    reducing = [at for at, each in enumerate(samples) if each.state == CWR]
    assert reducing == list(range(reducing[0], reducing[-1] + 1))
    assert samples[reducing[-1] + 1].cwnd == REST // 2
    assert min(each.cwnd for each in samples) == REST // 2
    assert abs(samples[-1].cwnd - REST) <= 1


def test_clamp_bounds_the_window(flows: dict[str, Samples]) -> None:
    """If the route limits the window to 20, FAST's window grows to 20 and no further."""
    assert {each.cwnd for each in flows["clamped"]} == {CLAMP}


def test_a_pause_ends_an_increase(flows: dict[str, Samples]) -> None:
    """After a pause the window is the initial one and grows from there, one packet per ACK.

    The pause came in the middle of an increase, whose rest is dropped. Doubling is over after one
    round trip: then gamma alpha packets are less than the window.
    """
    before, *samples = flows["idle"]
    windows = [each.cwnd for each in samples]
    assert before.cwnd > 100
    assert windows[0] == INITIAL_WINDOW
    assert max(later - now for now, later in pairwise(windows)) == 1
    start = samples[0].at_s
    at_ends = [
        next(each.cwnd for each in samples if each.at_s >= start + end_ms / 1000)
        for end_ms in (40, 81, 122, 163, 204)
    ]
    steps = [later - now for now, later in pairwise(at_ends)]
    assert steps[0] == INITIAL_WINDOW
    assert steps[1:] == [pytest.approx(GAMMA * ALPHA, abs=1)] * 3


def test_alpha_may_change_under_way(flows: dict[str, Samples]) -> None:
    """A flow of "fast" queues the new number of packets after its namespace's alpha has changed."""
    samples = flows["changed"]
    assert samples[0].cwnd == REST
    assert abs(samples[-1].cwnd - (REST + ALPHA)) <= 1


def test_base_rtt_may_change_under_way(flows: dict[str, Samples]) -> None:
    """A base RTT five packets too long makes the flow queue five packets more."""
    samples = flows["base_given"]
    assert samples[0].cwnd == REST
    assert abs(samples[-1].cwnd - (REST + 5)) <= 1


def test_gamma_may_change_under_way(flows: dict[str, Samples]) -> None:
    """With a gamma of 0.1, six or seven updates close 1 - 0.9^6 to 1 - 0.9^7 of the gap.

    A round trip is 65 to 78 ms. The averaged one is below that of the present window, so a growing
    window gets slightly ahead.
    """
    samples = flows["gamma_changed"]
    gone = (samples[-1].cwnd - REST) / ALPHA
    assert 1 - 0.9**6 <= gone <= 1 - 0.9**7 + 0.1


def test_namespaces_have_alphas_of_their_own(flows: dict[str, Samples]) -> None:
    """Flows of "fast" in namespaces of alpha 30 and 90 share 1 to 3; "fast30" has 30 anywhere."""
    owners = dict(zip(FLOWS, flows["two_namespaces"], strict=True))
    alphas = {("a", "fast"): ALPHA, ("d", "fast"): 3 * ALPHA, ("d", "fast30"): ALPHA}
    whole = PIPE_PACKETS + sum(alphas.values())
    for owner, alpha in alphas.items():
        share = alpha / sum(alphas.values())
        assert owners[owner].cwnd == pytest.approx(share * whole, abs=1.5)


def test_ten_thousand_packets(flows: dict[str, Samples]) -> None:
    """At 1 Gbit/s and an alpha of 5000 the window settles at 10 001 packets, to within 1 %."""
    rest = FAST_BASE_US * 100 / PACKET_US + FAST_ALPHA
    assert rest > 10_000
    for each in flows["many_packets"]:
        assert each.cwnd == pytest.approx(rest, rel=0.01)
        assert each.unacked == pytest.approx(each.cwnd, rel=0.01)
        assert each.retransmitted == 0
