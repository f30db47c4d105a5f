"""Unit tests have an empty cache and no kernel source, unless they ask for the fixture `guest`."""

import os
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pytest

_HERE = Path(__file__).parent


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Hide the user's guest from a unit test without the mark `guest`; refuse to build one.

    pytest calls this hook for tests of every folder.
    """
    if item.get_closest_marker("guest") or not item.path.is_relative_to(_HERE):
        return (yield)
    hidden = {"XDG_CACHE_HOME": _empty_cache().name, "KERNEL_SRC": "/no kernel source"}
    with patch.dict(os.environ, hidden):
        return (yield)


@cache
def _empty_cache() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="twoway-unit-cache-")
