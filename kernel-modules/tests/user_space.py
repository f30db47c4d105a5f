"""Files of our modules that neither lock nor read a clock, compiled for user space."""

import os
import subprocess
from pathlib import Path

TESTS = Path(__file__).resolve().parent
MODULES = TESTS.parent
# The kernel's headers that they include: each is user_space.h here.
HEADERS = (
    *(f"linux/{name}.h" for name in ("list", "math64", "minmax", "overflow", "time64", "types")),
    "net/netlink.h",
)


def compile_for_user_space(made: Path, *words: str | Path) -> Path:
    """Compile files of kernel-modules into a library that stops at undefined behaviour.

    It has the address sanitizer in a process that has preloaded it.

    Args:
        made: the result, in a folder that gets headers as well.
        words: sources and further words for the compiler.

    Returns: the result.
    """
    if os.environ.get("LD_PRELOAD") == address_sanitizer():
        words = ("-fsanitize=address", *words)
    headers = made.parent / "headers"
    for name in HEADERS:
        header = headers / name
        header.parent.mkdir(parents=True, exist_ok=True)
        header.write_text(f'#include "{TESTS / "user_space.h"}"\n')
    folders = (headers, MODULES, MODULES / "dtm", MODULES / "include/uapi")
    checks = ["-g", "-fsanitize=undefined", "-fno-sanitize-recover", "-Wall", "-Wextra", "-Werror"]
    include = [f"-I{folder}" for folder in folders]
    subprocess.run(["cc", *checks, *include, "-shared", "-fPIC", "-o", made, *words], check=True)
    return made


def address_sanitizer() -> str:
    """Return the library that a process must preload for the address sanitizer."""
    found = ["cc", "-print-file-name=libasan.so"]
    return subprocess.run(found, capture_output=True, text=True, check=True).stdout.strip()
