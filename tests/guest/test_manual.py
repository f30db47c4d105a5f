"""The manual of capture-analysis shows the output of its commands."""

import doctest
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from capture_analysis.concepts import concepts
from support.running import ROOT

DOCS = ROOT / "capture-analysis/docs"
TUTORIAL = (DOCS / "tutorial.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def captures(paper_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The captures of the tutorial's run."""
    folder = tmp_path_factory.mktemp("manual") / "pcap"
    shutil.copytree(paper_run / "pcap", folder)
    subprocess.run(["zstd", "-dq", *folder.iterdir()], check=True)
    return folder


def blocks(language: str) -> str:
    """Return the tutorial's code blocks of one language, in order."""
    return "\n".join(
        re.findall(rf"^```{language}\n(.*?)^```$", TUTORIAL, flags=re.MULTILINE | re.DOTALL)
    )


def test_tutorial_commands(captures: Path) -> None:
    """Each command of the tutorial prints the text below it to the last character."""
    shown = re.split(r"^\$ (.*)\n", blocks("console"), flags=re.MULTILINE)[1:]
    assert shown
    for command, expected in zip(shown[::2], shown[1::2], strict=True):
        program, *arguments = command.split()
        said = subprocess.run(
            [Path(sys.executable).with_name(program), *arguments],
            cwd=captures,
            capture_output=True,
            text=True,
            check=True,
        )
        assert said.stdout.strip() == expected.strip()


def test_tutorial_python(captures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line of Python in the tutorial yields the text below it."""
    monkeypatch.chdir(captures)
    session = doctest.DocTestParser().get_doctest(blocks("pycon"), {}, "tutorial", None, 0)
    assert len(session.examples) > 10
    assert doctest.DocTestRunner().run(session).failed == 0


def test_every_metric_has_a_manual_page(captures: Path, tmp_path: Path) -> None:
    """Every metric has a page with each of its quantities and existing pictures."""
    site = tmp_path / "site"
    subprocess.run(
        [
            sys.executable,
            DOCS / "build.py",
            site,
            captures / "h1-eth0.pcap",
            captures / "h2-eth0.pcap",
        ],
        check=True,
    )
    for concept in concepts():
        page = (site / f"metric-{concept.name}.html").read_text(encoding="utf-8")
        for picture in re.findall(r'<img src="([^"]*)"', page):
            assert (site / picture).is_file()
        for definition in concept.definitions:
            assert f"<code>{definition.name}</code>" in page
