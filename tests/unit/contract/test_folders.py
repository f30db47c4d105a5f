"""Folders of another user: giving them away, and finding what that user can replace."""

import os
from pathlib import Path

import pytest

from twoway.contract.folders import changeable_by_others, give

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")

USER = 1001


def _owners(folder: Path) -> dict[str, int]:
    paths = (folder, *folder.rglob("*"))
    return {str(path.relative_to(folder)): path.lstat().st_uid for path in paths}


def test_a_folder_is_given_with_everything_in_it(tmp_path: Path) -> None:
    """Files, folders and links below the folder get the new owner."""
    (tmp_path / "run/pcap").mkdir(parents=True)
    (tmp_path / "run/pcap/a").touch()
    (tmp_path / "run/link").symlink_to("pcap/a")
    give(tmp_path / "run", USER, USER)
    assert set(_owners(tmp_path / "run").values()) == {USER}
    assert tmp_path.stat().st_uid == 0


@pytest.mark.parametrize("name", ["run", "run/pcap", "run/pcap/a"])
def test_no_link_is_followed(tmp_path: Path, name: str) -> None:
    """The target of a link keeps its owner, wherever in the folder the link is."""
    target = tmp_path / "target"
    target.mkdir()
    (target / "inside").touch()
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).symlink_to(target)
    give(tmp_path / "run", USER, USER)
    assert (tmp_path / name).lstat().st_uid == USER
    assert set(_owners(target).values()) == {0}


def test_a_file_with_a_second_name_keeps_its_owner(tmp_path: Path) -> None:
    """A hard link to a file of root's does not give that file away."""
    (tmp_path / "shadow").touch()
    (tmp_path / "run").mkdir()
    (tmp_path / "run/lock").hardlink_to(tmp_path / "shadow")
    give(tmp_path / "run", USER, USER)
    assert (tmp_path / "shadow").stat().st_uid == 0
    assert (tmp_path / "run").stat().st_uid == USER


def test_a_folder_of_roots_alone_cannot_be_changed(tmp_path: Path) -> None:
    """No other user can change root's folder below a sticky one; it need not exist."""
    (tmp_path / "results").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to("results")
    assert changeable_by_others(tmp_path / "results") is None
    assert changeable_by_others(tmp_path / "link/base") is None


@pytest.mark.parametrize(
    ("path", "owner", "mode"),
    [
        ("way", USER, 0o755),  # on the way
        ("way", 0, 0o777),
        ("way/results", USER, 0o700),
        ("way/results", 0, 0o757),
        ("way/results/base", USER, 0o755),  # the folder of an experiment
        ("way/results/base", 0, 0o777),
    ],
)
def test_a_changeable_folder_is_named(tmp_path: Path, path: str, owner: int, mode: int) -> None:
    """Another user's folder, and one in which others may write, are found on the way and inside."""
    (tmp_path / "way/results/base").mkdir(parents=True)
    (tmp_path / path).chmod(mode)
    os.chown(tmp_path / path, owner, 0)
    assert changeable_by_others(tmp_path / "way/results") == tmp_path / path


def test_a_link_of_another_user_is_found(tmp_path: Path) -> None:
    """A link of another user leads to root's folder only as long as that user likes."""
    (tmp_path / "results").mkdir()
    (tmp_path / "theirs").symlink_to(tmp_path / "results")
    (tmp_path / "ours").symlink_to("theirs")
    os.chown(tmp_path / "theirs", USER, USER, follow_symlinks=False)
    assert changeable_by_others(tmp_path / "ours/base") == tmp_path / "theirs"


def test_a_group_that_may_write_is_found(tmp_path: Path) -> None:
    """A folder that a group other than root's may write to is changeable."""
    (tmp_path / "results").mkdir()
    (tmp_path / "results").chmod(0o775)
    assert changeable_by_others(tmp_path / "results") is None
    os.chown(tmp_path / "results", 0, USER)
    assert changeable_by_others(tmp_path / "results") == tmp_path / "results"
