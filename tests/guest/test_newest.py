"""Virtual time on other kernels: Debian's newest, and with `--guest 6.1` its oldest."""

import json
import struct
from collections import Counter
from pathlib import Path

import pytest
import yaml
from support.running import SMALL, write_experiment
from zstandard import ZstdDecompressor

from twoway.backends.uml import Uml
from twoway.description.point import find_source
from twoway.guest.cache import Guest
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute
from twoway.runs.points import load_point
from twoway.runs.run import run_experiment

pytestmark = pytest.mark.newest

# Virtual seconds of an experiment, enough for the first losses and bunches of ACKs.
SHORT_S = 3.0
ECE, CWR = 64, 128
LINE = {"rate_mbit": 8, "delay_ms": 20, "queue_packets": 200}
WARM_UP_S = 1.0


@pytest.mark.parametrize("name", ["kalampoukas-5.2", "zhang-fig8", "modern-cc"])
def test_an_experiment_repeats(guest: Guest, tmp_path: Path, name: str) -> None:
    """Two runs of an experiment leave the same bytes in their captures."""
    document = {**find_source(name).document}
    for field in ("predictions", "claims", "findings", "unclaimed", "theory", "matrix"):
        document.pop(field, None)
    document.update(duration_s=SHORT_S, warm_up_s=WARM_UP_S)
    experiment = tmp_path / f"{name}.yml"
    experiment.write_text(yaml.safe_dump(document))
    runs = [
        run_experiment(load_point(str(experiment)), Uml(guest), tmp_path / n)
        for n in ("one", "two")
    ]
    captures = [
        {path.name: path.read_bytes() for path in sorted((run / "pcap").iterdir())} for run in runs
    ]
    assert all(captures[0].values())
    assert captures[0] == captures[1]


@pytest.fixture
def newest(guest: Guest) -> Guest:
    """The newest kernel, without which a test is skipped."""
    if guest.flavour != "newest":
        pytest.skip("this needs --guest newest, as `make test LAYER=newest` gives it")
    return guest


def test_dualpi2_marks(newest: Guest, tmp_path: Path) -> None:
    """DualPI2 has the profile's limit, and its marks are counted, even if tc does not know it."""
    point = load_point("dualpi2@aqm=dualpi2,ecn=on,control=cubic")
    run = run_experiment(point, Uml(newest), tmp_path)
    (queue,) = (
        qdisc
        for qdisc in json.loads((run / "qdisc/r1-after.json").read_text())
        if qdisc["kind"] == "dualpi2"
    )
    assert queue["options"]["limit"] == point.profile.directions["forward"].queue_packets
    assert queue["ecn_mark"] > 0  # the number is random


def test_accecn_counts_marks(newest: Guest, tmp_path: Path) -> None:
    """Both ends agree on AccECN, and the last ACK has counted the marks of the queue."""
    flow = {"name": "flow", "from": "h1", "to": "h2", "congestion": "cubic", "connect": "at-start"}
    document = {
        **SMALL,
        "duration_s": 5,
        "flows": [flow],
        "stack": {"preset": "linux", "ecn": "accecn"},
    }
    document["profile"] = {"directions": {"forward": {**LINE, "aqm": "dualpi2"}, "reverse": LINE}}
    point = load_point(str(write_experiment(tmp_path, {**document, "kernel": "newest"})))
    analysis = Analysis(run_experiment(point, Uml(newest), tmp_path / "results"))
    (each,) = analysis.run.connections
    sent, acks = (
        analysis.run.packets_between(each.source_interface, each, forward=forward).flags
        & (ECE | CWR)
        for forward in (True, False)
    )
    assert sent[0] == ECE | CWR
    assert acks[0] == CWR  # ECN as in RFC 3168 has ECE here
    marks = compute(analysis).metrics["marks.forward"].value
    assert marks
    # A counter of three bits that begins at 5; these flags are two of them.
    assert acks[-1] // ECE == (5 + int(marks)) % 4


def test_data_of_prague_reach_the_l_queue(newest: Guest, tmp_path: Path) -> None:
    """Prague's data have ECT(1) or a mark, which the queue counts, and half wait below 1 ms."""
    document = {**SMALL, "kernel": "newest", "stack": {"preset": "linux", "ecn": "accecn"}}
    document["flows"] = [{"name": "flow", "from": "h1", "to": "h2", "congestion": "prague"}]
    line = {"rate_mbit": 50, "delay_ms": 4, "queue_packets": 1000}
    document["profile"] = {"directions": {"forward": {**line, "aqm": "dualpi2"}, "reverse": line}}
    point = load_point(str(write_experiment(tmp_path, document)))
    run = run_experiment(point, Uml(newest), tmp_path / "results")
    found = compute(Analysis(run)).metrics
    ecn: Counter[int] = Counter()
    with (run / "pcap/h2-eth0.pcap.zst").open("rb") as file:
        raw = ZstdDecompressor().stream_reader(file).read()
    at = 24
    while at < len(raw):
        (captured, sent) = struct.unpack_from("<II", raw, at + 8)
        if sent > 1000:  # data: Ethernet's header, and IP's second byte
            ecn[raw[at + 16 + 15] & 3] += 1
        at += 16 + captured
    assert set(ecn) == {1, 3}
    assert ecn[3] == found["marks.forward"].value
    median_ms = found["sojourn_median.forward"].value
    assert median_ms is not None
    assert median_ms < 1
