"""The folders of experiments, and the search for their files."""

from pathlib import Path

import pytest
from support.warm_command import twoway

from twoway import paths
from twoway.commands.options import all_ids
from twoway.description.point import find_experiment
from twoway.description.reading import experiment_file, load_experiment
from twoway.description.suite import suite_names
from twoway.errors import SpecError, UsageError
from twoway.paths import EXPERIMENTS, PAPERS, experiment_files

FILES = experiment_files()
FOLDERS = sorted({path.parent for path in FILES.values()} - {EXPERIMENTS})


def test_folders_are_papers_or_three_more() -> None:
    """The folders are one per paper, and `beyond`, `classes` and `lab`."""
    papers = {path.stem for path in PAPERS.iterdir()}
    assert {path.name for path in FOLDERS} == papers | {"beyond", "classes", "lab"}


def test_the_folder_of_an_experiment_is_its_paper() -> None:
    """An experiment of a paper is in that paper's folder, others in `beyond` or `classes`."""
    sources = {name: load_experiment(experiment_file(FILES[name])).source for name in all_ids()}
    elsewhere = [
        name
        for name, source in sources.items()
        if FILES[name].parent.name not in ([source.paper] if source else ["beyond", "classes"])
    ]
    assert elsewhere == []


def test_an_id_is_found_in_any_folder() -> None:
    """An id finds its file in any folder of the experiments."""
    assert find_experiment("zhang-fig8") == EXPERIMENTS / "zhang-1991/zhang-fig8.yml"
    assert find_experiment("two-kernels") == EXPERIMENTS / "lab/two-kernels.yml"


@pytest.mark.parametrize(
    "name", ["*", "kalampoukas-5.[2]", "**", "..", "", "/x", "ge-2011/fast-ex1"]
)
def test_a_pattern_or_a_path_is_not_an_id(name: str) -> None:
    """An id is not a pattern of files, nor a path without the file's suffix."""
    with pytest.raises(SpecError, match="no such experiment"):
        find_experiment(name)


def test_two_files_with_one_id_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two files of one name in two folders are an error that names both."""
    monkeypatch.setattr(paths, "EXPERIMENTS", tmp_path)
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.yml").touch()
    with pytest.raises(UsageError) as caught:
        find_experiment("some")
    assert str(caught.value) == (
        f'{tmp_path}/other/same.yml: the id "same" is also the id of {tmp_path}/one/same.yml'
    )
    assert caught.value.hint == (
        "an experiment's id is its file's name without the folder: rename one"
    )


def test_list_has_a_heading_for_each_folder() -> None:
    """`twoway list` prints each folder and each suite, followed by its experiments or rows."""
    lines = twoway("list").stdout.splitlines()
    headings = [line for line in lines if not line.startswith(" ")]
    suites = [f"suites/{name}/" for name in suite_names()]
    assert headings == [*(f"{folder.name}/" for folder in FOLDERS), *suites]
    assert lines[lines.index("suites/quick/") + 1].split()[0] == "quick/alone"
    place = lines.index("kalampoukas-1998/")
    assert [line.split()[0] for line in lines[place : place + 2]] == [
        "kalampoukas-1998/",
        "kalampoukas-3.2",
    ]
