"""Files of our modules that neither lock nor read a clock, compiled for user space."""

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
    """Compile files of kernel-modules, and stop at undefined behaviour.

    Args:
        made: the result, in a folder that gets headers as well.
        words: sources and further words for the compiler.

    Returns: the result.
    """
    headers = made.parent / "headers"
    for name in HEADERS:
        header = headers / name
        header.parent.mkdir(parents=True, exist_ok=True)
        header.write_text(f'#include "{TESTS / "user_space.h"}"\n')
    folders = (headers, MODULES, MODULES / "dtm", MODULES / "include/uapi")
    checks = ["-g", "-fsanitize=undefined", "-fno-sanitize-recover", "-Wall", "-Wextra", "-Werror"]
    include = [f"-I{folder}" for folder in folders]
    subprocess.run(["cc", *checks, *include, "-o", made, *words], check=True)
    return made
