"""Unit tests have an empty cache and no kernel source, unless they ask for the fixture `guest`."""

import os
import tempfile
from collections.abc import Iterator
from functools import cache
from unittest.mock import patch

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Hide the user's guest from a test without the mark `guest`, and refuse to build one."""
    if item.get_closest_marker("guest"):
        return (yield)
    hidden = {"XDG_CACHE_HOME": _empty_cache().name, "KERNEL_SRC": "/no kernel source"}
    with patch.dict(os.environ, hidden):
        return (yield)


@cache
def _empty_cache() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="twoway-unit-cache-")
