"""The table of connections, and its filters."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import many_connections
import numpy as np
import public_captures
import pytest
from capture_analysis.cli import main
from capture_analysis.columns import Packets
from capture_analysis.errors import AnalysisError
from capture_analysis.one_capture import evidence
from capture_analysis.one_capture.connection_filter import LONGEST, select_connections
from capture_analysis.one_capture.connections import Connections
from capture_analysis.one_capture.document import document
from capture_analysis.one_capture.single import measure
from capture_analysis.pages.connections_table import summary
from capture_analysis.reading.capture import Capture

CAUSES = list(many_connections.SCRIPTS)


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a capture with a connection of each cause."""
    path = tmp_path_factory.mktemp("connections") / "one-of-each.pcap"
    many_connections.write(path, CAUSES)
    return path


@pytest.fixture(scope="module")
def connections(capture: Path) -> Connections:
    """Return its table."""
    return Connections(measure(Capture(capture)))


def test_each_connection_has_its_cause(connections: Connections) -> None:
    """A connection that failed or stood still has the cause; a failed one has its time, too."""
    assert [connections.words("cause")[row] for row in range(len(CAUSES))] == CAUSES
    at = CAUSES.index
    assert connections.numbers("time")[at("no answer")] == 3
    assert connections.numbers("time")[at("refused")] == pytest.approx(0.01)
    ends = {"fine": "closed", "reset": "reset by server", "refused": "refused"}
    assert {cause: connections.words("end")[at(cause)] for cause in ends} == ends


