"""Tag the guest's wheel with its platform: any Python on x86-64 Linux with this glibc or later."""

import platform
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PlatformHook(BuildHookInterface[Any]):
    """Sets the tag of the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Set the tag for every version."""
        assert version
        glibc = platform.libc_ver()[1].replace(".", "_")
        build_data |= {"pure_python": False, "tag": f"py3-none-manylinux_{glibc}_x86_64"}
