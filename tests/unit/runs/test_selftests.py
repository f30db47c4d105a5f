"""Selftests of the kernel that are programs: their verdicts and reports."""

import json
from pathlib import Path

import pytest

from twoway.commands import packetdrill
from twoway.runs.packetdrill import Verdict
from twoway.runs.selftests import Selftest, _verdict, _words

TEST = Selftest(Path("/nowhere"), "net/a", "b")
FAILED = "not ok 2 - the key is there\nok 3 # SKIP without VRF\n# not ok 4 again\n"


@pytest.mark.parametrize(
    ("status", "out", "problem", "skipped"),
    [
        (0, "TAP version 13\n1..1\nok 1 all\n", "", ""),
        (4, "ok 1 # SKIP Tests require MPTCP\n", "", "Tests require MPTCP"),
        (4, "[SKIP] no ip tool\n", "", "no ip tool"),
        (4, "", "", "it does not say why"),
        (1, f"ok 1 a\n{FAILED}", "2 of 4 checks, the first: the key is there", ""),
        (0, FAILED, "2 of 3 checks, the first: the key is there", ""),
        (127, "b: not \x1bfound\n", "exit status 127: b: not ?found", ""),
        (1, "", "exit status 1: no word", ""),
        (-9, "not ok 1 a\n", "it still ran after 45 s of its clock", ""),
    ],
)
def test_a_verdict_has_the_kernels_own_words(
    tmp_path: Path, status: int, out: str, problem: str, skipped: str
) -> None:
    """Status 4 is a skip with the program's reason; a check that is "not ok" is a failure."""
    ended = {"status": status, "ended": status != -9}
    (tmp_path / "ended.json").write_text(json.dumps(ended))
    (tmp_path / "stdout.txt").write_text(out)
    (tmp_path / "stderr.txt").write_text("")
    verdict = _verdict(TEST, tmp_path)
    assert (verdict.name, verdict.problem, verdict.skipped) == ("net/a b", problem, skipped)
    assert len(verdict.checks) == out.count("not ok") + out.count("# SKIP")


@pytest.mark.parametrize(("told", "limit_s"), [("timeout=1800", 1800), ("timeout=0", 3600)])
def test_a_collection_sets_the_time_of_its_tests(tmp_path: Path, told: str, limit_s: int) -> None:
    """The time of a test is that of the file `settings` beside it, an hour if that has no limit."""
    (tmp_path / "net/a").mkdir(parents=True)
    (tmp_path / "net/a/settings").write_text(f"{told}\n")
    assert Selftest(tmp_path, "net/a", "b").limit_s == limit_s


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"#!/usr/bin/env python3\n", ["/usr/bin/env", "python3", "./b"]), (b"\x7fELF\xff", ["./b"])],
)
def test_a_script_needs_no_permission(tmp_path: Path, content: bytes, words: list[str]) -> None:
    """A script is run by the program that its first line names, as the kernel's runner does."""
    (tmp_path / "net/a").mkdir(parents=True)
    (tmp_path / "net/a/b").write_bytes(content)
    assert _words(Selftest(tmp_path, "net/a", "b")) == words


def test_a_skip_is_no_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """KTAP, JUnit and JSON have the reason of a skip."""
    verdict = Verdict("net/a b", skipped="no <ip>", checks=("ok 1 # SKIP no <ip>",))
    packetdrill._print(1, verdict, tmp_path)
    assert capsys.readouterr().out == "# ok 1 # SKIP no <ip>\nok 1 net/a b # SKIP no <ip>\n"
    assert verdict.document() == {"name": "net/a b", "pass": True, "skipped": "no <ip>"}
    _, case, _ = packetdrill._junit("selftests", [verdict], 0)
    assert '><skipped message="no &lt;ip&gt;"/></testcase>' in case
    assert not list(tmp_path.iterdir())
