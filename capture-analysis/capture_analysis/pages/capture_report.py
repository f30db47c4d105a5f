"""Write the folder of a report: capture.json or pair.json, figures/, report.html."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from capture_analysis.errors import AnalysisError
from capture_analysis.json_text import indented_json
from capture_analysis.one_capture.connections import Connections
from capture_analysis.one_capture.document import directions_in_order, document, need_packets
from capture_analysis.one_capture.single import NOTHING, Given, measure
from capture_analysis.pictures.figure import Figure
from capture_analysis.pictures.selection import select
from capture_analysis.reading.capture import Capture

# The documents of a report.
CAPTURE, PAIR = "capture.json", "pair.json"
# Number of directions that have pictures on the page.
DIRECTIONS = 2


def report(
    path: Path,
    output: Path | None = None,
    given: Given = NOTHING,
    command: str = "",
    *,
    drawn: bool = False,
) -> Path:
    """Write a capture's report; a failure leaves an earlier report unchanged.

    Args:
        path: the capture.
        output: the folder, by default named after the capture, in the working directory. It
            replaces an earlier report.
        given: the user's settings for the capture.
        command: the command line, for quoting on the page.
        drawn: True to draw each picture also as PNG and SVG, into figures/.

    Returns: the page.
    Raises: AnalysisError if there is nothing to report on, or the folder holds something else.
    """
    from capture_analysis.pages import capture_page  # noqa: PLC0415 - drawing libraries load slowly

    folder = output or Path(f"{_stem(path)}-report")
    _refuse([path], folder)
    measured = measure(Capture(path, inside=given.inside), given)
    need_packets(measured.capture)
    connections = Connections(measured)
    trouble = capture_page.in_trouble(connections)
    slowest = connections.slowest_first()[: int(trouble)].tolist()
    content = document(measured, first=slowest)
    order = directions_in_order(measured)
    # With most data, after the larger direction of the slowest connection.
    numbers = sorted(
        [n for n in order if n // 2 in slowest][:1] + list(order[:DIRECTIONS]),
        key=lambda n: n // 2 not in slowest,
    )
    numbers = list(dict.fromkeys(numbers))[:DIRECTIONS]
    again = Capture(path, inside=given.inside)
    shown = capture_page.sections(content, select(again, measured, numbers), trouble=trouble)
    figures = [figure for section in shown for figure in section.figures]
    with _written_whole(folder) as aside:
        _write_common(aside, CAPTURE, content, figures if drawn else [])
        capture_page.write_page(aside / "report.html", content, shown, connections, command)
    return folder / "report.html"


def report_pair(
    paths: tuple[Path, Path],
    output: Path | None = None,
    command: str = "",
    *,
    inside: bool = False,
    drawn: bool = False,
) -> Path:
    """Write the report of two captures of one path, as `report` does for one.

    Raises: AnalysisError also if the captures have no packet in common.
    """
    from capture_analysis.pages import pair_page  # noqa: PLC0415 - as above
    from capture_analysis.pictures import pair_pictures  # noqa: PLC0415 - as above

    folder = output or Path(f"{_stem(paths[0])}-{_stem(paths[1])}-report")
    _refuse(paths, folder)
    content, figures, note = pair_pictures.draw_pair(paths, inside=inside)
    with _written_whole(folder) as aside:
        _write_common(aside, PAIR, content, figures if drawn else [])
        pair_page.write_pair_page(aside / "report.html", content, figures, note, command)
    return folder / "report.html"


def _write_common(folder: Path, name: str, content: dict[str, Any], figures: list[Figure]) -> None:
    text = indented_json(content)
    (folder / name).write_text(text + "\n", encoding="utf-8")
    if figures:
        from capture_analysis.pictures import plots  # noqa: PLC0415 - as above

        plots.save_all(figures, folder / "figures")


@contextmanager
def _written_whole(folder: Path) -> Iterator[Path]:
    """Provide a folder that replaces another one if no exception is raised.

    Raises: AnalysisError if the disk refuses.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=f".{folder.name}-", dir=folder.parent, ignore_cleanup_errors=True
        ) as scratch:
            aside = Path(scratch) / "report"
            aside.mkdir()
            yield aside
            _move_folder(aside, folder)
    except OSError as error:
        raise AnalysisError(f"{folder}: cannot be written: {error.strerror or error}") from error


def _stem(path: Path) -> str:
    """Strip .pcap, .pcapng.gz and the like from a capture's name."""
    return path.name.split(".")[0] or path.name.strip(".")


def _refuse(paths: Sequence[Path], folder: Path) -> None:
    if "-" in map(str, paths):
        raise AnalysisError("a report reads its capture twice: give a file, not standard input")
    earlier = (folder / "report.html").is_file() or not folder.exists()
    if not earlier and not (folder.is_dir() and not any(folder.iterdir())):
        raise AnalysisError(
            f"{folder} is not an earlier report, and is left as it is\n\n"
            "hint: give another folder with --output"
        )


def _move_folder(aside: Path, folder: Path) -> None:
    """Move a finished folder to its place, and delete an older one there."""
    if folder.exists():
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as old:
            folder.rename(Path(old) / "old")
            aside.rename(folder)
    else:
        aside.rename(folder)
