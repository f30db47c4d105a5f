"""The modules build without a warning for every kernel they are meant for, by make and by DKMS.

For Debian's kernels this happens in the user space of their suite, unpacked by
kernel-modules/tests/fetch-headers, with the compiler and the DKMS that a machine of that suite has.
"""

import os
import re
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import ROOT

from twoway.build import Guest
from twoway.manifest import git_revision

KERNEL_MODULES = ROOT / "kernel-modules"
SUITE_OF_KERNEL = {"6.1": "bookworm", "6.12": "bookworm", "7": "trixie-backports"}
CANNOT_BE_FETCHED = 77
DKMS_VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
MODULES = {
    "sch_dtm": "A channel of a DTM network",
    "tcp_fast": "FAST TCP",
    "tcp_fixed": "fixed window",
    "tcp_tahoe": "4.3BSD-Tahoe",
}


@dataclass(frozen=True)
class Headers:
    """A kernel's headers.

    Attributes:
        root: folder with the user space of a Debian suite, and the headers in it.
        release: of the kernel, as uname -r has it.
    """

    root: Path
    release: str

    def run(self, binds: dict[Path, str], folder: str, *argv: str) -> str:
        """Run a program as root of that user space, with more folders bound; all that it says."""
        sandbox = [
            *("bwrap", "--unshare-all", "--uid", "0", "--gid", "0", "--die-with-parent"),
            *(
                "--ro-bind",
                str(self.root / "usr"),
                "/usr",
                "--ro-bind",
                str(self.root / "etc"),
                "/etc",
            ),
            *("--symlink", "usr/bin", "/bin", "--symlink", "usr/sbin", "/sbin"),
            *("--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"),
            *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/var/lib/dkms"),
            *("--tmpfs", "/usr/src"),
        ]
        for part in (self.root / "usr/src").glob("linux-headers-*"):
            sandbox += ["--ro-bind", str(part), f"/usr/src/{part.name}"]
        for source, target in binds.items():
            sandbox += ["--bind", str(source), target]
        return succeed([*sandbox, "--chdir", folder, *argv], PATH="/usr/sbin:/usr/bin", HOME="/tmp")


