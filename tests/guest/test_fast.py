"""FAST TCP against its closed forms, on the real kernel.

The link of most of these tests is the profile fast-10mbit: 10 Mbit/s, packets of 1000 bytes and
ACKs of 40, 2 ms of propagation, and a queue that is never full. A packet takes 0.8 ms, so an empty
path holds 2.832 / 0.8 = 3.54 packets, and a queue of n packets delays by n times 0.8 ms.
"""

import json
import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.guest.fast_parameters import ACCEPTED, REFUSED, SYSCTLS
from support.running import ROOT, write_experiment
from support.runs import carry_out, kept_in_guest

from twoway.backends.uml import Uml
from twoway.contract.network import START_NS
from twoway.contract.plan import Plan, UserProgram
from twoway.description.point import Point
from twoway.guest.cache import Guest
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute
from twoway.plan.plan import build_plan
from twoway.plan.shaping import compile_profile
from twoway.runs import identity, run

PACKET_US = 800
BASE_US = 2000 + PACKET_US + 32
PIPE_PACKETS = BASE_US / PACKET_US
VEGAS_INFO = (ROOT / "tests/support/guest/vegas_info.py").read_text("utf-8")
TCP_CA_RECOVERY, TCP_CA_LOSS = 3, 4


def flow(alpha: int, name: str = "only", **more: Any) -> dict[str, Any]:
    """Make a FAST flow from h1 to h2, with other fields as given."""
    ends = {"from": "h1", "to": "h2"}
    return {"name": name, **ends, "congestion": "fast", "alpha_packets": alpha, **more}


def experiment(flows: Sequence[dict[str, Any]], seconds: float, **more: Any) -> dict[str, Any]:
    """Make an experiment on the link above, with its second half measured unless `more` differs."""
    return {
        "schema": 1,
        "title": "FAST",
        "summary": "For tests.",
        "topology": {"name": "two_node"},
        "profile": "fast-10mbit",
        "stack": {"mtu_bytes": 1000},
        "flows": list(flows),
        "duration_s": seconds,
        "warm_up_s": seconds / 2,
        "observe": {"tcp_info_ms": 1},
        **more,
    }


def with_base(base_us: int = BASE_US, **more: int) -> dict[str, Any]:
    """Return module parameters: a given base round trip, and others."""
    return {"tcp_fast": {"base_rtt_us": base_us, **more}}


class Outcome:
    """A run with its analysis; all fidelity checks held."""

    def __init__(self, guest: Guest, folder: Path, document: dict[str, Any]) -> None:
        self.folder = carry_out(write_experiment(folder, document), folder / "results", Uml(guest))
        self.analysis = Analysis(self.folder)
        found = compute(self.analysis)
        assert found.sound, found.fidelity
        self.metrics = {n: row.value for n, row in found.metrics.items() if row.value is not None}
        columns = ("time_ns", "cwnd", "ssthresh", "ca_state", "retransmits")
        self.sockets = self.analysis.run.numbers("sockets/tcp-info.csv", *columns)
        self.ms = (self.sockets["time_ns"] - START_NS) / 1e6

    def cwnd_levels(self) -> list[int]:
        """Return the window's values in order, for a run with one connection."""
        cwnd = self.sockets["cwnd"]
        return [int(level) for level in cwnd[np.append(True, np.diff(cwnd) != 0)]]

    def vegas(self, at_s: float) -> dict[str, int]:
        """Return the module's report on the first connection at a time."""
        said: dict[str, dict[str, int]] = json.loads(
            (self.folder / f"programs/vegas-{at_s:g}.out").read_text()
        )
        return said["40001"]


def test_parameters_are_checked(guest: Guest, tmp_path: Path) -> None:
    """Each parameter out of range is refused with a sentence; the ends of its range load.

    Parameters are the initial sysctls of every namespace, whose ranges are the same.
    """
    program = ROOT / "tests/support/guest/fast_parameters.py"
    kept_in_guest(guest, tmp_path / "run", program, modules="tcp_fast")
    found = json.loads((tmp_path / "run/loaded.json").read_text())
    assert {row["case"]: row["said"][-1] for row in found if row["status"]} == REFUSED
    loaded = [row for row in found if not row["status"]]
    assert [row["case"] for row in loaded] == list(ACCEPTED)
    first = {"alpha": 100, "base_rtt_us": 0, "every_other_rtt": 0, "gamma": 500, "ns2": 0}
    most = {"base_rtt_us": 2**31 - 1, "every_other_rtt": 1, "gamma": 1000}
    for row, given in zip(loaded, ({}, {"gamma": 1, "ns2": 63}, most), strict=True):
        assert row["sysctls"] == {"first": first | given, "later": first | given}
        assert row["taken"] == {name: list(values[:2]) for name, values in SYSCTLS.items()}


