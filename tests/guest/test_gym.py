"""`twoway.gym` asks a policy for windows, and the guest's clock stands still while it thinks."""

import time
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from support.running import FLOW, LINUX

from twoway.errors import SpecError
from twoway.gym import OBSERVED, Control

pytestmark = pytest.mark.usefixtures("guest")

SHORT = {**LINUX, "duration_s": 1, "warm_up_s": 0}


def episode(env: Control, window: float, think_s: float = 0) -> tuple[Any, dict[str, Any]]:
    """Return the observations of an episode with one window, and the last info."""
    seen, info = env.reset(seed=3)
    rows, ended = [seen], False
    while not ended:
        time.sleep(think_s)
        seen, _, _, ended, info = env.step(np.array([window, 0.0]))
        rows += [] if ended else [seen]
    env.close()
    return np.array(rows), info


def test_thinking_takes_no_time_of_the_guest() -> None:
    """A slow policy sees the same numbers as a quick one, and the same metrics at the end."""
    env = Control(SHORT, interval_ms=100)
    quick, slow = episode(env, 5), episode(env, 5, think_s=0.05)
    assert np.array_equal(quick[0], slow[0])
    assert quick[1] == slow[1]
    assert quick[1]["metrics"]["goodput.one"] > 0.1
    assert (quick[0][1:, OBSERVED.index("window_packets")] == 5).all()


def test_declared_thinking_is_charged() -> None:
    """An action is in force `think_ms` after its question, at the next ACK."""
    env = Control(SHORT, interval_ms=0, think_ms=60)
    interval = episode(env, 5)[0][1:, OBSERVED.index("interval_s")]
    assert (interval >= 0.06).all()


def test_each_flow_asks() -> None:
    """Observations name their flows; after an early close(), which leaves nothing, none acts."""
    two = {**SHORT, "flows": [FLOW, {**FLOW, "name": "two"}]}
    env = Control(two, changes={"flows.two.congestion": "policy"}, interval_ms=100)
    _, info = env.reset(seed=1)
    named = {info["flow"]}
    while len(named) < 2:
        *_, ended, info = env.step(np.array([3.0, 1.0]))
        assert not ended
        named.add(info["flow"])
    assert named == {"one", "two"}
    env.close()
    with pytest.raises(ResetNeeded):
        env.step(np.array([3.0, 1.0]))


def test_a_wrong_environment_has_a_sentence() -> None:
    """Nothing is booted for an environment that does not exist, or has another kernel."""
    with pytest.raises(SpecError, match="no such experiment"):
        Control("nonsense").reset(seed=1)
    with pytest.raises(SpecError, match="kernel: must be absent, got wide"):
        Control({**SHORT, "kernel": "wide"}).reset(seed=1)


@pytest.mark.long
def test_the_checks_of_gymnasium_pass() -> None:
    """Spaces, seeds and what reset() and step() return are as Gymnasium requires."""
    env = Control({**SHORT, "duration_s": 0.5}, interval_ms=100)
    check_env(env, skip_render_check=True)
    env.close()
