"""Configuring and compiling a guest's kernel."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from twoway.errors import TwowayError
from twoway.guest.seals import content_hash, contents
from twoway.guest.source import Flavour, KernelSource, version_of
from twoway.paths import VM
from twoway.progress import Steps

# Configurations under vm/, each on top of the earlier ones.
_FRAGMENTS: dict[Flavour, list[str]] = {
    "guest": ["guest.config"],
    "sanitized": ["guest.config", "sanitized.config"],
    "newest": ["guest.config", "newest.config"],
    "newest-tun": ["guest.config", "newest.config", "newest-tun.config"],
    "wide": ["guest.config", "wide.config"],
    "6.1": ["guest.config", "6.1.config"],
}
# Patches under vm/, in order of application: those for kernels before the newest, the series for
# upstream without their cover letters, those that stay here.
_SERIES = "patches/upstream/*/000[1-9]-*.patch"
_NEWEST_PATCHES = (_SERIES, "patches/7.3/*.patch")
_GUEST_PATCHES = ("patches/older/*.patch", _SERIES, "patches/local/*.patch")
_PATCHES: dict[Flavour, Sequence[str]] = {
    "guest": _GUEST_PATCHES,
    "sanitized": _GUEST_PATCHES,
    "newest": _NEWEST_PATCHES,
    "newest-tun": _NEWEST_PATCHES,
    "wide": _GUEST_PATCHES,
    # Without those that only save time and do not fit.
    "6.1": (
        "patches/6.1/*.patch",
        "patches/older/*.patch",
        "patches/upstream/[!3]*/000[1-9]-*.patch",
        "patches/local/000[12689]-*.patch",
        "patches/local/0011-*.patch",
    ),
}
# The line in a patch that names its kernels.
_BOUNDS = re.compile(r"^Needed-(until|from): (\d+)\.(\d+)$", re.MULTILINE)
# Kbuild writes the versions of these programs into .config, though this kernel uses neither: hide
# them, so that the configuration is the same on every machine.
_NOT_USED = ("RUSTC=not-used", "PAHOLE=not-used")
# A kernel contains its build's time, place and user; these are fixed, so that builds are
# reproducible.
_REPRODUCIBLE = {
    "KBUILD_BUILD_TIMESTAMP": "1970-01-01",
    "KBUILD_BUILD_USER": "twoway",
    "KBUILD_BUILD_HOST": "twoway",
}
# Number of lines that make prints for 6.12 with our configuration: the length of the progress bar.
_LINES_OF_A_BUILD = 1310
# How tar unpacks an archive on all processors, by its suffix.
_EVERY_PROCESSOR = {".xz": ("-I", "xz -T0")}
# Half of the source: what no guest compiles. Kconfig files and Makefiles stay, because make reads
# all of them, and so does what the series for upstream changes.
_LEFT_OUT = (
    *("arch/[!ux]*/*.[chS]", "arch/*.dts*", "samples/*.c", "sound/*.[chS]"),
    *(
        f"drivers/{each}/*.[chS]"
        for each in (
            *("accel", "bluetooth", "clk", "comedi", "crypto", "dma", "gpu", "hid", "hwmon", "iio"),
            *("infiniband", "input", "isdn", "media", "mfd", "misc", "mmc", "mtd", "nvme", "phy"),
            *("net/can", "net/dsa", "net/ethernet", "net/phy", "net/usb", "net/wan"),
            *("net/wireless", "pinctrl", "platform", "power", "regulator", "s390", "scsi", "soc"),
            *("spi", "staging", "target", "usb", "video"),
        )
    ),
    *(
        f"fs/{each}/*.[ch]"
        for each in (
            *("afs", "bcachefs", "btrfs", "ceph", "ext4", "f2fs", "gfs2", "jfs", "nfs", "nfsd"),
            *("nls", "ntfs3", "ocfs2", "reiserfs", "smb", "ubifs", "udf", "xfs"),
        )
    ),
    *("Documentation/[!av]*/*", "Documentation/admin-guide/*.rst", "tools/perf/*"),
    "tools/testing/selftests/[!nu]*/*",
)


class BuildError(TwowayError):
    """The guest could not be built."""

    @property
    def reason(self) -> str:
        """The most informative line: a compiler's, if there is one."""
        lines = str(self).splitlines()
        return next((line for line in lines if "error:" in line), lines[0])


@dataclass(frozen=True)
class Recipe:
    """The configuration and compilation of a kernel.

    Attributes:
        name: the name in the progress display.
        arch: the value of ARCH=.
        target: make's target, the kernel's file.
        fragments: configurations under vm/, each on top of the earlier ones.
        patches: patterns of files under vm/, in order of application.
    """

    name: str
    arch: str
    target: str
    fragments: Sequence[str]
    patches: Sequence[str] = ()


def kernel_key(source: KernelSource, flavour: Flavour) -> str:
    """Hash everything from which a guest's kernel is made."""
    return content_hash(
        source.identity.encode(), *contents(VM, [*_FRAGMENTS[flavour], *_PATCHES[flavour]])
    )


def recipe_of(flavour: Flavour) -> Recipe:
    """Return the recipe of a guest's kernel."""
    return Recipe(flavour, "um", "linux", _FRAGMENTS[flavour], _PATCHES[flavour])


