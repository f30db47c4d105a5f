"""FAST transfers that come and go: the paper's Markov chain.

After Ge et al. (2011), section 6 and figure 5. The chain is an average over all arrivals; a run has
one series of them. The chain gets the run's offered loads, not the rates from which the run was
drawn.

A state is (n, m): n flows with data on F, m flows with data on B. They arrive as Poisson processes,
have exponential sizes of mean 1/mu, and share the link by Theorem 1 with equal alphas and ACKs of b
data packets. Each flow then sends at

    C(n, m) = 1 / max(A, B),    A = (n + b m) / c_F,    B = (b n + m) / c_B

and F is the bottleneck if A >= B: n >= theta m, if theta exists. That is the paper's C, also in its
degenerate cases.

The chain is solved exactly on the states with n + m <= largest; arrivals beyond are blocked. An
arrival or departure leads from one level n + m to a neighbour, so the balance equations are solved
level by level from the last: pi_k = pi_(k-1) R_k.

The truncation changes no fraction by more than `Fractions.error`. For the function h that solves
Poisson's equation of the whole chain for an indicator, the error is exactly

    sum over the last level of pi(x) sum over arrivals of rate (h(x + arrival) - h(x)),

and |h(x)| is at most the mean time from x until the system is empty. V = n / c_F + m / c_B falls by
at least mu (1 - rho) per unit of time, rho = (lambda_F / c_F + lambda_B / c_B) / mu, so this time
is at most V / (mu (1 - rho)). If rho >= 1, at loads near the links' own limit, the bound uses the
drift far from the dividing line, 1 - load, in place of (1 - rho): an estimate, not proved.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from twoway.theory.network import Bottleneck, Setup

# Enough for figure 5 up to a load of 0.8: compared with 140 no fraction differs by more than
# 0.0002.
_LARGEST = 60


FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Arrivals:
    """Traffic and link.

    Attributes:
        forward, backward: lambda_F and lambda_B, flows/s.
        size_bit: mean size of a flow, 1/mu.
        forward_bit, backward_bit: c_F and c_B, bit/s.
        ack_share: b, size of an ACK over that of a data packet.
    """

    forward: float
    backward: float
    size_bit: float
    forward_bit: float
    backward_bit: float
    ack_share: float

    @property
    def loads(self) -> tuple[float, float]:
        """Offered load, ACKs included, over capacity; of F and of B.

        The chain has an equilibrium if both are below 1.
        """
        b = self.ack_share
        return (
            (self.forward + b * self.backward) * self.size_bit / self.forward_bit,
            (b * self.forward + self.backward) * self.size_bit / self.backward_bit,
        )


@dataclass(frozen=True)
class Fractions:
    """Fractions of time as in the paper's figure 5.

    Attributes:
        forward: fraction of time in which F is the bottleneck, alone or with B.
        backward: fraction in which only B is.
        empty: fraction in which there are no flows.
        mean_forward, mean_backward: mean numbers of flows.
        error: bound of the error of these three fractions by truncation.
        is_proved: True if the bound is a theorem, not an estimate.
    """

    forward: float
    backward: float
    empty: float
    mean_forward: float
    mean_backward: float
    error: float
    is_proved: bool


def fractions(arrivals: Arrivals, largest: int = 200) -> Fractions:
    """Solve the chain.

    Args:
        arrivals: rates, sizes and capacities.
        largest: number of flows at which arrivals are blocked; the computing time grows with its
            fourth power.

    Raises: ValueError if a load is 1 or more: there is no equilibrium.
    """
    if max(arrivals.loads) >= 1:
        forward, backward = arrivals.loads
        raise ValueError(f"loads must be below 1, got {forward:.3f} forward, {backward:.3f} back")
    levels = _stationary(arrivals, largest)
    share_forward = share_backward = mean_forward = mean_backward = 0.0
    for k, level in enumerate(levels):
        n, m = np.arange(k + 1.0), k - np.arange(k + 1.0)
        delay_f, delay_b = _delays(arrivals, n, m)
        share_forward += float(level[(delay_f >= delay_b) & (k > 0)].sum())
        share_backward += float(level[delay_f < delay_b].sum())
        mean_forward += float(level @ n)
        mean_backward += float(level @ m)
    error, is_proved = _error(arrivals, levels)
    return Fractions(
        share_forward,
        share_backward,
        float(levels[0][0]),
        mean_forward,
        mean_backward,
        error,
        is_proved,
    )


def _delays(arrivals: Arrivals, n: FloatArray, m: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute A and B of some states, s/bit; the larger is 1 / C."""
    b = arrivals.ack_share
    return (n + b * m) / arrivals.forward_bit, (b * n + m) / arrivals.backward_bit


