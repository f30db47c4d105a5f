"""Draw the pictures of README and the site: `make pictures`.

It runs the experiments that they show. Each picture is light or dark as its reader's system is.
"""

import io
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib as mpl
import numpy as np
from capture_analysis.pictures.figure import Figure, Line
from capture_analysis.pictures.plots import STYLE
from finding_bars import FINDINGS, Bars
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, SVG_EXPORT_THEME, TerminalTheme
from rich.text import Text

from twoway.contract.metrics import METRICS, Metrics
from twoway.measure.analysis import Analysis
from twoway.paths import PACKAGE
from twoway.report.figures import all_figures
from twoway.report.papers_tables import read_numbers

ROOT = Path(__file__).resolve().parents[1]
ASSETS = ROOT / "docs/assets"
# The contracts of import-linter that the picture of the architecture shows.
MAKES_A_RUN = "A description becomes a plan, a backend runs it"
JUDGES_A_RUN = "The run is measured, the report judges"
TITLE_RUN = "kalampoukas-5.2"
# For each theme: a blue and an orange that are legible on its background; the colours of axes and
# text; GitHub's background.
LOOKS = {
    "light": {"lines": ("#0072b2", "#d55e00"), "ink": "#1f2328", "ground": "#ffffff"},
    "dark": {"lines": ("#56b4e9", "#e69f00"), "ink": "#e6edf3", "ground": "#0d1117"},
}
# A light and a dark one.
TERMINALS = (DEFAULT_TERMINAL_THEME, SVG_EXPORT_THEME)
# The window of the first picture, s after traffic's start: three cycles of the queues.
VIEW_S = (2.0, 2.0724)
MOST_MB = 1.2
TERMINAL_COLUMNS = 120
# rich's SVG loads fonts from another host: these rules are removed.
_FONT_FACES = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")
_SVG_TAG = re.compile(r"<svg\b[^>]*>")
# A path's points, and the break before an element within a part of the picture, such as a tick.
_POINTS, _WITHIN = re.compile(r'(?<= d=")[^"]*'), re.compile(r">\n {4,}<")

# Draws on a canvas, with the first and the second colour of lines.
Drawing = Callable[[Canvas, str, str], None]


def follow_scheme(light: str, dark: str) -> bytes:
    """Join a drawing in light and in dark colours into one SVG that follows the reader's scheme."""
    pairs = list(zip(_COLOUR.findall(light), _COLOUR.findall(dark), strict=True))
    names = {pair: f"--colour-{number}" for number, pair in enumerate(dict.fromkeys(pairs))}
    values = [" ".join(f"{name}: {pair[look]};" for pair, name in names.items()) for look in (0, 1)]
    style = (
        f"\n <style>\n  :root {{ {values[0]} }}\n"
        f"  @media (prefers-color-scheme: dark) {{ :root {{ {values[1]} }} }}\n </style>"
    )
    each = iter(pairs)
    svg = _COLOUR.sub(lambda _: f"var({names[next(each)]})", light)
    return one_line_a_part(_SVG_TAG.sub(lambda tag: tag[0] + style, svg, count=1)).encode()


def one_line_a_part(svg: str) -> str:
    """Write each part of a picture, such as a curve or a tick, on one line."""
    return _WITHIN.sub("><", _POINTS.sub(lambda points: " ".join(points[0].split()), svg))


def draw_svg(draw: Drawing, size: tuple[float, float]) -> bytes:
    """Draw a picture as an SVG."""
    return follow_scheme(*(_drawn_in(look, draw, size) for look in ("light", "dark")))


def _drawn_in(name: str, draw: Drawing, size: tuple[float, float]) -> str:
    look = LOOKS[name]
    ink, ground = look["ink"], look["ground"]
    colours = {
        **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor"), ink),
        **dict.fromkeys(("xtick.color", "ytick.color"), ink),
        **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), ground),
    }
    with mpl.rc_context(STYLE | colours):
        canvas = Canvas(figsize=size, layout="constrained")
        draw(canvas, *look["lines"])
        file = io.StringIO()
        canvas.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
        return file.getvalue()


