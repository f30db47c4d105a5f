"""Templates are read by people, too."""

from support.running import ROOT

LONGEST = 120


def test_no_line_is_too_long() -> None:
    """Each line of a page's template has at most 120 characters."""
    long = [
        f"{path.name}:{number}"
        for path in sorted((ROOT / "twoway/report/templates").glob("*.j2"))
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if len(line) > LONGEST
    ]
    assert long == []
