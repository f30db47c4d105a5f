"""Selftests of the kernel: found and compiled, their verdicts and reports."""

import json
from pathlib import Path

import pytest

from twoway.commands import packetdrill
from twoway.errors import UsageError
from twoway.guest.cache import Guest
from twoway.guest.kernel import BuildError
from twoway.guest.selftests import build_selftests, collections_in, selftests_of
from twoway.progress import Steps
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
        (127, "b: not \x1bfound\n", "exit status 127: b: not \\u001bfound", ""),
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


# Finding and compiling the selftests in a kernel's source.


MAKEFILE = """TESTS := run.sh one two
include ../../lib.mk
all: $(OUTPUT)/one $(OUTPUT)/two $(OUTPUT)/far
$(OUTPUT)/%: %.c
\tcc -o $@ $<
emit_tests:
\t@for each in $(TESTS); do echo "$(COLLECTION):$$each"; done
"""


@pytest.fixture
def guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Guest:
    """Make a guest whose source has one collection, in which `two` does not compile."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = Guest(tmp_path / "build/linux", tmp_path, "6.12", has_seccomp=False, key="")
    folder = selftests_of(made) / "net/a"
    folder.mkdir(parents=True)
    (tmp_path / "uapi").mkdir()
    (selftests_of(made) / "lib.mk").touch()
    (selftests_of(made) / "Makefile").write_text("all:\n\tcp lib.mk there\n")
    (folder / "Makefile").write_text(MAKEFILE)
    (folder / "run.sh").write_text("#!/bin/sh\n./far; ./three-of-them\n")
    for name, text in (("one", "int main(void) {}"), ("two", "int"), ("far", "int main(void) {}")):
        (folder / f"{name}.c").write_text(text)
    return made


def test_a_program_that_does_not_compile_leaves_the_others(
    guest: Guest, capsys: pytest.CaptureFixture[str]
) -> None:
    """All tests of a collection are named, and what compiles is there."""
    assert collections_in(selftests_of(guest)) == ["net/a"]
    assert build_selftests(guest, "net/a", "", Steps()) == ["run.sh", "one", "two"]
    there = {each.name for each in (selftests_of(guest) / "net/a").iterdir()}
    assert {"one", "far"} < there
    assert "two" not in there
    assert "net/a: not all of it compiles: two.c:1:1: error: " in capsys.readouterr().err


@pytest.mark.parametrize(("test", "compiled"), [("run.sh", "far"), ("one", "one")])
def test_a_test_alone_compiles_what_it_names(guest: Guest, test: str, compiled: str) -> None:
    """A script has the programs whose names are in it; a program has itself, again and again."""
    for _ in range(2):
        assert build_selftests(guest, "net/a", test, Steps()) == [test]
    folder = selftests_of(guest) / "net/a"
    assert [name for name in ("one", "two", "far") if (folder / name).is_file()] == [compiled]


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        (MAKEFILE.replace("run.sh one two", ""), UsageError, "^net/a: its Makefile has no test$"),
        ("include ../../lib.mk\n", BuildError, "emit_tests: failed\nmake.*'emit_tests'"),
    ],
)
def test_a_makefile_without_tests(
    guest: Guest, text: str, error: type[Exception], said: str
) -> None:
    """A collection whose Makefile lists no test, or fails, is an error of one sentence."""
    (selftests_of(guest) / "net/a/Makefile").write_text(text)
    with pytest.raises(error, match=said):
        build_selftests(guest, "net/a", "", Steps())


def test_a_test_that_is_not_there(guest: Guest) -> None:
    """A name that the Makefile does not list is refused, with one that is close."""
    with pytest.raises(UsageError, match=r'run\.py: no test of net/a; did you mean "run\.sh"\?'):
        build_selftests(guest, "net/a", "run.py", Steps())
