"""Draw the branches of a run: a link, what client and server do, and what a capture should say."""

import json
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Random = np.random.Generator

RUN_S, SENDS_S = 8.0, 5.0
_CONGESTION = (socket.IPPROTO_TCP, socket.TCP_CONGESTION)
_NODELAY = ((socket.IPPROTO_TCP, socket.TCP_NODELAY), 1)
_FRAME_BYTES = 1514


@dataclass(frozen=True)
class Branch:
    """One client and its link.

    Attributes:
        kind: its kind.
        down, up: the link's directions, from the server and to it.
        asks: what the client asks for.
        start_s: when the client starts.
        word: what a sentence on the transfer must name besides its limit; "" for nothing.
        fails: the cause of a connect that fails; "" for none.
    """

    kind: str
    down: Mapping[str, Any]
    up: Mapping[str, Any]
    asks: Sequence[Mapping[str, Any]]
    start_s: float
    word: str = ""
    fails: str = ""


def _delay_ms(value: float) -> float:
    """Round a delay to a multiple of tc's ticks and whole microseconds."""
    return round(round(value / 0.008) * 0.008, 3)


def link(
    random: Random,
    pipes: float = 0,
    rates_mbit: tuple[float, float] = (2, 20),
    trips_ms: tuple[float, float] = (10, 120),
    **down: Any,
) -> dict[str, Any]:
    """Draw a link whose queue holds a number of pipes, by default 1 to 3."""
    rate, trip = (
        float(f"{np.exp(random.uniform(*np.log(between))):.3g}")
        for between in (rates_mbit, trips_ms)
    )
    pipe = rate * trip / 8 * 1000 / _FRAME_BYTES
    queue = max(round((pipes or random.uniform(1, 3)) * pipe), 20)
    direction = {"rate_mbit": rate, "delay_ms": _delay_ms(trip / 2), "queue_packets": queue}
    return {"down": {**direction, **down}, "up": {**direction, "queue_packets": max(queue, 100)}}


def lan(random: Random, **down: Any) -> dict[str, Any]:
    """Draw a link of a LAN, with round trips of 0.1 to 0.3 ms."""
    rate = float(random.choice((100, 1000)))
    direction = {
        "rate_mbit": rate,
        "delay_ms": _delay_ms(random.uniform(0.05, 0.15)),
        "queue_packets": 200,
    }
    return {"down": {**direction, **down}, "up": direction}


def bulk(random: Random, seconds: float = SENDS_S, **ask: Any) -> list[dict[str, Any]]:
    """Ask for as much as the server can send in a time."""
    control = ask.pop("control", str(random.choice(("cubic", "cubic", "reno"))))
    return [{"for_s": seconds, "bytes": 0, "options": [[_CONGESTION, control]], **ask}]


def answers(
    random: Random, size: int, times: int, pause_s: float = 0, **ask: Any
) -> list[dict[str, Any]]:
    """Ask for an answer, again and again."""
    options = [_NODELAY] if random.integers(2) else []
    return [{"bytes": size, "times": times, "pause_s": pause_s, "options": options, **ask}]


def _buffer(kilobytes: float) -> list[Any]:
    return [[[socket.SOL_SOCKET, socket.SO_RCVBUF], round(kilobytes * 1000)]]


def _paced(random: Random, gap_s: tuple[float, float], size: tuple[int, int]) -> dict[str, Any]:
    gap = float(random.uniform(*gap_s))
    return {
        "bytes": int(random.integers(*size)),
        "pieces": round(SENDS_S / gap),
        "gap_s": gap,
        "options": [_NODELAY],
    }


