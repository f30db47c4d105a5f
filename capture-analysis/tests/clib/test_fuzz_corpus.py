"""The parser in C and the one in numpy, on inputs from fuzzing."""

import tarfile
from pathlib import Path

import pytest
from both_parsers import assert_alike
from hand_built import captures

ARCHIVE = Path(__file__).parents[2] / "clib" / "fuzz" / "corpus.tar.xz"


@pytest.mark.long
def test_both_parsers_agree_on_broken_files() -> None:
    """Both parsers give the same rows, counts, connections and sentences for any broken file."""
    with tarfile.open(ARCHIVE) as archive:
        files = [file.read() for each in archive if (file := archive.extractfile(each))]
    assert len(files) > 100
    for content in files + captures():
        assert_alike(content)


def test_archive_is_reproducible_and_small() -> None:
    """The archive depends only on its files, and is small enough to be committed."""
    with tarfile.open(ARCHIVE) as archive:
        members = archive.getmembers()
    names = [each.name for each in members]
    assert names == sorted(set(names))
    assert all(each.isreg() and "/" not in each.name for each in members)
    stamps = {(each.mtime, each.uid, each.gid, each.uname, each.mode) for each in members}
    assert stamps == {(0, 0, 0, "", 0o644)}
    assert ARCHIVE.stat().st_size < 1 << 16
