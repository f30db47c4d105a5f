"""The guest's runner loads its own modules and refuses late changes."""

import os
import py_compile
from pathlib import Path
from types import ModuleType

import plan_clock
import pytest
import run
from network import GuestError


def test_a_module_is_compiled_whatever_its_cache_has(tmp_path: Path) -> None:
    """The runner neither reads nor writes Python's cache of compiled modules."""
    source = tmp_path / "module.py"
    source.write_text("VALUE = 1\n")
    before = source.stat()
    cached = Path(py_compile.compile(str(source), doraise=True) or "")
    source.write_text("VALUE = 2\n")
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    module = ModuleType("module")
    run._Compiled("module", str(source)).exec_module(module)
    assert vars(module)["VALUE"] == 2
    cached.unlink()
    run._Compiled("module", str(source)).exec_module(module)
    assert not cached.exists()


def test_a_change_that_lasts_is_refused() -> None:
    """A change of a link that ends too late fails the run, and the error has its lateness."""
    change = {"kind": "command", "node": None, "run": ["true"], "stdin": ["qdisc change"]}
    run.change(change | {"at_ns": 0, "by_ns": plan_clock.plan_now_ns() + 10**12})
    with pytest.raises(GuestError, match=r"qdisc change: in force after \d+ us"):
        run.change(change | {"at_ns": plan_clock.plan_now_ns(), "by_ns": plan_clock.plan_now_ns()})