@pytest.mark.parametrize(
    ("kept", "why"),
    [
        (lambda packets: packets.where(vars(packets)["half"] == 0), evidence.ONE_SIDED),
        (lambda packets: replace(packets, time_ns=0 * packets.time_ns), evidence.ONE_TIME),
    ],
)
def test_no_cause_without_the_other_direction(
    capture: Path, kept: Callable[[Packets], Packets], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the other direction, or without times, no stall has a cause, and a limit says why."""
    whole = Capture(capture)
    chunks = whole.chunks
    monkeypatch.setattr(whole, "chunks", lambda packets: map(kept, chunks(packets)))
    measured = measure(whole)
    found = Connections(measured)
    words = {cause: found.words("cause")[CAUSES.index(cause)] for cause in ("server", "losses")}
    assert words == dict.fromkeys(words, "cannot tell")
    limits = document(measured)["flows"][CAUSES.index("losses")]["limits"]
    assert all(why in limit["sentence"] for limit in limits.values())


@pytest.mark.parametrize(
    ("count", "late_ms", "cause"),
    [(3, 20_000, "cannot tell"), (1, 20_000, "server"), (3, 0, "server")],
)
def test_a_clock_set_forward_may_be_a_stall(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, late_ms: int, cause: str
) -> None:
    """If all connections in progress wait alike, a clock set forward and a stall look the same."""
    script = many_connections.SCRIPTS["server"]
    stepped = [(at + late_ms * (at > 21), *rest) for at, *rest in script]
    scripts = {"server": stepped, "slow": [(at * 5000, *rest) for at, *rest in stepped[:3]]}
    monkeypatch.setattr(many_connections, "SCRIPTS", scripts)
    path = tmp_path / "step.pcap"
    many_connections.write(path, ["server"] * count, every_ms=1)
    found = Connections(measure(Capture(path)))
    assert {found.words("cause")[row] for row in range(count)} == {cause}
    assert ("a clock set forward or a stall" in summary(found)) == (cause == "cannot tell")
    many_connections.write(path, [*["server"] * count, "slow"], every_ms=1)
    assert Connections(measure(Capture(path))).words("cause")[0] == "server"


@pytest.mark.parametrize(
    ("end", "again", "cause"), [(0, [], "cannot tell"), (0, [1000], "losses"), (1, [], "network")]
)
def test_a_sender_whose_timer_must_have_expired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: int, again: list[int], cause: str
) -> None:
    """If a sender at the tap sends nothing again for 20 s, the clock or the host stood still."""
    sent = (end, many_connections.PSH | many_connections.ACK, 1, 1400, 1)
    data = [(11 + at, *sent) for at in (0, *again)]
    script = [
        *(*many_connections.SCRIPTS["fine"][:3], *data),
        (20_021, 1 - end, many_connections.ACK, 1, 0, 1401),
    ]
    monkeypatch.setattr(many_connections, "SCRIPTS", {"upload": script})
    many_connections.write(tmp_path / "one.pcap", ["upload"])
    found = Connections(measure(Capture(tmp_path / "one.pcap")))
    assert found.words("cause")[0] == cause
    assert ("sent none again for 20 s: a clock" in summary(found)) == (cause == "cannot tell")


def test_public_captures_are_compared_by_checksum(capture: Path, tmp_path: Path) -> None:
    """A capture of the table is found by its checksum, and compared; a missing one is named."""
    table = public_captures.diagnosed()
    assert len({each.checksum for each in table}) == len(table) == 40
    checksum = hashlib.sha256(capture.read_bytes()).hexdigest()
    rights = {
        "cause == refused": "right",
        "cause == server and stall > 9": "differs",
        "limit: zero window": "right",
        "limit: link": "differs",
    }
    rows = [f"{checksum}\t{right}\taddress\twords" for right in rights]
    own = tmp_path / "own.tsv"
    own.write_text("\n".join(["# a table", *rows, "0" * 64 + "\tcause == fine\t-\t-"]))
    found = [result for _, result in public_captures.compared(capture.parent, own)]
    assert found == [*rights.values(), "not there"]


@pytest.mark.parametrize(
    ("column", "cause", "seconds"),
    [
        ("connect", "fine", 0.01),
        ("connect", "connect", 1.01),
        ("connect", "refused", np.nan),
        ("first_byte", "fine", 0.013),
        ("first_byte", "server", 1.01),
        ("first_byte", "reset", np.nan),
        ("stall", "fine", 0),
        ("stall", "server", 1),
        ("stall", "losses", 0.31),
        ("stall", "zero window", 0.5099),
        ("stall_at", "server", 0.031),
    ],
)
def test_times(connections: Connections, column: str, cause: str, seconds: float) -> None:
    """Times to connect, to the first byte and without progress are those of the packets."""
    found = connections.numbers(column)[CAUSES.index(cause)]
    assert found == pytest.approx(seconds, nan_ok=True)


def test_ends_are_client_and_server(connections: Connections) -> None:
    """The client sent the SYN, and each connection has both ends' addresses and ports."""
    assert connections.words("server").all[connections.words("server").number[0]] == "192.0.2.1"
    assert connections.words("client")[2] == "198.51.100.0"
    assert connections.numbers("server_port")[:4].tolist() == [8080, 443, 443, 8080]
    assert connections.numbers("client_port")[3] == 40_003


def test_slowest_first(connections: Connections) -> None:
    """Failed connections come first, then those that stood still for longest, then the others."""
    order = [connections.words("cause")[row] for row in connections.slowest_first()]
    assert sorted(order[:2]) == ["no answer", "refused"]
    assert order[2:5] == ["connect", "server", "zero window"]
    assert order[-1] == "fine"


@pytest.mark.parametrize(
    ("text", "causes"),
    [
        ("server_port == 8080 and cause != fine", {"refused", "reset"}),
        ("stall > 0.4 and not cause == server", {"no answer", "connect", "zero window"}),
        ("(stall >= 1 or resets > 0) and server_port == 443", {"server", "no answer", "connect"}),
        ("cause == 'no answer' or cause == \"zero window\"", {"no answer", "zero window"}),
        ("first_byte > 0 and connect > 1", {"connect"}),
        ("client == 198.51.100.9", set()),
    ],
)
def test_filters(connections: Connections, text: str, causes: set[str]) -> None:
    """A filter selects by numbers and words; an unknown number fulfils no comparison."""
    assert {CAUSES[row] for row in np.flatnonzero(select_connections(connections, text))} == causes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a column, got its end"),
        ("speed > 3", 'no column "speed"; there are id, client'),
        ("stall > fast", 'expected a number, got "fast"'),
        ("stall 3", 'expected one of == != < <= > >=, got "3"'),
        ("cause > fine", "words have == and !=, got >"),
        ("cause ==", "expected a word, got its end"),
        ("(stall > 1", 'expected ")", got its end'),
        ("stall > 1 stall < 2", 'expected "and", "or" or its end, got "stall < 2"'),
        ("__import__('os')", 'no column "__import__"'),
        ("(" * (LONGEST + 1), f"at most {LONGEST} characters"),
    ],
)
def test_filters_that_are_none(connections: Connections, text: str, said: str) -> None:
    """A text that is no filter is refused, with what was expected at its place."""
    with pytest.raises(AnalysisError) as error:
        select_connections(connections, text)
    assert said in str(error.value)


def test_flows_sorts_and_filters(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`flows` lists the connections with the longest stalls among those that a filter selects."""
    words = ["flows", str(capture), "--sort", "stall", "--top", "2", "--where", "stall < 2"]
    assert main(words) == 0
    _, *lines, more = capsys.readouterr().out.splitlines()
    assert [
        next(cause for cause in ("connect", "server") if f" {cause} " in line) for line in lines
    ] == ["connect", "server"]
    assert more == "... and 5 more (--top)"
    assert main(["flows", str(capture), "--sort", "speed"]) == 2
    assert 'no column "speed"' in capsys.readouterr().err
