"""The theory of ACKs on links that send by a table, against numbers counted by hand."""

from dataclasses import replace
from typing import Any

import pytest

from twoway.description.predictions import setup_of
from twoway.links.rate import Rate
from twoway.runs.points import load_point
from twoway.theory.network import Bottleneck, Setup
from twoway.theory.predictions.ack_clock import predict


def _rate(link: Bottleneck) -> dict[str, Any]:
    given = link.elements.find(Rate)
    assert given
    return given.model_dump()


def _setup(name: str, **rate: Any) -> Setup:
    point = load_point(name)
    found = setup_of(point.experiment, point.profile, point.graph, point.connections)
    back = found.links["reverse"]
    changed = back.with_fields(rate=Rate.model_validate({**_rate(back), **rate}))
    if "grants" in rate:
        changed = replace(changed, ack_s=40 * 8 / changed.rate_bit)
    return replace(found, links={**found.links, "reverse": changed})


@pytest.mark.parametrize(("every_ms", "mbit"), [(3, 4), (4, 3), (5, 2.4)])
@pytest.mark.parametrize(("acks", "segments"), [("every-segment", 1), ("delayed", 2)])
def test_a_grant_for_each_ack(every_ms: int, mbit: float, acks: str, segments: int) -> None:
    """One or two packets of 1500 bytes come down in each interval."""
    (prediction,) = load_point(f"request-grant@every_ms={every_ms},acks={acks}").predictions
    assert prediction.value == pytest.approx(mbit * segments, abs=12e3 * segments / 24e6)


def test_a_grant_for_four_acks() -> None:
    """Grants with room for all ACKs do not slow data; ACKs since the last grant leave together."""
    grants = {"every_ms": 0.54, "bytes": 400}
    found = predict(_setup("request-grant@every_ms=3,acks=every-segment", grants=grants))
    assert found == {"throughput.download": 100, "ack_bunch_max.download": 5}


@pytest.mark.parametrize(("wait", "bunch"), [("0.002", 3), ("0.004", 6), ("0.008", 13)])
def test_acks_that_came_in_a_silence_leave_in_one_bunch(wait: str, bunch: int) -> None:
    """ACKs come every 0.6 ms; silences of 1.4, 3.4 and 7.4 ms bunch 3, 6 and 13 of them."""
    found = predict(_setup(f"wifi-uplink@wait={wait}"))
    assert found["ack_bunch_max.download"] == bunch
    assert found["compression_factor.download"] == pytest.approx(600e3 / (320 / 0.065), abs=0.025)


def test_a_bunch_that_hangs_on_chance_is_not_predicted() -> None:
    """A silence that holds 5 or 6 ACKs, depending on the first ACK's arrival, is refused."""
    with pytest.raises(ValueError, match=r"depend on when the first ACK comes: \[5, 6\]"):
        predict(_setup("wifi-uplink@wait=0.004", schedule=[[0, 65], [0.0008, 0]], repeat_s=0.0042))
