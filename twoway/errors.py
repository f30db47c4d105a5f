"""The errors that twoway raises, each with the exit code of the command."""


class TwowayError(Exception):
    """A failure with a sentence for the user.

    Args:
        message: where, what is wrong and the value.
        hint: what the user can do, shown after a blank line.
    """

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class SpecError(TwowayError):
    """All problems at once of an experiment, profile or topology."""

    exit_code = 2

    def __init__(self, problems: list[str], hint: str = "") -> None:
        super().__init__("\n".join(problems), hint)
        self.problems = problems


class UsageError(TwowayError):
    """A command line that makes no sense."""

    exit_code = 2


class RunError(TwowayError):
    """A run that did not finish, or in which the kernel reported a fault."""


class DiskFullError(RunError):
    """No space left for results, of this run or of any other.

    Args:
        message: the folder and the space that is left.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, "make room and start again: runs that are complete are kept")
