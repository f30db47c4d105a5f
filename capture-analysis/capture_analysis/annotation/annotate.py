"""Copy a capture, with comments on its packets."""

from pathlib import Path

from capture_analysis.annotation.copying import copy_capture
from capture_analysis.annotation.finding import Finder
from capture_analysis.annotation.notes import Notes
from capture_analysis.complete_file import written_whole
from capture_analysis.errors import AnalysisError
from capture_analysis.one_capture.document import need_tcp
from capture_analysis.one_capture.memory import keep_freed
from capture_analysis.one_capture.single import NOTHING, Given, blocks
from capture_analysis.reading.byte_source import STANDARD_INPUT, ByteSource
from capture_analysis.reading.capture import Capture
from capture_analysis.reading.times import Times
from capture_analysis.tracking import Tracker

_ENDING = ".pcapng"


def annotate(
    path: Path, target: Path, given: Given = NOTHING, notes: Notes | None = None
) -> tuple[int, int, list[str]]:
    """Copy a capture to a pcapng file with comments; a failure leaves no file.

    Args:
        path: the capture; a file, because it is read twice.
        target: a name that ends in .pcapng.
        given: the user's settings for the capture.
        notes: the object that collects notes.

    Returns: the numbers of frames and of comments in the copy; warnings.
    Raises: AnalysisError if the capture cannot be read or has no TCP packet, or if the copy cannot
        be written.
    """
    _refuse(path, target)
    notes = Notes() if notes is None else notes
    capture = _noted(path, given, notes)
    with ByteSource(path) as source, written_whole(target) as aside, aside.open("wb") as file:
        try:
            frames = copy_capture(source, notes.by_frame(), file)
        except AnalysisError as error:
            raise AnalysisError(f"{path}: {error}") from error
    warnings = capture.warnings
    if frames < capture.counts.frames:
        warnings.append(
            f"{frames} of {capture.counts.frames} frames were copied: the frames after "
            "the first damage are left out"
        )
    if notes.full:
        warnings.append(f"more than {len(notes)} comments: the others are left out")
    return frames, len(notes), warnings


def _noted(path: Path, given: Given, notes: Notes) -> Capture:
    """Read the capture for the first time; return the notes on its packets."""
    keep_freed()
    capture, finder = Capture(path, inside=given.inside), Finder(notes)
    for block in blocks(capture, Tracker(), Times(), given):
        finder.add(block)
    finder.finish()
    need_tcp(capture)
    return capture


def _refuse(path: Path, target: Path) -> None:
    if path == STANDARD_INPUT:
        raise AnalysisError("annotate reads its capture twice: give a file, not standard input")
    if target.suffix != _ENDING:
        raise AnalysisError(f'{target}: the name must end in {_ENDING}, got "{target.suffix}"')
    if path.exists() and not path.is_file():
        raise AnalysisError(f"{path}: annotate reads its capture twice: give a plain file")
    if path.exists() and target.exists() and target.samefile(path):
        raise AnalysisError(
            f"{target}: this is the capture itself\n\nhint: name another file with -o"
        )
