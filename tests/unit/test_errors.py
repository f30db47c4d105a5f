"""The errors that twoway raises, as a Python program sees them."""

import traceback

from twoway.errors import UsageError


def test_a_traceback_ends_with_the_hint() -> None:
    """Python prints the hint of an error below its message, and nothing without a hint."""
    for hint, last in (("there are cwnd.up", "hint: there are cwnd.up\n"), ("", "cwn.up: none\n")):
        lines = traceback.format_exception(UsageError("cwn.up: none", hint))
        assert lines[-1].endswith(last)