def queue_acks_progress(run: Path) -> bytes:
    """Draw queue, ACKs and progress of the title's run, one above the other."""
    analysis = Analysis(run)
    figures = {each.id: each for each in all_figures(analysis, Metrics.read(run / METRICS))}
    queued = _line(figures["queues"], "forward queue")
    sent = _line(figures["sequence"], "left: sent")
    full = _line(figures["sequence"], "left: full link, one direction")
    acks = analysis.connections["left"].acks

    def draw(canvas: Canvas, first: str, second: str) -> None:
        queue, counted, progress = canvas.subplots(3, 1, sharex=True)
        seen = queued.x <= VIEW_S[1]
        queue.step(queued.x[seen], queued.y[seen], where="post", color=first, linewidth=1)
        queue.set(ylabel="packets\nin the queue")
        for times_ns, colour, label in (
            (acks.sent_ns, second, "ACKs as the receiver sends them"),
            (acks.arrived_ns, first, "on arrival: 13 at once"),
        ):
            x = analysis.run.seconds(times_ns)
            inside = np.flatnonzero((x >= VIEW_S[0]) & (x <= VIEW_S[1]))
            number = inside - np.searchsorted(analysis.run.seconds(acks.arrived_ns), VIEW_S[0])
            counted.plot(x[inside], number, ".", color=colour, markersize=3, label=label)
        counted.set(ylabel="ACK\nnumber")
        seen = sent.x <= VIEW_S[1]
        progress.plot(sent.x[seen], sent.y[seen], ".", color=first, markersize=3, label="data sent")
        progress.plot(full.x, full.y, "--", color=second, label="the capacity of the link")
        progress.set(ylabel="MB", xlabel="time, s", xlim=VIEW_S, ylim=(0, MOST_MB))
        for axes in (counted, progress):
            axes.legend(frameon=False, fontsize=8, loc="upper left")

    return draw_svg(draw, (8, 5))


def _line(figure: Figure, name: str) -> Line:
    return next(line for line in figure.lines if line.name == name)


def answer(run: Path) -> bytes:
    """Draw the goodput of README's own experiment."""
    figures = all_figures(Analysis(run), Metrics.read(run / METRICS))
    goodput = next(each for each in figures if each.id == "goodput")

    def draw(canvas: Canvas, first: str, second: str) -> None:
        axes = canvas.subplots()
        for line, colour in zip(goodput.lines, (first, second), strict=True):
            axes.step(line.x, line.y, where="post", color=colour, label=line.name, linewidth=1.2)
        axes.set(xlabel="time, s", ylabel="goodput, Mbit/s", ylim=(0, None))
        axes.legend(frameon=False, loc="center left")

    return draw_svg(draw, (8, 2.8))


def terminal(command: str, printed: str) -> bytes:
    """Draw the output of a command, with its colours, as a terminal shows it."""
    return follow_scheme(*(_screen(command, printed, theme) for theme in TERMINALS))


def _screen(command: str, printed: str, theme: TerminalTheme) -> str:
    console = Console(record=True, width=TERMINAL_COLUMNS, file=io.StringIO())
    console.print(Text(f"$ {command}"))
    console.print(Text.from_ansi(printed))
    svg = console.export_svg(title="twoway", theme=theme, unique_id="twoway")
    return _FONT_FACES.sub("", svg)


