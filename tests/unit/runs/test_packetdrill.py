"""Scripts of packetdrill, and its binary: found, refused and reported."""

import os
import subprocess
from pathlib import Path

import pytest
from support.warm_command import twoway

from twoway.errors import UsageError
from twoway.runs.packetdrill import (
    VARIANTS,
    Trial,
    Verdict,
    _copy_files,
    _verdict,
    find_binary,
    find_trials,
)


def test_a_name_says_for_which_addresses_a_script_is(tmp_path: Path) -> None:
    """A script runs in each variant, one named v4 or v6 in those of its family."""
    for name in ("a.pkt", "tcp/a-v4.pkt", "tcp/a-v6.pkt", "tcp/defaults.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("0 socket\n")
    assert [trial.name for trial in find_trials([tmp_path], list(VARIANTS))] == [
        *(f"a.pkt {variant}" for variant in VARIANTS),
        *(f"tcp/a-v4.pkt {variant}" for variant in VARIANTS if variant != "ipv6"),
        "tcp/a-v6.pkt ipv6",
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x7fELF\0\xff", "it is not text"),
        (b"a\0", "it is empty, too large, or not text"),
        (b" \n", "it is empty, too large, or not text"),
        (b"0" * (1 << 20) + b"0", "it is empty, too large, or not text"),
        (b"0 socket\r\n", "its lines end with CR and LF"),
    ],
)
def test_a_file_that_is_no_script_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    """A file that packetdrill cannot read as a script is named, with the reason."""
    script = tmp_path / "a.pkt"
    script.write_bytes(content)
    with pytest.raises(UsageError, match=f"{script}: no script of packetdrill: {said}"):
        list(find_trials([script], ["ipv4"]))


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    """A pipe or a device is no script and no binary, and twoway waits for none."""
    os.mkfifo(tmp_path / "a.pkt")
    with pytest.raises(UsageError, match=r"a\.pkt: no script of packetdrill: it is no file"):
        list(find_trials([tmp_path], ["ipv4"]))
    with pytest.raises(UsageError, match="/dev/zero: packetdrill cannot be read: it is no file"):
        find_binary(Path("/dev/zero"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--packetdrill", "/nowhere"], "/nowhere: packetdrill cannot be read: No such file"),
        (["--packetdrill", "/etc/passwd"], "/etc/passwd: no program for this machine"),
        ([], "packetdrill is not on PATH, and --packetdrill names none"),
        (["--tolerance", "5ms"], 'must be from 1us to 4ms, got "5ms"'),
        (["--tolerance", "0us"], 'must be from 1us to 4ms, got "0us"'),
        (["--percent", "101"], 'must be from 0 to 100, got "101"'),
        (["--json", "/"], '--json: must be a file that can be written, got "/"'),
        (["--junit", "/nowhere/a"], 'must be a file that can be written, got "/nowhere/a"'),
        (["--json", "/etc/passwd/a"], 'must be a file that can be written, got "/etc/passwd/a"'),
    ],
)
def test_a_command_that_cannot_be_carried_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    """A missing or foreign binary, and a tolerance out of range, end with a sentence and 2."""
    monkeypatch.setenv("PATH", "/nowhere")
    (tmp_path / "a.pkt").write_text("0 socket\n")
    done = twoway("packetdrill", str(tmp_path), *words)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_static_binary_is_refused(tmp_path: Path) -> None:
    """A binary without an interpreter cannot preload, a dynamic one is found by its real path."""
    (tmp_path / "a.c").write_text("int main(void) { return 0; }\n")
    for name, words in (("static", ["-static"]), ("dynamic", [])):
        subprocess.run(["cc", *words, "-o", name, "a.c"], cwd=tmp_path, check=True)
    with pytest.raises(UsageError, match="linked statically"):
        find_binary(tmp_path / "static")
    (tmp_path / "link").symlink_to("dynamic")
    assert find_binary(tmp_path / "link") == (tmp_path / "dynamic").resolve()


def test_links_to_scripts_of_the_same_tree_are_followed(tmp_path: Path) -> None:
    """A link beside a script or in ../common is copied, unless it leads out of the tree."""
    for name in ("net/common/defaults.sh", "net/tcp/common/own.sh", "key", "out/other.sh"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("true\n")
    common, fast = tmp_path / "net/tcp/common", tmp_path / "net/tcp/fast"
    fast.mkdir()
    (tmp_path / "net/tcp/secret").symlink_to(tmp_path / "out")
    for folder in (common, fast):
        (folder / "defaults.sh").symlink_to("../../common/defaults.sh")
        (folder / "key.sh").symlink_to(tmp_path / "key")
        (folder / "other.sh").symlink_to(tmp_path / "out/other.sh")
        (folder / "broken.sh").symlink_to("nowhere.sh")
    (fast / "a.pkt").write_text("`../common/defaults.sh; ./defaults.sh; ../secret/other.sh`\n")
    (trial,) = find_trials([tmp_path / "net"], ["ipv4"])
    _copy_files(trial.script, trial.root, tmp_path / "home")
    copied = sorted(str(path.relative_to(tmp_path)) for path in (tmp_path / "home").rglob("*.sh"))
    home = "home/1/2/3/4"
    assert copied == [
        *(f"{home}/common/{name}.sh" for name in ("defaults", "own")),
        f"{home}/scripts/defaults.sh",
    ]
    (fast / "key.pkt").symlink_to(tmp_path / "key")
    with pytest.raises(UsageError, match=r"key\.pkt: a link that leads out of "):
        list(find_trials([tmp_path / "net"], ["ipv4"]))


def test_a_failure_without_a_line_has_the_last_words(tmp_path: Path) -> None:
    """A failure that names no line has the last words of standard error as its reason."""
    (tmp_path / "ended.json").write_text('{"status": 1, "ended": true}')
    (tmp_path / "tun.pcap").write_bytes(b"")
    for said, last in (
        ("", "no word on standard error"),
        ("a\nassertion failed\n", "assertion failed"),
    ):
        (tmp_path / "stderr.txt").write_text(said)
        problem = _verdict(Trial(Path("a.pkt"), "a.pkt", "ipv4"), tmp_path).problem
        assert problem == f"exit status 1: {last}"


def test_a_failure_has_both_times() -> None:
    """The time that a script expects, and that of the event, are numbers of the document."""
    problem = "timing error: expected outbound packet at 0.100000 sec but happened at 0.101001 sec"
    assert Verdict("a.pkt ipv4", problem, 7).document() == {
        "name": "a.pkt ipv4",
        "pass": False,
        "problem": problem,
        "line": 7,
        "expected_s": 0.1,
        "seen_s": 0.101001,
    }
