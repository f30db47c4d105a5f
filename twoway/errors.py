"""The errors that twoway raises, each with the exit code of the command."""


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


class RunError(TwowayError):
    """A run that did not finish, or whose kernel reported a fault."""


class DiskFullError(RunError):
    """No space left for results, of this run or of any other.

    Args:
        message: the folder and the space that is left.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, "make room and start again: complete runs are kept")