@pytest.mark.parametrize(("alpha", "gamma"), [(10, 100), (100, 500)])
def test_one_flow_queues_alpha(guest: Guest, tmp_path: Path, alpha: int, gamma: int) -> None:
    """A single flow keeps alpha packets queued: its window is the path's packets plus alpha.

    With a gamma of 0.1, whole windows in the module would stop the growth ten packets short.
    """
    document = experiment([flow(alpha)], 4, modules=with_base(gamma=gamma))
    outcome = Outcome(guest, tmp_path, document)
    window = PIPE_PACKETS + alpha
    steady = outcome.sockets["cwnd"][outcome.ms >= 2000]
    # A window is a whole number: rounded up, rounded down, or alternating.
    assert set(steady.tolist()) <= {math.floor(window), math.ceil(window)}
    assert outcome.metrics["utilisation.forward"] == pytest.approx(1, abs=1e-6)
    # The packet in service does not wait; one packet more of window is one more in the queue.
    assert outcome.metrics["queue_mean.forward"] == pytest.approx(alpha + 1, abs=1)


def test_delayed_acks_leave_alpha(guest: Guest, tmp_path: Path) -> None:
    """With delayed ACKs, and so half as many samples, a flow settles at the same window.

    The second of two segments is timed, and its ACK comes at once.
    """
    stack = {"mtu_bytes": 1000, "acks": "delayed"}
    outcome = Outcome(guest, tmp_path, experiment([flow(30)], 4, stack=stack, modules=with_base()))
    assert outcome.metrics["ack_to_data.only"] == pytest.approx(0.5, abs=0.01)
    steady = outcome.sockets["cwnd"][outcome.ms >= 2000]
    window = PIPE_PACKETS + 30
    assert set(steady.tolist()) <= {math.floor(window), math.ceil(window)}
    assert outcome.metrics["utilisation.forward"] == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("gamma", [250, 500])
def test_error_shrinks_by_gamma(guest: Guest, tmp_path: Path, gamma: int) -> None:
    """Each update closes gamma of the gap to equilibrium, from a window fifteen times too large.

    FAST updates in every other round trip, so that the averaged round trip is that of the present
    window. Only a part of (1 - 3/w)^w, at most e^-3, is still the round trip of the window before.
    """
    stack = {"mtu_bytes": 1000, "initial_window_packets": 500}
    document = experiment(
        [flow(30)], 4, stack=stack, modules=with_base(gamma=gamma, every_other_rtt=1)
    )
    levels = Outcome(guest, tmp_path, document).cwnd_levels()
    window, keep = PIPE_PACKETS + 30, 1 - gamma / 1000
    falling = [level for level in levels[1:] if level > window + 2]
    assert len(falling) >= 5
    # The round trip of the window before is longer by the factor 1/keep. Its part of the average
    # makes RTT too large, and so moves the law's baseRTT/RTT w, here the 3.54 packets of an empty
    # path.
    stale = math.exp(-3) * (1 / keep - 1)
    tolerance = 0.5 + 0.5 * keep + (1 - keep) * PIPE_PACKETS * stale
    for before, after in pairwise(falling):
        assert after - window == pytest.approx(keep * (before - window), abs=tolerance)


@pytest.mark.parametrize("acks", ["every-segment", "delayed"])
def test_growth_without_delay(guest: Guest, tmp_path: Path, acks: str) -> None:
    """Without queueing delay the window doubles, then grows by gamma alpha per round trip.

    The same holds with delayed ACKs, which count as many packets as they acknowledge. The given
    base round trip is above any real one, so the law sees no delay; the path is 100 Mbit/s and 20
    ms, and a round's packets take less than half of it.
    """
    document = experiment(
        [flow(30)],
        0.24,
        profile="fast-100-10mbit",
        modules=with_base((1 << 31) - 1),
        stack={"mtu_bytes": 1000, "acks": acks},
    )
    outcome = Outcome(guest, tmp_path, document)
    # Packets leave in bursts, one per round trip; sample while all are in flight, 1 ms before the
    # next burst.
    round_ms = 20 + 0.08 + 0.032
    looks = [np.searchsorted(outcome.ms, (n + 1) * round_ms - 1) for n in range(11)]
    windows = [int(outcome.sockets["cwnd"][at]) for at in looks]
    growth = np.diff(windows).tolist()
    assert windows[0] == 10
    assert growth[0] == 9  # to 20: the increase's last packet waits for the next round's ACK
    assert growth[3:] == [15] * 7
    view = outcome.analysis.connections["only"]
    sent, acked = view.sent.data().time_ns, view.acks.arrived_ns
    answered = acked[acked < outcome.analysis.run.stop_ns]
    released = np.diff(np.searchsorted(sent, answered))
    # An ACK releases one or two packets, or one more as part of an increase.
    assert set(released.tolist()) == ({1, 2} if acks == "every-segment" else {1, 2, 3})