def _stationary(arrivals: Arrivals, largest: int) -> list[FloatArray]:
    """Compute the states' probabilities by level.

    Returns: for level k the states n = 0..k, shape (k + 1,).
    """
    factors: list[FloatArray] = []
    falls: FloatArray = np.zeros((0, 0))
    for k in range(largest, 0, -1):
        n, m = np.arange(k + 1.0), k - np.arange(k + 1.0)
        per_flow = 1 / np.maximum(*_delays(arrivals, n, m)) / arrivals.size_bit
        rises = 0.0 if k == largest else arrivals.forward + arrivals.backward
        leaves = np.diag(k * per_flow + rises)
        if k < largest:
            leaves -= factors[-1] @ falls
        arrive = np.zeros((k, k + 1))
        rows = np.arange(k)
        arrive[rows, rows] = arrivals.backward
        arrive[rows, rows + 1] = arrivals.forward
        factors.append(np.asarray(np.linalg.solve(leaves.T, arrive.T).T, dtype=np.float64))
        falls = np.zeros((k + 1, k))
        falls[rows, rows] = (m * per_flow)[:-1]
        falls[rows + 1, rows] = (n * per_flow)[1:]
    levels: list[FloatArray] = [np.ones(1)]
    for factor in reversed(factors):
        levels.append(levels[-1] @ factor)
    total = sum(float(level.sum()) for level in levels)
    return [level / total for level in levels]


def _error(arrivals: Arrivals, levels: list[FloatArray]) -> tuple[float, bool]:
    """Bound a fraction's error; tell whether the bound is proved.

    The bound is at most 1.
    """
    forward_bit, backward_bit = arrivals.forward_bit, arrivals.backward_bit
    weighted = arrivals.size_bit * (
        arrivals.forward / forward_bit + arrivals.backward / backward_bit
    )
    is_proved = weighted < 1 and arrivals.ack_share <= min(
        forward_bit / backward_bit, backward_bit / forward_bit
    )
    drift = (1 - weighted if is_proved else 1 - max(arrivals.loads)) / arrivals.size_bit
    k = len(levels) - 1
    n = np.arange(k + 1)
    height = n / forward_bit + (k - n) / backward_bit
    steps = arrivals.forward * (2 * height + 1 / forward_bit)
    steps += arrivals.backward * (2 * height + 1 / backward_bit)
    return min(float(levels[-1] @ steps) / drift, 1.0), bool(is_proved)


def predict(setup: Setup) -> dict[str, float]:
    """Predict the share of time of each direction as the bottleneck, and of an empty link.

    Raises: ValueError unless all connections are FAST transfers with one alpha, over one link.
    """
    first = setup.connections[0]
    names = (first.direction, first.ack_direction)
    links = [setup.links[name] for name in names]
    sizes: dict[str, list[float]] = {name: [] for name in names}
    for each in setup.connections:
        if each.transfer_bytes is None or each.alpha_packets != first.alpha_packets:
            raise ValueError(f"is about FAST transfers with one alpha; {each.name} is not")
        if {*each.directions, *each.ack_directions} != set(names):
            raise ValueError(
                f"is about one link with both directions; {each.name} does not pass it alone"
            )
        link = setup.links[each.direction]
        sizes[each.direction].append(each.transfer_bytes * 8 / link.payload_share)
    found = _solved(*(tuple(sizes[name]) for name in names), *links, setup.duration_s)
    return {
        f"bottleneck_time.{names[0]}": found.forward,
        f"bottleneck_time.{names[1]}": found.backward,
        "neither_busy": found.empty,
    }


@cache
def _solved(
    forward: tuple[float, ...],
    backward: tuple[float, ...],
    forward_link: Bottleneck,
    backward_link: Bottleneck,
    duration_s: float,
) -> Fractions:
    """Solve the chain for the offered loads of some transfers, bit."""
    size_bit = (sum(forward) + sum(backward)) / (len(forward) + len(backward))
    arrivals = Arrivals(
        sum(forward) / size_bit / duration_s,
        sum(backward) / size_bit / duration_s,
        size_bit,
        forward_link.rate_bit,
        backward_link.rate_bit,
        forward_link.ack_s / forward_link.data_s,
    )
    return fractions(arrivals, _LARGEST)
