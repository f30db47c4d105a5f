"""Text from files and their names, as printed to a terminal."""

import subprocess
import sys
from pathlib import Path

import pytest
from capture_analysis.cli import main
from capture_analysis.printable import printable, terminal


@pytest.mark.parametrize(
    ("text", "spelt"),
    [
        ("\x1b]0;pwn\x07", "\\u001b]0;pwn\\u0007"),
        ("\x9b2J \x7f \r", "\\u009b2J \\u007f \\u000d"),
        ("a\u202eb\u2066c\u2028", "a\\u202eb\\u2066c\\u2028"),
        ("\udcff", "\\udcff"),
        ("é\t漢\n", "é\t漢\n"),
    ],
)
def test_only_control_characters_are_spelt_out(text: str, spelt: str) -> None:
    """Control characters are escaped as in JSON, and no other character changes."""
    assert printable(text) == spelt


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