def test_alphas_share_the_link(guest: Guest, tmp_path: Path) -> None:
    """With the true base round trip, alphas of 20 and 60 get 1/4 and 3/4, and queue 20 and 60."""
    flows = [
        flow(20, "small", **{"from": "l1", "to": "r1"}),
        flow(60, "large", **{"from": "l2", "to": "r2"}),
    ]
    topology = {"name": "dumbbell", "parameters": {"pairs": 2}}
    document = experiment(flows, 6, topology=topology, modules=with_base())
    outcome = Outcome(guest, tmp_path, document)
    for name, alpha, share in (("small", 20, 0.25), ("large", 60, 0.75)):
        windows = PIPE_PACKETS + 80
        error = _rounding(share, 2, windows) + _window_end(share, windows, 3)
        assert outcome.metrics[f"throughput.{name}"] / 10 == pytest.approx(share, abs=error)
        # The waiting packets, and a share of the packet in service.
        assert outcome.metrics[f"queued_mean.{name}"] == pytest.approx(alpha + share, abs=1)


def _rounding(share: float, count: int, windows: float) -> float:
    """Return how a flow's share changes if each window has half a packet more or less."""
    return 0.5 * ((1 - share) + (count - 1) * share) / windows


def _window_end(share: float, windows: float, seconds: float) -> float:
    """Return the share of packets that a window of time may gain or lose at its ends."""
    return share * windows * PACKET_US / (seconds * 1e6)


def settled(alpha: float, errors: Sequence[float]) -> tuple[list[float], float]:
    """Compute shares and queue (packets) of flows, each starting when the others are settled.

    Each counts the queue that it finds as part of the path: base_i is the queue before it, plus an
    error. The queue Q solves sum alpha / (Q - base_i) = 1.
    """
    bases: list[float] = []
    queue = 0.0
    for error in errors:
        bases.append(queue + error)
        low, high = max(bases), max(bases) + alpha * (len(bases) + 1)
        for _ in range(60):
            queue = (low + high) / 2
            low, high = (
                (queue, high) if sum(alpha / (queue - b) for b in bases) > 1 else (low, queue)
            )
    return [alpha / (queue - base) for base in bases], queue


@pytest.mark.parametrize("count", [2, 3])
def test_late_starters_take_more(guest: Guest, tmp_path: Path, count: int) -> None:
    """Flows that start later measure the queue as part of their base round trip and get more."""
    alpha, apart_s = 50, 4
    names = ["one", "two", "three"][:count]
    flows = [  # each flow connects at its start, when packets wait, not earlier at an empty queue
        flow(
            alpha,
            name,
            connect="at-start",
            start_s=apart_s * n,
            **{"from": f"l{n + 1}", "to": f"r{n + 1}"},
        )
        for n, name in enumerate(names)
    ]
    document = experiment(
        flows,
        apart_s * (count + 1),
        topology={"name": "dumbbell", "parameters": {"pairs": count}},
        warm_up_s=apart_s * count,
        observe={"tcp_info_ms": 20},
    )
    outcome = Outcome(guest, tmp_path, document)
    shares, queue = settled(alpha, [0] * count)
    windows = PIPE_PACKETS + queue
    for index, name in enumerate(names):
        error = sum(
            abs(settled(alpha, [e == other for e in range(count)])[0][index] - shares[index])
            for other in range(count)
        )  # a base may be a packet off: windows are whole, and a short segment measured the base
        error += _rounding(shares[index], count, windows)
        error += _window_end(shares[index], windows, apart_s)
        got = outcome.metrics[f"throughput.{name}"] / 10
        assert got == pytest.approx(shares[index], abs=error), error
    off = sum(
        abs(settled(alpha, [e == other for e in range(count)])[1] - queue) for other in range(count)
    )
    assert outcome.metrics["queue_mean.forward"] - 1 == pytest.approx(queue, abs=off + count / 2)