def compile_kernel(source: KernelSource, folder: Path, recipe: Recipe, steps: Steps) -> None:
    """Unpack, patch, configure and compile a kernel into `source` and `build` of a new folder.

    It stays in place: a build tree remembers its path.

    Raises: BuildError with the end of the compiler's output.
    """
    tree = folder / "source"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    steps.begin(f"{recipe.name} kernel: unpack")
    unpack(source, tree)
    for patch in patches_for(recipe.patches, tree):
        call(["patch", "-p1", "--forward", "-d", str(tree), "-i", str(patch)])
    headers = folder / "headers"
    shutil.copytree(VM / "headers", headers)
    (headers / "cc").chmod(0o755)  # a wheel does not keep it
    make_kernel(folder, recipe, steps, headers / "cc")
    shutil.rmtree(headers)


def make_kernel(folder: Path, recipe: Recipe, steps: Steps, compiler: Path | None = None) -> None:
    """Configure and compile the changes in the folder `source`, into the folder `build`.

    A new build, where nothing has compiled headers yet, takes a copy of vm/headers/cc.

    Raises: BuildError with the end of the compiler's output.
    """
    tree, output = folder / "source", folder / "build"
    paths = [VM / fragment for fragment in recipe.fragments]
    steps.begin(f"{recipe.name} kernel: configure")
    output.mkdir(exist_ok=True)
    make = ["make", "-C", str(tree), f"O={output}", f"ARCH={recipe.arch}", *_NOT_USED]
    if compiler:
        make.append(f"CC={compiler}")
    call([*make, "tinyconfig"])
    call(
        [
            str(tree / "scripts/kconfig/merge_config.sh"),
            "-m",
            "-O",
            str(output),
            str(output / ".config"),
            *map(str, paths),
        ],
        cwd=tree,
    )
    call([*make, "olddefconfig"])
    check_config(output / ".config", paths)
    jobs = len(os.sched_getaffinity(0))
    steps.begin(f"{recipe.name} kernel: compile ({jobs} jobs)", _LINES_OF_A_BUILD)
    if compiler:
        call([*make, "mm/util.o", "net/socket.o"], on_line=steps.advance)
    call([*make, f"-j{jobs}", recipe.target, "modules"], on_line=steps.advance)


def unpack(source: KernelSource, tree: Path) -> None:
    """Copy a tree, or unpack a tarball without what no guest compiles, into a new folder."""
    assert source.path is not None
    if source.path.is_dir():
        shutil.copytree(source.path, tree, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        return
    tree.mkdir()
    excluded = [f"--exclude=*/{pattern}" for pattern in _LEFT_OUT]
    archive = [*_EVERY_PROCESSOR.get(source.path.suffix, ()), "-xf", str(source.path)]
    call(["tar", *archive, "--strip-components=1", *excluded, "-C", str(tree)])


def patches_for(patterns: Sequence[str], tree: Path) -> Iterator[Path]:
    """List our patches for a tree, in order, without those for other versions.

    A line in a patch names the version: `Needed-until: 6.13`, or `Needed-from: 6.13`.
    """
    for pattern in patterns:
        for patch in sorted(VM.glob(pattern)):
            bounds = _BOUNDS.findall(patch.read_text())
            if all(
                (version_of(tree) < (int(major), int(minor))) == (bound == "until")
                for bound, major, minor in bounds
            ):
                yield patch


def check_config(config: Path, fragments: list[Path]) -> None:
    """Raise BuildError if Kconfig has changed an option of the fragments.

    Kconfig silently drops options whose dependencies are not met, and switches on what is selected
    or cannot be chosen. Of several fragments the last one that names an option decides.
    """
    options = re.compile(r"^(?:# )?(CONFIG_\w+)(?:=(.*)| is not set)$", re.MULTILINE)
    have = dict(options.findall(config.read_text()))
    wanted: dict[str, str] = {}
    for fragment in fragments:
        wanted |= options.findall(fragment.read_text())
    refused = [key for key, value in wanted.items() if have.get(key, "") != value]
    if refused:
        lines = ", ".join(f"{key}={wanted[key] or 'n'}" for key in refused)
        raise BuildError(f"{fragments[-1]}: this kernel does not accept {lines}")


def build_environment() -> dict[str, str]:
    """Return the environment of a build's programs, without that of a make around twoway."""
    ours = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MFLAGS")}
    return ours | _REPRODUCIBLE


def call(
    argv: list[str], cwd: Path | None = None, on_line: Callable[[], None] | None = None
) -> None:
    """Run a program of the build, which ends with this process; count the lines of its output.

    Raises: BuildError with the end of the output if the program fails, or if it is missing.
    """
    if not shutil.which(argv[0]):
        raise BuildError(f"{argv[0]} is not installed", "in a checkout `make setup` installs it")
    tail: list[str] = []
    with subprocess.Popen(
        ["setpriv", "--pdeathsig", "TERM", "--", *argv],  # the program ends with this process
        cwd=cwd,
        env=build_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            tail = [*tail[-40:], line.rstrip()]
            if on_line:
                on_line()
    if process.returncode != 0:
        raise BuildError(f"{' '.join(argv[:6])} ...: failed\n" + "\n".join(tail))
