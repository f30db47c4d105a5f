"""Build clib/*.c into capture_analysis/_clib.so.

The library knows nothing of Python: ctypes loads it (clib.py), no header of Python's is needed,
and one wheel serves every version of Python on a machine. There is no package without the library:
where it cannot be built, a sentence says what to install.
"""

from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError

HERE = Path(__file__).parent
SOURCES = sorted(str(path.relative_to(HERE)) for path in (HERE / "clib").glob("*.c"))
HEADERS = sorted(str(path.relative_to(HERE)) for path in (HERE / "clib").glob("*.h"))
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow"]
# Layers are files of their own and functions of a few lines: inlined across files, a packet takes
# a seventh less time.
OPTIMISED = ["-O3", "-flto"]


class BuildLibrary(build_ext):
    """Builds a shared library that is named for itself, not for a version of Python."""

    def get_ext_filename(self, fullname: str) -> str:
        """Return where the library goes."""
        return str(Path(*fullname.split("."))) + ".so"

    def build_extensions(self) -> None:
        """Build the library.

        Raises: CCompilerError, which says what to install, if there is no working compiler.
        """
        try:
            super().build_extensions()
        except CCompilerError as error:
            raise CCompilerError(
                f"capture-analysis needs a C compiler, and none works here ({error}): install one"
                " (Debian: apt install gcc libc6-dev), or a wheel that was built elsewhere"
                " (make wheel)"
            ) from error


class BuildWheel(bdist_wheel):
    """Builds a wheel for this platform and any Python 3."""

    def run(self) -> None:
        """Build the library before all else, so that what is missing is said at once."""
        self.run_command("build_ext")
        super().run()

    def get_tag(self) -> tuple[str, str, str]:
        """Return the tag of a library that ctypes loads."""
        return "py3", "none", super().get_tag()[2]


setup(
    ext_modules=[
        Extension(
            "capture_analysis._clib",
            SOURCES,
            depends=HEADERS,
            language="c",
            extra_compile_args=["-std=c11", *OPTIMISED, "-fvisibility=hidden", *WARNINGS],
            extra_link_args=OPTIMISED,
        )
    ],
    cmdclass={"build_ext": BuildLibrary, "bdist_wheel": BuildWheel},
)
