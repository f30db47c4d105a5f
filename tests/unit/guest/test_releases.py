"""vm/releases.tsv is the one table of distributions; other lists agree with it."""

import re
import subprocess

import pytest
from support.running import ROOT

ROWS = [
    line.split("\t")
    for line in (ROOT / "vm/releases.tsv").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]
RELEASES = [row[0] for row in ROWS]
# A suite's name stands for its release; sid is the next release.
SUITES = {suite for _, suite, *_ in ROWS if suite != "-"}


def test_the_guide_has_the_table() -> None:
    """docs/lab.md has each release's tested parts, in the table's words and order."""
    guide = (ROOT / "docs/lab.md").read_text(encoding="utf-8")

    def said(tried: str) -> str:
        return "not tried" if tried == "no" else f"tried: {tried}"

    rows = [f"| {name} | {said(use)} | {said(lab)} |" for name, _, use, lab in ROWS]
    assert "| release | experiments | lab |\n|---|---|---|\n" + "\n".join(rows) + "\n\n" in guide
    assert f"`{', '.join(RELEASES)} on x86_64 are supported`" in guide


@pytest.mark.parametrize("name", ["README.md", "docs/index.md"])
def test_where_to_begin(name: str) -> None:
    """The first page names exactly the releases on which experiments have been tried."""
    text = (ROOT / name).read_text(encoding="utf-8")
    (numbers,) = re.findall(r"[Oo]n Debian (\d+(?: and \d+| or \d+)*)[ ,]+with", text)
    tried = [release for release, _, use, _ in ROWS if use != "no"]
    assert [f"Debian {number}" for number in re.findall(r"\d+", numbers)] == tried


def test_kernels_are_of_these_suites() -> None:
    """The modules are built for kernels of the table's suites, and for the next kernel."""
    program = (ROOT / "kernel-modules/tests/fetch-headers").read_text(encoding="utf-8")
    table = program.partition("cat << EOF\n")[2].partition("EOF")[0]
    suites = {line.split()[2].removesuffix("-security") for line in table.splitlines()}
    assert suites <= {suite.removesuffix("-security") for suite in SUITES} | {"sid"}


def test_install_packages_names_the_suites() -> None:
    """If apt knows no kernel source, the error names each release's suite that has one."""
    program = ROOT / "vm/install-packages"
    function = re.search(
        r"^source_suites\(\) \{.*?^\}", program.read_text(), re.DOTALL | re.MULTILINE
    )
    assert function is not None
    script = f"set -eu\n{function[0]}\nsource_suites"
    said = subprocess.run(
        ["bash", "-c", script, program], capture_output=True, text=True, check=True
    )
    assert said.stdout == ", ".join(f"{row[0]}: {row[1]}" for row in ROWS if row[1] != "-")
