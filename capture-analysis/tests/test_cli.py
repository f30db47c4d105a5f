"""The command `capture-analysis`: its output and exit status, and modules and text of strangers."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import hand_built as built
import pytest
from capture_analysis.cli import COMMANDS, main
from capture_analysis.commands import flows
from capture_analysis.json_text import indented_json
from capture_analysis.printable import printable, terminal
from capture_analysis.reading import capture as reader
from pcap_files import EPOCH_NS, answer_frame, pcap, tcp_frame
from planted_modules import plant_modules, planted_that_ran

# The `capture-analysis` command: its output and exit status.


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("report", "a folder; a report is of one capture or of two"),
        ("metrics", "no captures (.pcap, .pcapng, .cap, compressed or not) in it"),
    ],
)
def test_nothing_to_analyse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, sentence: str
) -> None:
    """A folder without captures gives one line on stderr and status 2."""
    assert main([command, str(tmp_path)]) == 2
    assert capsys.readouterr() == ("", f"capture-analysis: {tmp_path}: {sentence}\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["report"], "the following arguments are required: CAPTURE"),
        (["draw", "x"], "invalid choice: 'draw'"),
        (["report", "x", "y", "z"], "unrecognized arguments: z"),
    ],
)
def test_bad_usage(
    capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str
) -> None:
    """An invalid command line prints the reason, and the status is 2."""
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--help"], *([name, "--help"] for name in COMMANDS)])
def test_help_explains_exit_statuses(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    """Help goes to stdout and explains each exit status."""
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 0
    assert "exit status: 0 on success" in capsys.readouterr().out


def test_no_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that gets no memory gives one line on stderr and status 2."""

    def measured(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(flows, "measure", measured)
    assert main(["flows", str(tmp_path / "x.pcap")]) == 2
    assert capsys.readouterr() == ("", "capture-analysis: flows: not enough memory\n")


def test_too_many_connections(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too many connections, for the limit or the memory, give one line and status 2."""
    path = tmp_path / "scan.pcap"
    frames = [built.ethernet(built.ipv4(built.tcp(source=port))) for port in range(1000, 1011)]
    path.write_bytes(built.pcap(frames))
    monkeypatch.setenv("CAPTURE_ANALYSIS_CONNECTIONS", "11")
    assert main(["flows", str(path)]) == 0
    monkeypatch.setenv("CAPTURE_ANALYSIS_CONNECTIONS", "10")
    capsys.readouterr()
    for command in ("flows", "metrics", "report"):
        assert main([command, str(path)]) == 2
        said = capsys.readouterr()
        assert said.err.startswith(f"capture-analysis: {path}: more than 10 connections, and each")
    monkeypatch.delenv("CAPTURE_ANALYSIS_CONNECTIONS")
    monkeypatch.setattr(reader, "MEMORY_OF_SYSTEM", tmp_path / "meminfo")
    monkeypatch.setattr(reader, "MEMORY_OF_GROUP", tmp_path)
    assert main(["flows", str(path)]) == 0
    (tmp_path / "meminfo").write_text("MemTotal: 99 kB\nMemAvailable: 33 kB\n")
    assert main(["flows", str(path)]) == 0
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("70000\n")
    assert main(["flows", str(path)]) == 0
    (tmp_path / "memory.max").write_text("100000\n")
    assert main(["flows", str(path)]) == 2
    (tmp_path / "memory.max").unlink()
    (tmp_path / "meminfo").write_text("MemTotal: 99 kB\nMemAvailable: 31 kB\n")
    capsys.readouterr()
    assert main(["flows", str(path)]) == 2
    assert f"{path}: more than 10 connections, and each takes 3 kB" in capsys.readouterr().err
    monkeypatch.setenv("CAPTURE_ANALYSIS_CONNECTIONS", "many")
    assert main(["flows", str(path)]) == 2
    assert "must be a number of connections, got 'many'" in capsys.readouterr().err


def test_one_thread(tmp_path: Path) -> None:
    """A command has one thread, without idle ones of numpy's linear algebra."""
    path = tmp_path / "one.pcap"
    path.write_bytes(built.pcap([built.ethernet(built.ipv4(built.tcp()))]))
    program = (
        "import os, sys; from capture_analysis.cli import main; main(sys.argv[1:]);"
        " print(len(os.listdir('/proc/self/task')), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "metrics", str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.splitlines()[-1] == "1"


def test_as_a_process(tmp_path: Path) -> None:
    """The process ends with the command's status."""
    done = subprocess.run(
        [sys.executable, "-m", "capture_analysis.cli", "metrics", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.endswith("compressed or not) in it\n")


# Commands in a stranger's folder, which has a module of each name.


@pytest.mark.parametrize(
    "words",
    [
        "metrics .",  # on Dask's workers
        "metrics --workers 2 a.pcap",
        "flows a.pcap",
        "report a.pcap",
        "match a.pcap b.pcap",
    ],
)
def test_no_module_beside_the_captures_runs(tmp_path: Path, words: str) -> None:
    """A command runs no Python file of the folder in which a user starts it."""
    plant_modules(tmp_path)
    for name, delay_ms in (("a", 0), ("b", 20)):
        frames = []
        for number in range(30):
            data = tcp_frame(500, seq=1000 + 500 * number, ip_id=number + 1)
            ack = answer_frame(ack=1500 + 500 * number, ip_id=number + 1)
            frames += [(100 * number + delay_ms, data), (100 * number + 40 - delay_ms, ack)]
        content = pcap((EPOCH_NS + at_ms * 1_000_000, frame) for at_ms, frame in frames)
        (tmp_path / f"{name}.pcap").write_bytes(content)
    program = Path(sys.executable).with_name("capture-analysis")
    done = subprocess.run(
        [program, *words.split()], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert planted_that_ran(tmp_path) == []
    assert done.returncode == 0, done.stderr


# Text from files and their names, as printed to a terminal.


@pytest.mark.parametrize(
    ("text", "spelt"),
    [
        ("\x1b]0;pwn\x07", "\\u001b]0;pwn\\u0007"),
        ("\x9b2J \x7f \r", "\\u009b2J \\u007f \\u000d"),
        ("a\u202eb\u2066c\u2028", "a\\u202eb\\u2066c\\u2028"),
        ("\udcff", "\\udcff"),
        ("\ufffe\uffff", "\\ufffe\\uffff"),
        ("é\t漢\n", "é\t漢\n"),
    ],
)
def test_only_control_characters_are_spelt_out(text: str, spelt: str) -> None:
    """Control characters are escaped as in JSON, and no other character changes."""
    assert printable(text) == spelt


@pytest.mark.parametrize(
    "document",
    [
        {"a": {"value": 1.5, "unit": "}\x01\x02{"}, "\n{": {"value": None}},
        {
            "a": {"b": 1},
            "empty": {},
            "list": [],
            "rows": [{"x": True}, [], [1, "\u2028"], {"y": [2]}],
        },
        {"a": {"b": {"c": {"d": [0]}}}, "scalar": -0.0},
        [[]],
        "text",
    ],
)
def test_documents_are_indented_as_by_json(document: Any) -> None:
    """A document's text is that of Python's own encoder, whatever its strings have."""
    assert indented_json(document) == json.dumps(document, indent=1)


def test_documents_have_finite_numbers() -> None:
    """A number that JSON cannot write is refused in each kind of container."""
    for document in (math.nan, [math.inf], {"a": {"value": math.nan}}):
        with pytest.raises(ValueError, match="not JSON compliant"):
            indented_json(document)


def test_names_of_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file's name reaches neither output stream with its control characters."""
    assert main(["flows", str(tmp_path / "\x1b[2J\x9b.pcap")]) == 2
    said = capsys.readouterr()
    assert f"{tmp_path}/\\u001b[2J\\u009b.pcap" in said.err
    with pytest.raises(SystemExit):
        main(["\x1b[2J"])
    assert "\x1b" not in said.err + capsys.readouterr().err
    assert terminal() is sys.stderr


def test_closed_output(tmp_path: Path) -> None:
    """A command with a closed standard output works silently."""
    command = f"exec {sys.executable} -m capture_analysis.cli metrics --list >&-"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
