"""The terminal: rich's console, which only twoway's own control codes steer."""

from collections.abc import Iterable

from capture_analysis.printable import printable
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment


class PrintableConsole(Console):
    """A console that spells out control characters of what it prints, progress included."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render an object, without control characters but those of its style."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)
