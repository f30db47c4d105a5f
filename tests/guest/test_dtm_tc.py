"""sch_dtm with the distribution's tc, the kernel's tdc and raw netlink; all cases are one test.

Our other qdiscs run with the kernel's tdc.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from channels import refusals
from dtm_in_guest import all_names, tdc_cases
from dtm_raw import CASES, raw_cases
from rtnetlink import NUMBERS, parse_attributes
from support.guest.dtm_cases import SPECS, YNL, kernel_tools, plugin_says, run_dtm_cases

from twoway.guest.cache import Guest
from twoway.paths import KERNEL_MODULES

MANUAL = KERNEL_MODULES / "tc/tc-dtm.8"
PLUGIN = KERNEL_MODULES / "tc/q_dtm.c"
SPEC = KERNEL_MODULES / "netlink/dtm.yaml"

Results = dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def results(guest: Guest, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Return the results of every case, in one boot."""
    return run_dtm_cases(guest, tmp_path_factory.mktemp("dtm") / "run")


def test_dtm_cases_hold_in_guest(results: Results) -> None:
    """The kernel answers each case as expected."""
    assert set(all_names()) <= set(results)
    assert {name: each["failed"] for name, each in results.items() if "failed" in each} == {}
    skipped = [f"{name}: {each['skipped']}" for name, each in results.items() if "skipped" in each]
    if skipped:
        pytest.skip("; ".join(skipped))


@pytest.mark.slow
def test_every_refusal_is_a_case() -> None:
    """Each refusal of sch_dtm is the expected answer of a case."""
    patterns = [c["matchPattern"] for c in tdc_cases().values() if "refusal" in c["category"]]
    expected = {re.sub(r"\\(.)", r"\1", pattern) for pattern in patterns}
    said = {re.sub(r"^\^(?:Error|dtm(?:: \S*)?): (.*?)\.?\$$", r"\1", text) for text in expected}
    said |= {case.answer[1] for case in CASES}
    assert refusals() - said == set()


@pytest.mark.slow
def test_every_attribute_is_tried_with_what_must_be_refused() -> None:
    """Each option of the interface has a case with a value that the kernel must refuse."""
    tried = {
        number
        for case in raw_cases().values()
        if case.answer[0] and not case.command
        for number in parse_attributes(case.options)
    }
    options = set(range(NUMBERS["TCA_DTM_UNSPEC"], NUMBERS["TCA_DTM_HOLD"] + 1))
    assert options - tried == set()


def manual_on(option: str) -> str:
    """Return the paragraph of tc-dtm(8) on an option, without markup."""
    parameters = MANUAL.read_text().replace("\\-", "-").split(".SH PARAMETERS")[1]
    for paragraph in re.split(r"^\.TP\n", parameters, flags=re.MULTILINE)[1:]:
        text = re.split(r"^\.S[SH]", paragraph, flags=re.MULTILINE)[0]
        if re.search(rf"^\.B[IR]? .*(?<![\w-]){option}(?![\w-])", text.split("\n")[0]):
            return " ".join(re.sub(r"^\.\w+ |\\f[BIR]", "", text, flags=re.MULTILINE).split())
    return ""


def test_manual_has_every_option_with_its_range(guest: Guest) -> None:
    """tc-dtm(8) has a paragraph on every option of the plugin's tables, with its highest value."""
    row = re.compile(r'^\t\{ "([a-z-]+)", "\w+", TCA_DTM_', re.MULTILINE)
    options = ["shift", *row.findall(PLUGIN.read_text())]
    assert len(options) == 34
    words = (word for option in options for word in (option, "5bananas-and-more"))
    for option, line in zip(options, plugin_says(guest, *words), strict=True):
        got = re.fullmatch(rf'dtm: "{option}" must be (.*), got "5bananas-and-more"', line)
        assert got, line
        most = re.fullmatch(r"\S+\.\.(\S+)", got[1])
        # Allocators and their lists have their own sections; low's range follows from high's.
        if option != "allocator":
            assert manual_on(option), option
        if most and option not in {"high", "low"}:
            assert re.search(rf"(?<!\w){most[1]}(?!\w)", manual_on(option)), line


@pytest.mark.slow
@pytest.mark.parametrize("case", ["Defaults", "Defaults of rate", "Defaults of buffer"])
def test_manual_has_the_defaults(case: str) -> None:
    """The defaults in tc-dtm(8) equal those that a channel shows in the cases."""
    pattern = tdc_cases()[case]["matchPattern"].replace("\\.", ".")
    words = pattern.partition("[0-9]+ ")[2].removesuffix(" $").replace("unframed", "").split()
    for option, value in zip(words[::2], words[1::2], strict=True):
        if option != "allocator":
            default = rf"default(?: is)?:? {re.escape(value)}(?!\w)"
            assert re.search(default, manual_on(option)), option


@pytest.mark.slow
@pytest.mark.parametrize("manual", sorted(MANUAL.parent.glob("*.8")), ids=lambda m: m.stem)
def test_manual_is_clean(manual: Path) -> None:
    """Each manual page passes groff and man without a warning."""
    for command in (
        ["groff", "-ww", "-man", "-Tutf8", str(manual)],
        ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(manual)],
    ):
        if not shutil.which(command[0]):
            pytest.skip(f"{command[0]}: not on this machine")
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stderr == ""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The metaschema specified:DeprecationWarning")  # the kernel's
def test_spec_is_the_header(monkeypatch: pytest.MonkeyPatch) -> None:
    """netlink/dtm.yaml fits the kernel's schema, and its numbers equal those of pkt_dtm.h."""
    monkeypatch.syspath_prepend(str(kernel_tools() / YNL))
    from lib.nlspec import SpecFamily  # type: ignore[import-not-found]

    family = SpecFamily(str(SPEC), schema_path=str(kernel_tools() / SPECS / "genetlink.yaml"))
    sys.modules.pop("lib", None)
    described = {f"DTM_A_{name}": a.value for name, a in family.attr_sets["dtm"].items()}
    described |= {f"DTM_CMD_{name}": m.req_value for name, m in family.msgs.items()}
    described = {name.upper().replace("-", "_"): number for name, number in described.items()}
    numbers = {
        name: number
        for name, number in NUMBERS.items()
        if name.startswith("DTM_") and not name.endswith("_UNSPEC")
    }
    assert described == numbers
