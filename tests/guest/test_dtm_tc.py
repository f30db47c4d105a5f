"""sch_dtm with the distribution's tc, in the guest: kernel-modules/tests/dtm, each case a test."""

import os
import re
import shutil
import subprocess

import pytest
from dtm_cases import case_names, run_dtm_cases

from twoway.guest.build import Guest
from twoway.paths import ROOT

MANUAL = ROOT / "kernel-modules/tc/tc-dtm.8"
PLUGIN = ROOT / "kernel-modules/tc/q_dtm.c"

Results = dict[str, dict[str, str]]


@pytest.fixture(scope="module")
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


def manual_on(option: str) -> str:
    """The paragraph of tc-dtm(8) on an option, without markup."""
    parameters = MANUAL.read_text().replace("\\-", "-").split(".SH PARAMETERS")[1]
    for paragraph in re.split(r"^\.TP\n", parameters, flags=re.MULTILINE)[1:]:
        text = re.split(r"^\.S[SH]", paragraph, flags=re.MULTILINE)[0]
        if re.search(rf"^\.B[IR]? .*(?<![\w-]){option}(?![\w-])", text.split("\n")[0]):
            return " ".join(re.sub(r"^\.\w+ ", "", text, flags=re.MULTILINE).split())
    return ""


def plugin_says(guest: Guest, *arguments: str) -> list[str]:
    """What the plugin says of wrong options, here, for it never comes to asking a kernel."""
    done = subprocess.run(
        ["tc", "qdisc", "add", "dev", "lo", "root", "dtm", *arguments],
        env={**os.environ, "TC_LIB_DIR": str(guest.programs)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    return done.stderr.splitlines()


def test_manual_has_every_option_with_its_range(guest: Guest) -> None:
    """tc-dtm(8) has a paragraph on every option of the plugin's tables, and its highest value."""
    row = re.compile(r'^\t\{ "([a-z-]+)", "\w+", TCA_DTM_', re.MULTILINE)
    options = ["shift", *row.findall(PLUGIN.read_text())]
    assert len(options) == 28
    said = plugin_says(guest, *(word for option in options for word in (option, "5banana")))
    for option, line in zip(options, said, strict=True):
        got = re.fullmatch(rf'dtm: "{option}" must be (.*), got "5banana"', line)
        assert got, line
        most = re.fullmatch(r"\S+\.\.(\S+)", got[1])
        # The allocators and their lists have sections of their own, low is below high.
        if option != "allocator":
            assert manual_on(option), option
        if most and option not in {"high", "low"}:
            assert re.search(rf"(?<!\w){most[1]}(?!\w)", manual_on(option)), line


@pytest.mark.parametrize("case", ["defaults", "rate with its defaults", "buffer with its defaults"])
def test_manual_has_the_defaults(case: str) -> None:
    """The defaults of tc-dtm(8) are those that the cases have seen a channel show."""
    from dtm_in_guest import all_cases

    words = all_cases()[f"options: {case}"]["text"].replace("unframed", "").split()
    for option, value in zip(words[::2], words[1::2], strict=True):
        if option != "allocator":
            default = rf"default(?: is)?:? {re.escape(value)}(?!\w)"
            assert re.search(default, manual_on(option)), option


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
