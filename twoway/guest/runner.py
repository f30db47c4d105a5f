"""The guest's runner and all modules that it imports, compiled into one file.

Each import costs a guest some twenty system calls, and each system call three of the host's
processes' switches; to compile the runner costs as much as to boot.
"""

import subprocess
import sys
from functools import cache
from importlib.util import MAGIC_NUMBER
from marshal import dumps
from pathlib import Path

from twoway.contract.writing import written_aside
from twoway.guest.programs import RUNNER_SOURCES
from twoway.guest.seals import content_hash
from twoway.paths import VM
from twoway.paths import cache as cache_folder

_SOURCES = VM / "guest"
# Their folder in a guest (decision 0030).
_IN_GUEST = "/mnt/twoway/vm/guest"
# It prints name, file and folder, if it is a package, of each module that `run` loads from a file.
_LIST = """
import sys
there = set(sys.modules)
sys.path.insert(0, sys.argv[1])
import run
for name, module in sys.modules.items():
    file = getattr(module.__spec__, "origin", "")
    if name not in there and file.endswith(".py"):
        print(name, file, *getattr(module, "__path__", ()))
"""
_MAIN = """
import sys
from _frozen_importlib import ModuleSpec
from marshal import loads

class Bundled:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name not in MODULES:
            return None
        file, folders, _ = MODULES[name]
        spec = ModuleSpec(name, cls, origin=file)
        spec.has_location = True
        spec.submodule_search_locations = folders or None
        return spec

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        exec(loads(MODULES[module.__name__][2]), module.__dict__)

sys.meta_path.insert(0, Bundled)
import run
sys.exit(run.main())
"""


@cache
def compiled_runner() -> Path:
    """Return the compiled runner for this Python; build it if it is not in the cache."""
    sources = (path.read_bytes() for path in RUNNER_SOURCES)
    key = content_hash(sys.version.encode(), _LIST.encode(), _MAIN.encode(), *sources)
    file = cache_folder() / "runners" / f"{key}.pyc"
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        code = compile(f"MODULES = {_modules()!r}\n{_MAIN}", "runner", "exec")
        with written_aside(file) as written:
            written.write(MAGIC_NUMBER + bytes(12) + dumps(code))
    return file


def _modules() -> dict[str, tuple[str, list[str], bytes]]:
    """List the modules that the runner imports: file and folders in the guest, and code."""
    argv = [sys.executable, "-I", "-S", "-c", _LIST, str(_SOURCES)]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    found = {}
    for name, file, *folders in map(str.split, said.splitlines()):
        inside = file.replace(str(_SOURCES), _IN_GUEST)
        code = compile(Path(file).read_bytes(), inside, "exec", dont_inherit=True, optimize=2)
        found[name] = inside, folders, dumps(code)
    return found
