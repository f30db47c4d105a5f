"""One flow alone: bounds of its round trip and of the link's idle time, by hand."""

from dataclasses import replace

import pytest

from twoway.description.predictions import setup_of
from twoway.runs.points import load_point
from twoway.theory.network import Setup
from twoway.theory.predictions.alone import predict


def _setup(name: str) -> Setup:
    point = load_point(f"pantheon@{name}")
    return setup_of(point.experiment, point.profile, point.graph, point.connections)


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
    found = predict(_setup(point))
    found["idle_s"] = 60 * (1 - found.pop("utilisation.forward"))
    assert found == pytest.approx(expected, rel=1e-9)


def test_other_networks_are_refused() -> None:
    """Networks of two connections, other controls or a small CUBIC buffer are refused."""
    setup = _setup("control=cubic,line=fast")
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
            predict(other)
    just = {**setup.links, "forward": there.with_fields(queue_packets=20)}
    assert predict(replace(setup, links=just))