def _interfere(
    monkeypatch: pytest.MonkeyPatch, interface: str, bad: str, good: str, for_s: float
) -> None:
    """Change a netem for a while at 2 s of traffic; query the module before and after."""

    def plan(point: Point, *, in_kernel: bool) -> Plan:
        shapers = compile_profile(point.profile, point.graph)
        shaper = next(s for s in shapers if s.interface.name == interface)
        change = f"tc qdisc change dev {interface} root handle 1: {' '.join(shaper.arguments)}"
        program = f"{change} {bad}; sleep {for_s}; {change} {good}"
        node = shaper.interface.node
        drop = _at(2, "drop", node, "sh", "-c", program)
        programs = (_vegas_at(1.9), drop, _vegas_at(2.1), _vegas_at(3.9))
        built = build_plan(point, in_kernel=in_kernel)
        return built.model_copy(update={"user_programs": programs})

    for module in (run, identity):
        monkeypatch.setattr(module, "build_plan", plan)


def _vegas_at(at_s: float) -> UserProgram:
    return _at(at_s, f"vegas-{at_s:g}", "h1", "python3", "-I", "-c", VEGAS_INFO)


def _at(at_s: float, name: str, node: str, *run: str) -> UserProgram:
    return UserProgram(
        name=name,
        node=node,
        stdout=f"programs/{name}.out",
        run=run,
        at_ns=START_NS + round(at_s * 1e9),
        stop_ns=START_NS + round((at_s + 1.5) * 1e9),
        exit_code=0,
        environment={},
        files={},
    )


def _assert_same_round_trips(outcome: Outcome) -> None:
    """Check that base and averaged round trips are those before the loss, and never above them."""
    before, during, after = (outcome.vegas(at_s) for at_s in (1.9, 2.1, 3.9))
    assert before["base_rtt_us"] == during["base_rtt_us"] == after["base_rtt_us"]
    assert during["rtt_us"] <= before["rtt_us"]
    assert after["rtt_us"] == before["rtt_us"]
    assert before["enabled"] == during["enabled"] == after["enabled"] == 1


