"""Finding and compiling the selftests in a kernel's source."""

from pathlib import Path

import pytest

from twoway.errors import UsageError
from twoway.guest.cache import Guest
from twoway.guest.kernel import BuildError
from twoway.guest.selftests import build_selftests, collections_in, selftests_of
from twoway.progress import Steps

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
