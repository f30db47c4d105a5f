"""The files that a guest may leave in its folder, and its console's socket."""

import json
import os
import socket
from pathlib import Path

import pytest
from support.deep_folders import nested

from twoway.backends import uml
from twoway.backends.guest_files import remove_special_files
from twoway.backends.sandbox import PROGRESS_FILE, _judge, guest_error, guest_status, read_progress
from twoway.contract.folders import disk_bytes, remove_folder
from twoway.errors import RunError
from twoway.progress import RunClock
from twoway.runs.manifest import _capture_drops, _clocks


def test_folders_nested_without_end(tmp_path: Path) -> None:
    """Folders that a guest nested too deep are removed and reported; all other folders stay."""
    sound = tmp_path / "log/sound"
    with nested(tmp_path / "log/deep"), nested(sound, 14):
        assert sorted(remove_special_files(tmp_path)) == [
            f"a link at log/sound/{'d/' * 14}link",
            "more than 16 nested folders",
        ]
        assert (sound / ("d/" * 14) / "file").is_file()
        assert not (tmp_path / "log/deep" / ("d/" * 15)).exists()


def test_a_folder_is_removed_however_deep(tmp_path: Path) -> None:
    """A folder of any depth is removed, unreadable parts included, and links are not followed."""
    (tmp_path / "kept").mkdir()
    with nested(tmp_path / "deep") as folder:
        (folder / "closed").mkdir(mode=0)
        (folder / "link").symlink_to(tmp_path / "kept")
        assert disk_bytes([folder])[0] > 0
        remove_folder(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    (tmp_path / "link").symlink_to("kept")
    with pytest.raises(NotADirectoryError):
        remove_folder(tmp_path / "link")


DEEP_JSON = "[" * 300_000
BROKEN = [
    DEEP_JSON,
    '{"time_ns": "soon", "acked_bytes": 0, "queued_packets": 0}',
    f'{{"time_ns": 1{"0" * 4000}, "acked_bytes": 0, "queued_packets": 0}}',
    '{"time_ns": 1e300, "acked_bytes": 0, "queued_packets": 0}',
    '{"time_ns": null, "acked_bytes": 0, "queued_packets": 0}',
    "[1, 2, 3]",
    "7",
]


@pytest.mark.parametrize("content", BROKEN)
def test_a_report_that_is_none(tmp_path: Path, content: str) -> None:
    """A progress report without three 64-bit numbers counts as missing."""
    (tmp_path / "sockets").mkdir()
    (tmp_path / PROGRESS_FILE).write_text(content)
    assert read_progress(tmp_path) is None


def test_any_report_can_be_shown(tmp_path: Path) -> None:
    """Progress can be shown for the largest numbers that a report may have."""
    (tmp_path / "sockets").mkdir()
    most = 2**63 - 1
    report = {"time_ns": most, "acked_bytes": -most, "queued_packets": most}
    (tmp_path / PROGRESS_FILE).write_text(json.dumps(report))
    now = read_progress(tmp_path)
    assert now is not None
    RunClock("a run", 0, 1).show(now.time_ns, now.acked_bytes, now.queued_packets)


@pytest.mark.parametrize("content", [DEEP_JSON, "[]", '"' + "x" * 300_000, "7"])
def test_an_error_that_is_none(tmp_path: Path, content: str) -> None:
    """Only the first 200 characters of an error that the runner did not write are quoted."""
    (tmp_path / "guest-error.json").write_text(content)
    assert guest_error(tmp_path) == repr(content[:200])


def test_a_guest_that_died_has_no_status(tmp_path: Path) -> None:
    """The runner's exit status counts, and a guest that left none has died."""
    assert guest_status(tmp_path) is None
    (tmp_path / "exit-status").write_text("0\n")
    assert guest_status(tmp_path) == "0"


def test_an_error_without_end(tmp_path: Path) -> None:
    """An error of 200 kB is cut to a readable length."""
    (tmp_path / "guest-error.json").write_text(json.dumps({"error": "x\n" * 100_000}))
    assert guest_error(tmp_path) == "x\n" * 1000 + "..."


@pytest.mark.parametrize(
    "content",
    [
        *(
            DEEP_JSON,
            "{",
            '{"nodes": {"h1": 3}}',
            '{"offset_ns": 1e300}',
            f'{{"offset_ns": 1{"0" * 300}}}',
            '{"offset_ns": "soon"}',
        ),
        *(f'{{"offset_ns": {2**64 - 1}}}', f'{{"offset_ns": {-(2**63)}}}', '{"offset_ns": NaN}'),
        f'{{"nodes": {{"h1": {{"handed_ns": {2**63 - 1}}}}}}}',
        f'{{"nodes": {{"h1": {{"uncertainty_ns": {2**63 - 1}}}}}}}',
        " " * (5 << 20) + "{}",
    ],
)
def test_a_clock_that_is_none(tmp_path: Path, content: str) -> None:
    """A guest's clock.json without a time fails the run before it counts as finished."""
    (tmp_path / "clock.json").write_text(content)
    with pytest.raises(RunError, match=r"the guest left no valid clock\.json"):
        _clocks(tmp_path)


@pytest.mark.parametrize("data", [b"", b"x" * 5000])
def test_sparse_files(tmp_path: Path, data: bytes) -> None:
    """Files whose holes together pass a limit are removed and reported; a file of data stays."""
    sizes = {"a/small": 40 << 20, "b/small": 40 << 20, "log/huge": 4 << 40, "pcap/x": 1 << 36}
    for name, size in sizes.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
        os.truncate(tmp_path / name, size)
    (tmp_path / "pcap/data").write_bytes(bytes(1 << 20))
    (tmp_path / "log/huge").chmod(0)
    assert remove_special_files(tmp_path) == [
        f"a sparse file of {sizes[name]} bytes at {name}" for name in [*sizes][1:]
    ]
    left = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file())
    assert left == ["a/small", "pcap/data"]