def test_one_loss_halves_the_window(
    guest: Guest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After one dropped packet, recovery halves the window; then FAST grows it back.

    The queue's limit is 1 for less than a packet's time, so exactly one packet is dropped.
    """
    _interfere(monkeypatch, "r1-eth1", "limit 1", "", 0.0004)
    outcome = Outcome(guest, tmp_path, experiment([flow(30)], 4))
    cwnd, state = outcome.sockets["cwnd"], outcome.sockets["ca_state"]
    before = int(cwnd[outcome.ms < 2000][-1])
    assert outcome.metrics["drops_data.forward"] == 1
    assert outcome.sockets["retransmits"][-1] == 1
    recovery = np.flatnonzero(state == TCP_CA_RECOVERY)
    assert set(state.tolist()) <= {0, 1, TCP_CA_RECOVERY}
    assert np.diff(recovery).max() == 1  # there is one recovery
    assert cwnd[outcome.ms > 2000].min() == before // 2
    assert cwnd[recovery[-1] + 1] == before // 2
    assert np.all(np.diff(cwnd[recovery]) <= 0)
    assert np.all(np.diff(cwnd[recovery[-1] + 1 :]) >= 0)
    assert cwnd[-1] == before
    _assert_same_round_trips(outcome)


def test_timeout_slow_starts_to_half(
    guest: Guest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a window and its probe are lost, slow start runs from one packet to half; then FAST.

    Behind the bottleneck all packets are lost for 100 ms, four round trips.
    """
    _interfere(monkeypatch, "r2-eth0", "loss 100%", "loss 0%", 0.1)
    outcome = Outcome(guest, tmp_path, experiment([flow(30)], 4))
    cwnd, state = outcome.sockets["cwnd"], outcome.sockets["ca_state"]
    before = int(cwnd[outcome.ms < 2000][-1])
    loss = np.flatnonzero(state == TCP_CA_LOSS)
    assert cwnd[loss[0]] == 1
    assert cwnd[loss[-1]] == before // 2
    assert cwnd[loss].max() == before // 2
    assert np.all(np.diff(cwnd[loss]) >= 0)
    after = cwnd[loss[-1] + 1 :]
    assert after[0] == before // 2
    assert np.all(np.diff(after) >= 0)
    assert after[-1] == before
    _assert_same_round_trips(outcome)


# The bits of net.ipv4.fast.ns2. The path has 100 Mbit/s and 20 ms; the given base round trip is
# above any real one, so no queueing delay is measured.
FLOWN, THRESHOLD, UPDATES, WHOLE, INCREASES = 1, 4, 8, 16, 32
NO_DELAY = (1 << 31) - 1


def _growth_as_ns2(guest: Guest, folder: Path, bit: int, rounds: int) -> list[int]:
    """Return the increase of the window in each of the first round trips without queueing delay."""
    round_ms = 20 + 0.08 + 0.032
    seconds = math.ceil((rounds + 1) * round_ms) / 1000
    modules = with_base(NO_DELAY, ns2=bit)
    document = experiment([flow(30)], seconds, profile="fast-100-10mbit", modules=modules)
    outcome = Outcome(guest, folder, document)
    looks = [np.searchsorted(outcome.ms, (n + 1) * round_ms - 1) for n in range(rounds)]
    windows = [int(outcome.sockets["cwnd"][at]) for at in looks]
    assert windows[0] == 10
    return [int(step) for step in np.diff(windows)]


def test_ns2_counts_the_packets_flown(guest: Guest, tmp_path: Path) -> None:
    """With packets in flight f in the law, the growth per round trip settles at 10, not at 15.

    Without delay f lags by a round's growth d, so that d = gamma (alpha - d). Whole windows on
    either side of the law make d wrong by at most 0.75, which halves each round.
    """
    growth = _growth_as_ns2(guest, tmp_path, FLOWN, 12)
    assert all(abs(step - 10) <= 2 for step in growth[5:])
    assert sum(growth[5:]) == pytest.approx(10 * len(growth[5:]), abs=2)


def test_ns2_adds_a_packet_for_each_ack(guest: Guest, tmp_path: Path) -> None:
    """Below the threshold of queueing delay the window doubles in each round trip."""
    assert _growth_as_ns2(guest, tmp_path, THRESHOLD, 5) == [10, 20, 40, 80]


def test_ns2_updates_in_every_other_round_trip(guest: Guest, tmp_path: Path) -> None:
    """The window grows by gamma alpha in every other round trip.

    The ACKs of a round take less than 10 ms. The first increase doubles the window, a packet with
    each ACK, and the last of these comes in the next round trip.
    """
    assert _growth_as_ns2(guest, tmp_path, UPDATES, 11) == [9, 1] + [15, 0] * 4


def test_ns2_takes_each_increase_within_10_ms(guest: Guest, tmp_path: Path) -> None:
    """In a round trip longer than 10 ms the window grows by gamma alpha every 10 ms, or not at all.

    From 400 packets on, ACKs never pause. An update waits for the next ACK, at most 0.08 ms.
    """
    document = experiment(
        [flow(30)], 2, profile="fast-100-10mbit", modules=with_base(NO_DELAY, ns2=UPDATES)
    )
    cwnd = Outcome(guest, tmp_path, document).sockets["cwnd"]
    growth = cwnd[10:] - cwnd[:-10]
    growth = growth[cwnd[:-10] > 400]
    assert np.median(growth[growth > 0]) == 15
    assert growth.max() <= 16
    assert 0.3 < (growth == 0).mean() < 0.5


def test_ns2_cuts_windows(guest: Guest, tmp_path: Path) -> None:
    """A window that should grow by a quarter of a packet per round trip does not grow.

    It is 11: its first round trip found no queue, and gave it gamma alpha, 1. Then 7.46 packets
    wait, and gamma (10 - 7.46) is less than 1.
    """
    document = experiment([flow(10)], 4, modules=with_base(gamma=100, ns2=WHOLE))
    assert Outcome(guest, tmp_path, document).cwnd_levels() == [10, 11]


def test_ns2_cuts_increases(guest: Guest, tmp_path: Path) -> None:
    """A window that should grow by less than a packet per round trip does not grow.

    20.112 ms hold 251.4 packets of 0.08 ms. With 272 of them 20.6 wait, and gamma (30 - 20.6) is
    less than 1. The average round trip is up to two round trips old, in which two more are added.
    With fractions the window would be 281.4.
    """
    document = experiment(
        [flow(30)], 4, profile="fast-100-10mbit", modules=with_base(20112, gamma=100, ns2=INCREASES)
    )
    assert 272 <= Outcome(guest, tmp_path, document).cwnd_levels()[-1] <= 274
