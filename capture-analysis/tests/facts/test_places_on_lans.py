"""The tap's place on a path with a round trip below a millisecond."""

from typing import Any

import numpy as np
import pytest
from capture_analysis.columns import Mark
from capture_analysis.facts.facts import Facts, Placed
from capture_analysis.metrics.transfer_limits import EVEN
from capture_analysis.one_capture.limit import CANNOT_TELL, limit_of
from capture_analysis.one_capture.single import measure
from measured_captures import values
from scripted import MSS, Script


def writes(
    to_server_us: int, to_client_us: int, answer_us: int, gap_us: int = 5_000, times: int = 100
) -> Script:
    """Make a client that writes now and then, and a server whose ACKs are sooner or later."""
    script = Script(to_server_us + to_client_us, to_server_us)
    for number in range(times):
        now = 10_000 + number * gap_us
        script.data(0, now, MSS)
        script.hears(1)
        script.ack(1, now + answer_us)
    return script


@pytest.mark.parametrize(
    ("to_server_us", "to_client_us", "answer_us", "near"),
    [
        pytest.param(60, 25, 15, True, id="its ACKs are sooner than its answer to a SYN"),
        pytest.param(400, 30, 380, True, id="at the sender of a switched network"),
        pytest.param(34, 29, 6, True, id="nothing tells"),
        pytest.param(20, 300, 8, False, id="at the receiver"),
    ],
)
def test_place_by_the_handshake(
    to_server_us: int, to_client_us: int, answer_us: int, *, near: bool
) -> None:
    """The host that takes half as long in the handshake is the capture's; else the sender's is."""
    measured = measure(writes(to_server_us, to_client_us, answer_us).captured())
    assert (measured.facts.tap_at[0] <= 0.1) == near
    assert (measured.facts.tap_at[0] >= 0.9) != near
    assert limit_of(vars(values(measured, 0))).cause == "application"


@pytest.mark.parametrize(("gap_us", "cause"), [(5_000, "application"), (600, CANNOT_TELL)])
def test_a_link_before_the_tap(gap_us: int, cause: str) -> None:
    """Full segments at an even pace may have passed a link, unless an ACK takes too long on it."""
    found = limit_of(vars(values(measure(writes(34, 29, 6, gap_us, 600).captured()), 0)))
    assert found.cause == cause
    assert (EVEN in found.sentence) == (cause == CANNOT_TELL)


def test_an_application_waits_at_an_unknown_place() -> None:
    """On a LAN the application's waits are seen from an unknown place, too."""
    capture = writes(34, 29, 6).captured()
    capture.whole.marks[:] ^= int(Mark.FIRST_TTL)
    measured = measure(capture)
    assert np.isnan(measured.facts.tap_at).all()
    assert limit_of(vars(values(measured, 0))).cause == "application"


def test_no_place_is_in_the_middle_of_a_lan() -> None:
    """Whatever the times, the place on a LAN is at one of its ends, or unknown."""
    for share in range(1, 20):
        found = measure(writes(10 * share, 200 - 10 * share, 30).captured()).facts.tap_at
        assert not ((found > 0.1) & (found < 0.9)).any()
        assert not np.isnan(found[0])


def signed(
    unfilled: tuple[bool, bool] = (False, False),
    routed: tuple[bool, bool] = (False, False),
    padded: tuple[bool, bool] = (False, False),
    to_server_us: int = 34,
) -> Facts:
    """Return the facts of a LAN's capture: signs of the client's and of the server's packets."""
    capture = writes(to_server_us, 63 - to_server_us, 6).captured()
    packets = capture.whole
    for half in (0, 1):
        rows = packets.half == half
        packets.marks[rows & (packets.payload_bytes == 0)] |= unfilled[half] * int(Mark.UNFILLED)
        packets.marks[rows] ^= routed[half] * int(Mark.FIRST_TTL)
        packets.frame_bytes[rows & (packets.frame_bytes < 60)] += 6 * padded[half]
    return measure(capture).facts


@pytest.mark.parametrize(
    ("signs", "at", "words"),
    [
        ({"unfilled": (True, False)}, 0, ["checksums"]),
        ({"unfilled": (False, True)}, 1, ["checksums"]),
        ({"unfilled": (True, True)}, 0, []),
        ({"padded": (False, True)}, 0, ["padding"]),
        ({"padded": (True, False)}, 1, ["padding"]),
        ({"padded": (True, True)}, 0, []),
        ({"routed": (False, True)}, 0, ["ttl"]),
        ({"routed": (True, False)}, 1, ["ttl"]),
        ({"routed": (True, True)}, np.nan, ["ttl"]),
        ({"to_server_us": 10}, 1, ["times"]),
        ({"to_server_us": 10, "routed": (False, True)}, np.nan, ["times", "ttl"]),
        ({"to_server_us": 10, "unfilled": (True, False)}, 0, ["checksums"]),
        ({"unfilled": (True, False), "padded": (True, False)}, np.nan, ["checksums", "padding"]),
        ({"unfilled": (True, False), "padded": (False, True)}, 0, ["checksums", "padding"]),
    ],
)
def test_place_by_signs(signs: dict[str, Any], at: float, words: list[str]) -> None:
    """What a path does to packets places the tap; if its signs contradict, nothing does."""
    facts = signed(**signs)
    assert facts.tap_at.tolist() == pytest.approx([at, 1 - at] if words else [0, 0], nan_ok=True)
    assert Placed(int(facts.tap_evidence[0])).words() == words
