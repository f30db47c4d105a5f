"""README: as long as a reader bears, with pictures that are there and times of docs/speed.md."""

import re

import pytest
from running import ROOT

from twoway import __version__

README = (ROOT / "README.md").read_text(encoding="utf-8")
SPEED = (ROOT / "docs/speed.md").read_text(encoding="utf-8")


def test_readme_is_short() -> None:
    """README has 120 to 150 lines."""
    assert 120 <= len(README.splitlines()) <= 150


def test_pictures_of_readme_are_there() -> None:
    """Each picture of README is a file, light and dark."""
    dark = re.findall(r'srcset="([^"]+)"', README)
    light = re.findall(r'src="([^"]+)"', README)
    assert dark == [name.replace("-light.svg", "-dark.svg") for name in light]
    assert [name for name in (*dark, *light) if not (ROOT / name).is_file()] == []
    assert len(light) == 3


@pytest.mark.parametrize("time", re.findall(r"\d+\.\d+ s\b", README))
def test_times_are_those_of_the_page_on_speed(time: str) -> None:
    """A time that README prints is in docs/speed.md."""
    assert time in SPEED


def test_the_release_is_cited() -> None:
    """CITATION.cff, the newest release in CHANGELOG and the command have one version."""
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\nversion: {__version__}\n" in citation
    assert re.findall(r"^## \[(\d[^]]*)\] - (\S+)", changes, re.MULTILINE)[0] == (
        __version__,
        *re.findall(r"^date-released: (\S+)$", citation, re.MULTILINE),
    )
