"""The command `annotate`: its output and its refusals."""

import resource
from pathlib import Path

import pytest
from capture_analysis.annotation import annotate
from capture_analysis.annotation.notes import Notes
from capture_analysis.cli import main
from capture_analysis.reading.capture import Capture
from traffic_generator import Traffic, write


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a capture of some thousand packets with losses."""
    path = tmp_path_factory.mktemp("capture") / "near.pcap"
    write(Traffic(flows=2, loss=0.01), 5_000, {"near": path})
    return path


def test_default_name(
    capture: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The copy is in the working directory, is named after its capture, and has every packet."""
    monkeypatch.chdir(tmp_path)
    assert main(["annotate", str(capture)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("near-annotated.pcapng: 5000 frames, ")
    assert int(said.split()[3]) > 10
    assert [path.name for path in tmp_path.iterdir()] == ["near-annotated.pcapng"]
    copy = Capture(Path("near-annotated.pcapng"))
    assert sum(len(chunk) for chunk in copy.chunks()) == 5000


def test_refused(capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Standard input, a wrong ending, and the capture as output are refused in a sentence."""
    link = tmp_path / "link.pcapng"
    link.symlink_to(capture)
    for arguments, sentence in (
        (["-"], "annotate reads its capture twice: give a file, not standard input"),
        (
            [str(capture.parent)],
            f"{capture.parent}: annotate reads its capture twice: give a plain",
        ),
        ([str(capture), "-o", "copy.pcap"], 'the name must end in .pcapng, got ".pcap"'),
        ([str(capture), "-o", str(link)], f"{link}: this is the capture itself"),
        ([str(capture), "-o", str(tmp_path / "no" / "x.pcapng")], "No such file or directory"),
    ):
        assert main(["annotate", *arguments]) == 2
        assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [link]


def test_a_link_laid_beforehand_is_not_followed(
    capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy is written under an unpredictable name and then renamed."""
    victim, folder = tmp_path / "victim", tmp_path / "folder"
    victim.write_text("precious")
    folder.mkdir()
    (folder / ".near-annotated.pcapng.partial").symlink_to(victim)
    monkeypatch.chdir(folder)
    assert main(["annotate", str(capture)]) == 0
    assert victim.read_text() == "precious"
    assert not (folder / "near-annotated.pcapng").is_symlink()


def test_full_disk(capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """After a disk error an older copy is unchanged, and there is no other file."""
    target = tmp_path / "copy.pcapng"
    target.write_text("older")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        assert main(["annotate", str(capture), "-o", str(target)]) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert capsys.readouterr().err.endswith(f"{target}: cannot be written: File too large\n")
    assert target.read_text() == "older"
    assert list(tmp_path.iterdir()) == [target]


def test_warnings(capture: Path, tmp_path: Path) -> None:
    """Comments beyond the limit, and frames after damage, are left out with a sentence."""
    target, broken = tmp_path / "copy.pcapng", tmp_path / "broken.pcap"
    frames, comments, warnings = annotate.annotate(capture, target, notes=Notes(3))
    assert (frames, comments) == (5000, 3)
    assert warnings == ["more than 3 comments: the others are left out"]
    octets = capture.read_bytes()
    damage = octets.index(octets[24:28], len(octets) // 2)  # a record of the same second
    broken.write_bytes(octets[: damage + 8] + b"\xff" * 4 + octets[damage + 12 :])
    frames, _, warnings = annotate.annotate(broken, target)
    assert 0 < frames < 5000
    assert len(warnings) == 2
    assert warnings[1].startswith(
        f"{frames} of 4999 frames were copied: the frames after the first"
    )
