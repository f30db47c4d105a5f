"""The errors that twoway raises, each with the exit code of the command."""

import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from capture_analysis.errors import AnalysisError

_PACKAGE = str(Path(__file__).parent)


class TwowayError(Exception):
    """A failure with a sentence for the user.

    Args:
        message: the place, the problem and the value.
        hint: a way out for the user, shown after a blank line.
    """

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        if hint:
            self.add_note(f"hint: {hint}")  # Python prints it below the message


class SpecError(TwowayError):
    """All problems of an experiment, profile or topology."""

    exit_code = 2

    def __init__(self, problems: list[str], hint: str = "") -> None:
        super().__init__("\n".join(problems), hint)
        self.problems = problems


class UsageError(TwowayError):
    """A command line that cannot be carried out."""

    exit_code = 2


def exit_code_after(end: KeyboardInterrupt) -> int:
    """Return a shell's exit code of a program that a signal ended: 128 and the signal's number.

    Args:
        end: the interruption, with the number of the signal unless Ctrl-C raised it.
    """
    return 128 + int(end.args[0] if end.args else signal.SIGINT)


class CommandEndedError(TwowayError):
    """A command that a signal ended, with a hint at how to continue."""

    def __init__(self, end: KeyboardInterrupt, hint: str) -> None:
        super().__init__("interrupted", hint)
        self.exit_code = exit_code_after(end)


class RunError(TwowayError):
    """A run that did not finish, or whose kernel reported a fault."""


class DiskFullError(RunError):
    """No space left for results, of this run or of any other.

    Args:
        message: the folder and the space that is left.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, "make room and start again: complete runs are kept")


@contextmanager
def in_a_sentence(where: object, kind: type[Exception]) -> Iterator[None]:
    """Replace an exception that nothing foresaw by an error with a sentence.

    The files of a run come from a guest or from a stranger. If they pass every check and an
    analysis still fails, it fails for this run alone.
    """
    try:
        yield
    except (kind, TwowayError, AnalysisError, OSError):
        raise
    except MemoryError as error:
        raise kind(f"{where}: not enough memory") from error
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in frames if frame.filename.startswith(_PACKAGE)]
        place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "unknown"
        what = f"{type(error).__name__} at {place}: {error!s:.80}"
        raise kind(f"{where}: unforeseen {what}") from error
