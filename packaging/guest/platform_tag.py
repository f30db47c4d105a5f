"""Tag the guest's wheel with its platform: any Python on Linux, x86-64 with Debian 12's glibc."""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PlatformHook(BuildHookInterface[Any]):
    """Sets the tag of the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Set the tag for every version."""
        assert version
        build_data |= {"pure_python": False, "tag": "py3-none-manylinux_2_36_x86_64"}
