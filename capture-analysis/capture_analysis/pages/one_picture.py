"""Draw a single picture of a capture, or of two, into a file."""

from pathlib import Path

from capture_analysis.errors import AnalysisError
from capture_analysis.one_capture.document import directions_in_order
from capture_analysis.one_capture.single import NOTHING, Given, measure
from capture_analysis.pages import page_template
from capture_analysis.pictures import capture_figures, pair_pictures, plots
from capture_analysis.pictures.figure import Figure
from capture_analysis.pictures.selection import Selected, select
from capture_analysis.reading.capture import Capture

_ENDINGS = (".png", ".svg", ".html")


def plot(
    path: Path, what: str, output: Path, flow: int | None = None, given: Given = NOTHING
) -> None:
    """Draw one picture of a connection.

    Args:
        path: the capture.
        what: a name of capture_figures.NAMES.
        output: the file; its ending, .png, .svg or .html, chooses the format.
        flow: number of the connection; by default the one with most payload.
        given: the user's settings for the capture.

    Raises: AnalysisError if there is nothing to draw.
    """
    _refuse(what, tuple(capture_figures.NAMES), output)
    selected = _selected(path, flow, given)
    name = selected.direction.name
    drawn = capture_figures.figure(selected, what)
    if not drawn.lines:
        raise AnalysisError(f"{path}: {what} of {name}: nothing to draw")
    _save(drawn, output, name, capture_figures.note(selected))


def plot_pair(paths: tuple[Path, Path], what: str, output: Path, *, inside: bool = False) -> None:
    """Draw one picture of the path between two captures, like `plot`.

    Args:
        paths: the captures.
        what: a name of pair_pictures.FIGURES.
        output: the file.
        inside: True to read the TCP in tunnels besides the TCP outside.
    """
    _refuse(what, tuple(pair_pictures.FIGURES), output)
    _, figures, note = pair_pictures.draw_pair(paths, inside=inside)
    name = f"{paths[0].name} and {paths[1].name}"
    drawn = next((figure for figure in figures if figure.id == what), None)
    if drawn is None:
        raise AnalysisError(f"{name}: {what}: nothing to draw")
    _save(drawn, output, name, note)


def _refuse(what: str, names: tuple[str, ...], output: Path) -> None:
    if what not in names:
        raise AnalysisError(
            f"there is no picture {what} of these\n\nhint: there are {', '.join(names)}"
        )
    if output.suffix not in _ENDINGS:
        raise AnalysisError(f"{output}: a picture is a .png, .svg or .html")


def _save(drawn: Figure, output: Path, name: str, note: str) -> None:
    if output.suffix == ".html":
        page_template.write(output, "figure.html.j2", [drawn], name=name, note=note)
    else:
        plots.save(drawn, output)


def _selected(path: Path, flow: int | None, given: Given) -> Selected:
    measured = measure(Capture(path, inside=given.inside), given)
    numbers = directions_in_order(measured)
    if not numbers:
        raise AnalysisError(f"{path}: no connection carries data")
    mine = [n for n in numbers if flow is None or n // 2 == flow]
    if not mine:
        raise AnalysisError(
            f"{path}: there is no connection {flow} that carries data\n\n"
            f"hint: the one with most payload is {numbers[0] // 2}"
        )
    return select(Capture(path, inside=given.inside), measured, mine[:1])[0]
