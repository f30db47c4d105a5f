"""Print the sysctls of an untouched network namespace, with the whole numbers that each takes.

Run in a guest, as a program of a host. The output is twoway/description/sysctls.json.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import fill

_ROOT = Path("/proc/sys")
_INTERFACE = re.compile(r"\.conf\.(default|lo)\.")
_LEAST, _MOST = -(1 << 63), 1 << 63


def takes(path: Path, text: str) -> bool:
    """Tell whether a setting can be written, and then reads as written."""
    try:
        opened = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        os.write(opened, text.encode())
        return os.pread(opened, 4096, 0).decode().split() == text.split()
    except OSError:
        return False
    finally:
        os.close(opened)


def edge(path: Path, taken: int, refused: int) -> int:
    """Find the last number that a setting takes, between one that it takes and one it refuses."""
    while abs(refused - taken) > 1:
        middle = (taken + refused) // 2
        if takes(path, str(middle)):
            taken = middle
        else:
            refused = middle
    return taken


def numbers(path: Path) -> list[int] | None:
    """Return the least and the largest number of a setting; none for words; None: read only."""
    text = path.read_text().strip()
    if not takes(path, text):
        return None
    try:
        value = int(text)
    except ValueError:
        return []
    found = [edge(path, value, _LEAST), edge(path, value, _MOST)]
    takes(path, text)
    return found


def table() -> str:
    """Write settings under net as JSON, by their numbers; of interfaces those unlike `all`, too."""
    files = (path for path in sorted((_ROOT / "net").rglob("*")) if path.is_file())
    found: dict[str, list[int] | None] = {}
    for path in files:
        name = ".".join(path.relative_to(_ROOT).parts)
        try:
            found[name] = numbers(path)
        except OSError:  # not to be read
            continue
    names: dict[str, list[str]] = {}
    for name, taken in found.items():
        if not _INTERFACE.search(name) or found.get(_INTERFACE.sub(".conf.all.", name)) != taken:
            names.setdefault(json.dumps(taken), []).append(name)
    rows = [f'"{taken}":\n{fill(json.dumps(of), 100)}' for taken, of in sorted(names.items())]
    return "{\n" + ",\n".join(rows) + "\n}\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["here"]:
        sys.stdout.write(table())
    else:
        untouched = ["unshare", "--net", sys.executable, __file__, "here"]
        subprocess.run(untouched, check=True)
