"""The copy of a capture with comments: the same frames, in a file that other programs read."""

import io
import resource
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import corpus_files
import hand_built
import pytest
from capture_analysis.annotation import annotate
from capture_analysis.annotation.annotate import copy_capture
from capture_analysis.annotation.notes import Notes
from capture_analysis.cli import main
from capture_analysis.errors import AnalysisError
from capture_analysis.reading import byte_source
from capture_analysis.reading.byte_source import ByteSource
from capture_analysis.reading.capture import Capture
from corpus_conversations import whole
from corpus_files import Interface, Pcapng
from hand_built import Frame
from reference.parser.records import ChainBrokenError, open_records
from reference.parser.records import Frame as Captured
from traffic_generator import Traffic, write

ARCHIVE = Path(__file__).parents[2] / "clib" / "fuzz" / "corpus.tar.xz"
FRAMES = [Frame.of(d.time_ns, hand_built.ethernet(d.octets)) for d in whole(1)[:10]]
COMMENTS = {2: ["one"], 3: ["four", "several words"]}


def frames(content: bytes) -> Iterator[Captured]:
    """List each frame before the first damage, as the parser in Python finds it."""
    records = open_records(content[:24])
    length = 1
    with suppress(ChainBrokenError):
        while records and length:
            length, frame = records.read(memoryview(content)[records.position :])
            records.position += length
            if frame:
                # The bits above are unknown to the parser; a copy's fractions are below a second.
                yield replace(frame, link_type=frame.link_type & 0xFFFF, fraction_beyond=False)


def copy(path: Path, comments: dict[int, list[str]]) -> tuple[int, bytes]:
    """Copy a file with comments; return the number of frames, and the copy."""
    target = io.BytesIO()
    with ByteSource(path) as source:
        return copy_capture(source, iter(comments.items()), target), target.getvalue()


def files() -> list[bytes]:
    """Captures of every format, whole and broken."""
    made = [
        hand_built.classic(FRAMES, kind=kind, order=order)
        for kind in hand_built.MAGIC
        for order in "<>"
    ]
    made += [corpus_files.pcapng(FRAMES, Interface(1, 9), order) for order in "<>"]
    both = Pcapng().section(length=0).interface(Interface(1, 9)).packets(FRAMES)
    both.obsolete_packet(FRAMES[0]).simple_packet(FRAMES[1])
    both.section(">").interface(Interface(1, 6)).packet(FRAMES[2], comment=b"older")
    with tarfile.open(ARCHIVE) as archive:
        fuzzed = [file.read() for each in archive if (file := archive.extractfile(each))]
    return [*made, both.octets, *hand_built.captures(), *fuzzed]


@pytest.mark.slow
def test_every_frame_is_the_same(tmp_path: Path) -> None:
    """A copy has exactly the frames before the first damage, byte by byte."""
    path, compared = tmp_path / "any.pcap", 0
    for content in files():
        try:
            before = list(frames(content)) if len(content) >= 24 else []
        except AnalysisError:
            before = []
        if not before:
            continue
        path.write_bytes(content)
        count, found = copy(path, {n: ["a comment"] for n in range(1, len(before) + 9, 2)})
        assert count == len(before)
        assert not count or list(frames(found)) == before
        compared += len(before)
    assert compared > 1000


@pytest.mark.parametrize("name", ["pcap", "pcapng"])
def test_pieces_do_not_matter(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy does not depend on where the pieces end in which a file is read."""
    path = tmp_path / "any.pcap"
    made = hand_built.classic(FRAMES), corpus_files.pcapng(FRAMES, Interface(1, 9), ">")
    path.write_bytes(made[name == "pcapng"])
    expected = copy(path, COMMENTS)
    monkeypatch.setattr(byte_source, "_BUFFER_BYTES", 40)
    assert copy(path, COMMENTS) == expected


def test_length_of_check_sequences(tmp_path: Path) -> None:
    """The length of frame check sequences in a classic file's header is kept."""
    path = tmp_path / "any.pcap"
    path.write_bytes(hand_built.classic(FRAMES, fcs=0x24000000))
    assert b"\x0d\0\1\0\4\0\0\0" in copy(path, {})[1]


def asked(path: Path, *words: str) -> list[str]:
    """Return the lines that tshark prints."""
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("number", range(9))
def test_tshark_reads_the_comments(number: int, tmp_path: Path) -> None:
    """Comments on frames are beside older ones in tshark's output, and its filters find them."""
    path, target = tmp_path / "any.pcap", tmp_path / "copy.pcapng"
    path.write_bytes(files()[number])
    target.write_bytes(copy(path, COMMENTS | ({13: ["newer"]} if number == 8 else {}))[1])
    expected = ["2\tone", "3\tfour,several words"] + ["13\tnewer,older"] * (number == 8)
    fields = ("-e", "frame.number", "-e", "frame.comment")
    assert asked(target, "-Y", "frame.comment", *fields) == expected
    facts = [word for name in ("time_epoch", "len", "cap_len") for word in ("-e", f"frame.{name}")]
    assert asked(target, *facts) == asked(path, *facts)
    assert asked(target, "-Y", 'frame.comment contains "several"', "-e", "frame.number") == ["3"]


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
