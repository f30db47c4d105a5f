"""The terminal: rich's console, which obeys only twoway's own control codes."""

from collections.abc import Iterable

from capture_analysis.printable import printable
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment


class PrintableConsole(Console):
    """A console that prints control characters of its text in readable form."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render an object; control characters remain only for its style."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)
