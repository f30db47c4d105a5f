"""The identity of the code that measures."""

from pathlib import Path

from twoway.measure.revision import code_revision


def _revision(*folders: Path) -> str:
    for folder, text in zip(folders, ("first", "second"), strict=True):
        folder.mkdir(parents=True)
        (folder / "code.py").write_text(text)
    return code_revision(*folders)


def test_code_that_lies_elsewhere_is_the_same(tmp_path: Path) -> None:
    """A revision of two folders does not depend on the order of their paths."""
    checkout = _revision(tmp_path / "a/capture", tmp_path / "a/twoway")
    assert _revision(tmp_path / "b/z-environment", tmp_path / "b/checkout") == checkout
    assert _revision(tmp_path / "c/twoway", tmp_path / "c/capture") == checkout
