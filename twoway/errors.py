"""The errors twoway raises: one base, and the exit code each ends the command with."""


class TwowayError(Exception):
    """A failure with a sentence for the user.

    Args:
        message: where, what and the value.
        hint: what to do about it, shown after a blank line.
    """

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class SpecError(TwowayError):
    """An experiment, profile or topology that cannot be run; all its problems at once."""

    exit_code = 2

    def __init__(self, problems: list[str], hint: str = "") -> None:
        super().__init__("\n".join(problems), hint)
        self.problems = problems


class UsageError(TwowayError):
    """A command line that makes no sense."""

    exit_code = 2


class RunError(TwowayError):
    """A run that did not finish, or finished with something it must not have."""


class DiskFullError(RunError):
    """There is no space left for results; no other run would find any.

    Args:
        message: where, and how much there is.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, "make room and start again: runs that are complete are kept")
