"""`typing.override`, as of Python 3.12.

For earlier ones typing_extensions has it, and takes 10 ms to load: only type checkers need that.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import override
else:

    def override(method: Any) -> Any:
        """Return a method unchanged."""
        return method


__all__ = ["override"]
