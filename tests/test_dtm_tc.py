"""sch_dtm with the distribution's tc, in the guest: kernel-modules/tests/dtm, each case a test."""

import re
import shutil
import subprocess

import pytest
from dtm_cases import case_names, run_dtm_cases

from twoway.build import Guest
from twoway.paths import ROOT

MANUAL = ROOT / "kernel-modules/tc/tc-dtm.8"
PLUGIN = ROOT / "kernel-modules/tc/q_dtm.c"

Results = dict[str, dict[str, str]]


@pytest.fixture(scope="session")
def results(guest: Guest, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What became of every case, in one boot."""
    return run_dtm_cases(guest, tmp_path_factory.mktemp("dtm") / "run")


@pytest.mark.parametrize("name", case_names())
def test_dtm(results: Results, name: str) -> None:
    """The case holds."""
    result = results[name]
    if "skipped" in result:
        pytest.skip(result["skipped"])
    assert "failed" not in result, result["failed"]


def test_every_attribute_is_tried_with_what_must_be_refused() -> None:
    """No option of the interface is left without a value that the kernel must refuse."""
    from dtm_in_guest import all_cases, attribute_names

    tried = {
        name
        for case in all_cases().values()
        if case.get("errno")
        for name in case.get("netlink", {})
    }
    assert set(attribute_names()) - tried == set()


def test_manual_has_every_option() -> None:
    """tc-dtm(8) has a paragraph on every option of the plugin's table."""
    options = set(re.findall(r'^\t\{ "([a-z-]+)", "', PLUGIN.read_text(), re.MULTILINE))
    parameters = MANUAL.read_text().replace("\\-", "-").split(".SH PARAMETERS")[1]
    titles = re.findall(r"^\.TP\n(\.B[IR]? .*)$", parameters, re.MULTILINE)
    assert len(options) == 25
    # The allocators have sections of their own.
    assert {o for o in options if not re.search(rf"\b{o}\b", " ".join(titles))} == {"allocator"}


def test_manual_is_clean() -> None:
    """Neither groff nor man finds fault with tc-dtm(8)."""
    for command in (
        ["groff", "-ww", "-man", "-Tutf8", str(MANUAL)],
        ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(MANUAL)],
    ):
        if not shutil.which(command[0]):
            pytest.skip(f"{command[0]}: not on this machine")
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stderr == ""