def test_a_report_without_end(tmp_path: Path) -> None:
    """Only the end of a report of progress is read, however large the file is."""
    (tmp_path / "sockets").mkdir()
    report = {"time_ns": 5, "acked_bytes": 0, "queued_packets": 0}
    with (tmp_path / PROGRESS_FILE).open("wb") as file:
        file.seek(1 << 36)
        file.write(f"\n{json.dumps(report)}\n".encode())
    now = read_progress(tmp_path)
    assert now is not None
    assert now.time_ns == 5


@pytest.mark.parametrize(
    "said", ["", "1" * 200_000, f"{'1' * 5000} packets dropped by kernel", "9" * 16 + " packets"]
)
def test_lost_packets_that_are_no_number(tmp_path: Path, said: str) -> None:
    """A capture's log without a number of lost packets fails the run, however many its digits."""
    (tmp_path / "log").mkdir()
    (tmp_path / "log/tap.err").write_text(f"{said} dropped by kernel\n")
    with pytest.raises(RunError, match="tap: did not report its number of lost packets: '") as told:
        _capture_drops(tmp_path, "tap")
    assert len(str(told.value)) < 300
    (tmp_path / "log/tap.err").write_text("x" * 5000 + "\n12 packets dropped by kernel\n")
    assert _capture_drops(tmp_path, "tap") == 12


@pytest.mark.parametrize(
    ("status", "line"),
    [
        ("", "[ 1.1] Kernel panic - {}"),
        ("", "{}"),
        ("1", "{}"),
        ("0", "[ 1.1] BUG: {}"),
        ("", "[ 1.1] Kernel panic\nRIP: 0:f{}+0x1/0x2"),
    ],
)
def test_a_line_without_end(tmp_path: Path, status: str, line: str) -> None:
    """A guest's line of a megabyte is cut in the error of its run."""
    (tmp_path / "log").mkdir()
    (tmp_path / "log/console.txt").write_text(line.format("x" * (1 << 20)))
    if status:
        (tmp_path / "exit-status").write_text(status)
    with pytest.raises(RunError, match=r"x\.\.\.") as told:
        _judge(0, tmp_path)
    assert len(str(told.value)) < 3000


# A guest's console socket is asked, and no other socket of the machine.


def _listener(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.settimeout(0)
    made.bind(str(path))
    return made


@pytest.fixture
def console(tmp_path: Path) -> Path:
    """Return the path of the console socket of a guest."""
    folder = tmp_path / ".guest/uml/twoway"
    folder.mkdir(parents=True)
    return folder / "mconsole"


def test_the_guests_own_socket_is_asked(
    tmp_path: Path, console: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request reaches the socket that the guest's kernel has made."""
    monkeypatch.setattr(uml, "_ANSWER_S", 0)
    (tmp_path / "log").mkdir()
    (tmp_path / "log/console.txt").touch()
    with _listener(console) as own:
        said = uml._running_process(tmp_path)
        assert own.recv(1000).startswith(b"\xbe\xba\xfe\xca\x02\0\0\0\x07\0\0\0sysrq p")
    assert said == "its kernel does not name the running process"


def test_a_link_to_another_socket_is_not_followed(tmp_path: Path, console: Path) -> None:
    """No request reaches a socket to which a link in the guest's folder leads."""
    with _listener(tmp_path / "other") as other:
        console.symlink_to(tmp_path / "other")
        said = uml._running_process(tmp_path)
        with pytest.raises(BlockingIOError):
            other.recv(1000)
    assert said == "its kernel does not answer (Socket operation on non-socket)"


def test_a_file_in_place_of_the_socket_is_no_answer(tmp_path: Path, console: Path) -> None:
    """A plain file in place of the socket counts as no answer."""
    console.touch()
    assert "does not answer" in uml._running_process(tmp_path)