# By kind: its link and what its client asks for; a third value is the rest of the branch.
BRANCHES: dict[str, Callable[[Random], tuple[Any, ...]]] = {
    "bulk": lambda r: (link(r), bulk(r)),
    "small queue": lambda r: (link(r, pipes=r.uniform(0.1, 0.5)), bulk(r)),
    "bbr": lambda r: (link(r), bulk(r, control="bbr")),
    "lossy": lambda r: (
        link(r, rates_mbit=(10, 40), loss={"percent": float(r.choice((0.5, 1, 2)))}),
        bulk(r),
    ),
    "policer": lambda r: (
        link(
            r,
            rates_mbit=(50, 100),
            policer={
                "rate_mbit": round(r.uniform(2, 10), 1),
                "burst_bytes": int(r.integers(20_000, 100_000)),
            },
        ),
        bulk(r),
        {"word": "policer"},
    ),
    "short": lambda r: (
        link(r, rates_mbit=(20, 50), trips_ms=(60, 200)),
        answers(r, int(r.integers(150_000, 500_000)), 1),
    ),
    "window": lambda r: (
        link(r, rates_mbit=(10, 40), trips_ms=(30, 120)),
        bulk(r, mine=_buffer(r.uniform(8, 40))),
    ),
    "zero window": lambda r: (
        link(r, rates_mbit=(10, 40)),
        bulk(
            r,
            mine=_buffer(r.uniform(16, 60)),
            stops=[
                [int(r.integers(100_000, 300_000)), 1.5],
                [int(r.integers(400_000, 600_000)), 1.5],
            ],
        ),
        {"word": "zero window"},
    ),
    "slow reader": lambda r: (
        link(r, rates_mbit=(10, 40), trips_ms=(5, 40)),
        bulk(r, mine=_buffer(r.uniform(8, 40)), reads=4096, reads_s=float(r.uniform(0.005, 0.02))),
    ),
    "paced": lambda r: (link(r, rates_mbit=(10, 40)), [_paced(r, (0.002, 0.02), (200, 1400))]),
    "frames": lambda r: (link(r, rates_mbit=(10, 40)), [_paced(r, (0.02, 0.1), (4000, 30_000))]),
    "lan paced": lambda r: (lan(r), [_paced(r, (0.002, 0.02), (200, 1400))]),
    "rpc": lambda r: (
        link(r, trips_ms=(5, 40)),
        answers(r, int(r.integers(100, 6000)), 200, request=int(r.integers(2000))),
    ),
    "lan rpc": lambda r: (
        lan(r),
        answers(r, int(r.integers(100, 6000)), 400, request=int(r.integers(2000))),
    ),
    "server thinks": lambda r: (
        link(r, trips_ms=(5, 60)),
        answers(r, int(r.integers(100, 20_000)), 20, think_s=float(r.uniform(0.05, 0.3))),
    ),
    "client thinks": lambda r: (
        link(r, trips_ms=(5, 60)),
        answers(r, int(r.integers(100, 20_000)), 20, float(r.uniform(0.05, 0.3))),
    ),
    "lan thinks": lambda r: (
        lan(r),
        answers(r, int(r.integers(100, 40_000)), 60, think_s=float(r.uniform(0.002, 0.1))),
    ),
    "lossy rpc": lambda r: (
        link(r, trips_ms=(5, 40), loss={"percent": 1.0}),
        answers(r, int(r.integers(100, 6000)), 150),
    ),
    "Nagle": lambda r: (
        (lan(r), link(r, trips_ms=(2, 10)))[int(r.integers(2))],
        [{"bytes": int(r.integers(50, 400)), "pieces": 2, "times": 60, "pause_s": 0.001}],
        {"word": "Nagle"},
    ),
    "lan bulk": lambda r: (lan(r), bulk(r, float(r.uniform(0.1, 0.3)))),
    "black hole": lambda r: (
        link(r, mtu_bytes={"bytes": int(r.integers(1000, 1400)), "icmp": False}),
        [{"bytes": 400, "times": 3}, {"bytes": int(r.integers(20_000, 90_000))}],
        {"word": "black hole"},
    ),
    "refused": lambda r: (link(r), answers(r, 1, 1, port=81), {"fails": "refused"}),
    "unanswered": lambda r: (
        link(r, loss={"percent": 100}),
        answers(r, 1, 1),
        {"fails": "no answer"},
    ),
}


# Controls of the guest's kernel; DCTCP needs marks.
CONTROLS = (
    *("reno", "cubic", "bbr", "vegas", "bic", "cdg", "highspeed", "htcp", "hybla", "illinois"),
    *("lp", "nv", "scalable", "veno", "westwood", "yeah"),
)


def draw_controls(random: Random) -> list[Branch]:
    """Draw a bulk transfer with each congestion control, over links that lose in two ways."""
    found = []
    for control in CONTROLS:
        if random.integers(3):
            ends = link(random, random.uniform(0.3, 3), (2, 15), (10, 100))
        else:
            percent = round(float(np.exp(random.uniform(*np.log((0.03, 0.5))))), 3)
            ends = link(random, 3, (20, 30), (10, 60), loss={"percent": percent})
        start_s = 0.1 + float(random.uniform(0, 0.5))
        asks = bulk(random, 20, control=control)
        found.append(Branch(control, ends["down"], ends["up"], asks, start_s))
    return found


def draw(random: Random) -> list[Branch]:
    """Draw a branch of each kind."""
    found = []
    for kind, make in BRANCHES.items():
        ends, asks, *more = make(random)
        start_s = 0.1 + float(random.uniform(0, 0.5))
        found.append(Branch(kind, ends["down"], ends["up"], asks, start_s, **dict(*more)))
    return found


def experiment(
    branches: Sequence[Branch], seed: int, *, merged: bool = False, run_s: float = RUN_S
) -> dict[str, Any]:
    """Write a run of these branches as an experiment's file; branches.py and ends.py are beside it.

    Args:
        branches: the clients.
        seed: of the kernel's random numbers.
        run_s: its length.
        merged: True for packets of many segments in captures, as with offloads (GSO, GRO).
    """
    directions: dict[str, Any] = {}
    clients = []
    for number, branch in enumerate(branches, 1):
        directions |= {f"down{number}": dict(branch.down), f"up{number}": dict(branch.up)}
        command = ["python3", "ends.py", "client", "sv", json.dumps(branch.asks)]
        clients.append(
            {
                "name": f"client{number}",
                "host": f"c{number}",
                "start_s": round(branch.start_s, 4),
                "command": command,
                "files": ["ends.py"],
                "exit_code": None,
            }
        )
    server = {
        "name": "server",
        "host": "sv",
        "command": ["python3", "ends.py", "server", str(run_s - 0.5)],
        "files": ["ends.py"],
        "exit_code": None,
    }
    return {
        "schema": 1,
        "title": "Clients of one server, each over a link of its own kind",
        "topology": {"name": "branches", "parameters": {"branches": len(branches)}},
        "profile": {"directions": directions},
        "stack": {"preset": "linux"},
        "hosts": {"sv": {"gso": merged}},
        "programs": [server, *clients],
        "duration_s": run_s,
        "warm_up_s": 0,
        "seed": seed,
    }
