"""Print the settings under net of this network namespace and of an untouched one, as JSON.

Run in a guest, as a program of a host.
"""

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

_ROOT = Path("/proc/sys")


def settings() -> dict[str, str]:
    """Read each setting of this namespace that can be read, by its name."""
    found = {}
    for path in sorted((_ROOT / "net").rglob("*")):
        if path.is_file():
            with suppress(OSError):
                found[".".join(path.relative_to(_ROOT).parts)] = path.read_text().strip()
    return found


if __name__ == "__main__":
    if sys.argv[1:] == ["one"]:
        json.dump(settings(), sys.stdout)
    else:
        untouched = ["unshare", "--net", sys.executable, __file__, "one"]
        done = subprocess.run(untouched, capture_output=True, text=True, check=True)
        json.dump({"here": settings(), "untouched": json.loads(done.stdout)}, sys.stdout)