def succeed(argv: list[str], **environment: str) -> str:
    """Run a program that must end well, in C's locale; its output and errors."""
    done = subprocess.run(
        argv,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env={**clean_environment(), **environment},
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def clean_environment() -> dict[str, str]:
    """Ours, without what a make around us would tell a make inside."""
    ours = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    return {**ours, "LC_ALL": "C", "PATH": f"{ours['PATH']}:/usr/sbin:/sbin"}


@pytest.fixture(scope="session", params=SUITE_OF_KERNEL)
def headers(request: pytest.FixtureRequest) -> Headers:
    """Headers of a kernel that Debian has; skips with the reason where they cannot be had."""
    fetch = [str(KERNEL_MODULES / "tests/fetch-headers"), SUITE_OF_KERNEL[request.param]]
    done = subprocess.run(fetch, capture_output=True, text=True, check=False)
    if done.returncode == CANNOT_BE_FETCHED:
        pytest.skip(f"not built for Linux {request.param}: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    root = Path(done.stdout.strip())
    releases = [folder.name for folder in (root / "usr/lib/modules").glob(f"{request.param}.*")]
    assert len(releases) == 1, f"headers of Linux {request.param} in {root}: {releases}"
    return Headers(root, releases[0])


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of the modules' sources to build in."""
    return shutil.copytree(KERNEL_MODULES, tmp_path / "kernel-modules")


def modinfo(module: Path, field: str) -> str:
    """A field of a module's description of itself."""
    return succeed(["modinfo", "-F", field, str(module)]).strip()


def check_modules(folder: Path, release: str, revision: str) -> None:
    """All modules are there and say what they are, what for, and from which revision."""
    assert {path.stem for path in folder.glob("*.ko")} == set(MODULES)
    for name, description in MODULES.items():
        module = folder / f"{name}.ko"
        assert modinfo(module, "vermagic").split()[0] == release
        assert modinfo(module, "version") == revision
        assert modinfo(module, "license") == "GPL"
        assert modinfo(module, "author") == "the twoway authors"
        assert description in modinfo(module, "description")
    assert modinfo(folder / "sch_dtm.ko", "alias").splitlines()[0] == "net-sch-dtm"


def complaints(output: str) -> list[str]:
    """What a silent build had to say, but for what concerns debuggers: no BTF without a vmlinux."""
    return [line for line in output.splitlines() if not line.startswith("Skipping BTF generation")]


def test_builds_for_debian_without_a_warning(headers: Headers, sources: Path) -> None:
    """For Debian's 6.1, 6.12 and 7.x the modules build with W=1, silently and complete."""
    output = headers.run(
        {sources: "/sources"},
        "/sources",
        *("make", "-s", f"-j{len(os.sched_getaffinity(0))}", f"KERNEL={headers.release}"),
        *("W=1", "KCFLAGS=-Werror"),
        "TWOWAY_REVISION=v1-2-gabc",
    )
    assert complaints(output) == []
    check_modules(sources, headers.release, "v1-2-gabc")


def test_builds_for_the_guest_without_a_warning(guest: Guest, sources: Path) -> None:
    """For user-mode Linux the modules build with W=1, silently and complete."""
    make = ["make", "-s", "-C", str(sources), f"KDIR={guest.kernel.parent}", "ARCH=um"]
    output = succeed([*make, "W=1", "KCFLAGS=-Werror", "TWOWAY_REVISION=v1-2-gabc"])
    assert complaints(output) == []
    check_modules(sources, guest.release, "v1-2-gabc")


def test_guest_modules_carry_its_key(guest: Guest) -> None:
    """The guest's modules name the content they are built from, so a commit alone changes none."""
    check_modules(guest.programs, guest.release, guest.key)


def test_dkms_installs_and_removes(headers: Headers, sources: Path, tmp_path: Path) -> None:
    """`make dkms-install` builds and installs all modules; `make dkms-remove` leaves none."""
    of_kernel = tmp_path / "lib" / headers.release
    of_kernel.mkdir(parents=True)
    (of_kernel / "build").symlink_to(f"/usr/src/linux-headers-{headers.release}")
    make = f"make KERNEL={headers.release} TWOWAY_REVISION=v1-2-gabc"
    script = f"""
        set -e
        {make} dkms-install
        dkms status
        cp -r /usr/lib/modules/{headers.release}/updates/dkms installed
        {make} dkms-remove
        ls /usr/src /var/lib/dkms > left
    """
    output = headers.run(
        {sources: "/sources", of_kernel.parent: "/usr/lib/modules"}, "/sources", "sh", "-c", script
    )
    assert re.search(
        rf"^twoway/{DKMS_VERSION}, {re.escape(headers.release)}, \w+: installed$",
        output,
        re.MULTILINE,
    )
    check_modules(sources / "installed", headers.release, "v1-2-gabc")
    assert list(of_kernel.rglob("*.ko*")) == []
    assert "twoway" not in (sources / "left").read_text()


def test_packaging_lists_every_module() -> None:
    """Kbuild and dkms.conf name the modules whose sources there are; versions are the project's."""
    packaging = (KERNEL_MODULES / "dkms.conf").read_text()
    built = re.findall(
        r"^obj-m \+= (\w+)\.o$", (KERNEL_MODULES / "Kbuild").read_text(), re.MULTILINE
    )
    packaged = re.findall(r'^BUILT_MODULE_NAME\[\d\]="(\w+)"$', packaging, re.MULTILINE)
    assert built == packaged == sorted(path.stem for path in KERNEL_MODULES.glob("*.c"))
    assert set(built) == set(MODULES)
    assert f'PACKAGE_VERSION="{DKMS_VERSION}"' in packaging


def told_revision(folder: Path) -> str:
    """The revision that the Makefile of a folder passes to the modules."""
    show = "show:;@echo $(TWOWAY_REVISION)"
    return succeed(["make", "-s", "-C", str(folder), f"--eval={show}", "show"]).strip()


def test_revision_is_gits_or_of_the_file_or_unknown(sources: Path) -> None:
    """The revision is git's in a checkout, else the REVISION file's, else unknown."""
    assert told_revision(KERNEL_MODULES) == git_revision()
    assert told_revision(sources) == "unknown"
    # Nor is it that of some other repository around the sources.
    succeed(["git", "init", "--quiet", str(sources.parent)])
    assert told_revision(sources) == "unknown"
    (sources / "REVISION").write_text("v1-2-gabc\n")
    assert told_revision(sources) == "v1-2-gabc"