def architecture() -> bytes:
    """Draw the layers of import-linter's contracts, with each package's own first sentence."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    layers = {each["name"]: each["layers"] for each in contracts["contracts"] if "layers" in each}
    makes, judges = layers[MAKES_A_RUN], layers[JUDGES_A_RUN]
    joined = [row for row in makes if row in judges]
    first, last = (makes.index(row) for row in (joined[0], joined[1]))
    columns = [makes[first + 1 : last], [row for row in judges if row not in joined]]

    def draw(canvas: Canvas, line: str, other: str) -> None:
        axes = canvas.subplots()
        axes.set(xlim=(0, 2), ylim=(last + len(joined) - first + 2.1, -0.1))
        axes.set_axis_off()
        for y, row in enumerate(makes[: first + 1]):
            _box(axes, (0, y, 2), row, line)
        for column, rows in enumerate(columns):
            height = (last - first - 1) / len(rows)
            for y, row in enumerate(rows):
                at = (column, first + 1 + height * (y + 0.5) - 0.5, 1)
                _box(axes, at, row, (line, other)[column])
        for y, row in enumerate(joined[1:]):
            _box(axes, (0, last + y, 2), row, line)

    return draw_svg(draw, (8, 5.2))


def _box(axes: Axes, at: tuple[float, float, float], row: str, colour: str) -> None:
    """Draw a layer; its packages do not import each other."""
    x, y, width = at
    packages = [name.strip().removeprefix("twoway.") for name in row.split("|")]
    axes.barh(
        y + 0.5, width - 0.06, 0.82, left=x + 0.03, fill=False, edgecolor=colour, linewidth=1.2
    )
    axes.text(
        x + width / 2, y + 0.32, "  |  ".join(packages), ha="center", va="center", weight="bold"
    )
    says = [_first_sentence(name) for name in packages]
    size = 7.5 if width > 1 else 6.5
    axes.text(x + width / 2, y + 0.7, "  |  ".join(says), ha="center", va="center", size=size)


def _first_sentence(package: str) -> str:
    """Return the rest of a package's docstring after its name, without the full stop."""
    folder = PACKAGE / package
    path = folder / "__init__.py" if folder.is_dir() else PACKAGE / f"{package}.py"
    (docstring,) = re.findall(r'\A"""(.*?)(?:\n|""")', path.read_text("utf-8"))
    return str(docstring).rpartition(": ")[2].rstrip(".")


def bars(finding: Bars) -> bytes:
    """Draw a finding's numbers as bars with their values."""
    kept = read_numbers(ROOT / "docs/results/numbers")
    measured = [kept[row.point][row.metric] for row in finding.rows]
    values = [value * finding.scale for value in measured if value is not None]
    labels = [row.label for row in finding.rows]

    def draw(canvas: Canvas, line: str, other: str) -> None:
        del other
        axes = canvas.subplots()
        drawn_bars = axes.barh(range(len(values)), values, 0.6, color=line)
        axes.bar_label(drawn_bars, fmt="%.3g", padding=4)
        axes.set_yticks(range(len(values)), labels)
        axes.set(xlabel=finding.axis, xlim=(0, max(values) * 1.12))
        axes.invert_yaxis()
        axes.tick_params(left=False)

    return draw_svg(draw, (5.4, 0.8 + 0.32 * len(values)))


def run_of(experiment: str, folder: Path) -> tuple[Path, str]:
    """Carry out an experiment as a user does; return the run and what was printed."""
    wide = os.environ | {"FORCE_COLOR": "1", "COLUMNS": str(TERMINAL_COLUMNS)}
    done = subprocess.run(
        [Path(sys.executable).with_name("twoway"), "run", experiment, "--results", "results"],
        cwd=folder,
        env=wide,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    name = Path(experiment).stem if experiment.endswith(".yml") else experiment
    (run,) = (folder / "results" / name).iterdir()
    # Lines with a carriage return are the progress bar's.
    lines = [line for line in done.stdout.split("\n") if "\r" not in line and "\u2501" not in line]
    return run, "\n".join(lines).strip().replace(run.name, "RUN")


def readme_experiment() -> str:
    """Cut the experiment out of README."""
    readme = (ROOT / "README.md").read_text("utf-8")
    (experiment,) = re.findall(r"```yaml\n(.*?)```", readme, re.DOTALL)
    return str(experiment)


def all_run_pictures() -> dict[str, bytes]:
    """Run two experiments and draw their pictures, by file name."""
    with TemporaryDirectory(prefix="twoway-pictures-") as name:
        folder = Path(name)
        (folder / "mine.yml").write_text(readme_experiment(), "utf-8")
        titled, printed = run_of(TITLE_RUN, folder)
        own, _ = run_of("mine.yml", folder)
        return {
            "two-way-traffic.svg": queue_acks_progress(titled),
            "terminal.svg": terminal(f"twoway run {TITLE_RUN}", printed),
            "answer.svg": answer(own),
        }


def all_drawn_pictures() -> dict[str, bytes]:
    """Draw the pictures that need no run, by file name."""
    findings = {f"finding-{name}.svg": bars(finding) for name, finding in FINDINGS.items()}
    return {"architecture.svg": architecture(), **findings}


if __name__ == "__main__":
    for name, svg in (all_drawn_pictures() | all_run_pictures()).items():
        (ASSETS / name).write_bytes(svg)
        print(ASSETS / name)
