"""Builds native/*.c into capture_analysis/_native.so, where there is a C compiler.

The library knows nothing of Python: ctypes loads it (native.py), no header of Python's is needed,
and one wheel serves every version of Python on a machine. Without a compiler the package installs
all the same and works by numpy.
"""

from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

HERE = Path(__file__).parent
SOURCES = sorted(str(path.relative_to(HERE)) for path in (HERE / "native").glob("*.c"))
HEADERS = sorted(str(path.relative_to(HERE)) for path in (HERE / "native").glob("*.h"))
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow"]
# Layers are files of their own and functions of a few lines: inlined across files, a packet takes
# a seventh less time.
OPTIMISED = ["-O3", "-flto"]


class BuildLibrary(build_ext):
    """Builds a shared library that is named for itself, not for a version of Python."""

    def get_ext_filename(self, fullname: str) -> str:
        """Where it goes."""
        return str(Path(*fullname.split("."))) + ".so"


class TagWheel(bdist_wheel):
    """Tags the wheel by what is in it: a library for this platform, or Python alone."""

    def get_tag(self) -> tuple[str, str, str]:
        """For any Python 3; for any platform if the library could not be built."""
        built = (Path(self.bdist_dir) / "capture_analysis" / "_native.so").exists()
        self.root_is_pure = not built
        return "py3", "none", super().get_tag()[2] if built else "any"


setup(
    ext_modules=[
        Extension(
            "capture_analysis._native",
            SOURCES,
            depends=HEADERS,
            language="c",
            extra_compile_args=["-std=c11", *OPTIMISED, "-fvisibility=hidden", *WARNINGS],
            extra_link_args=OPTIMISED,
            optional=True,
        )
    ],
    cmdclass={"build_ext": BuildLibrary, "bdist_wheel": TagWheel},
)
