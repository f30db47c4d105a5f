"""The modules build for each supported kernel, and DKMS accepts them."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from support.running import ROOT

from twoway import __version__
from twoway.description.congestion import module_parameters
from twoway.guest.cache import Guest
from twoway.paths import cache
from twoway.runs.manifest import git_revision

KERNEL_MODULES = ROOT / "kernel-modules"
FETCH_HEADERS = KERNEL_MODULES / "tests/fetch-headers"
COULD_NOT_FETCH = 75
MODULES = [
    "sch_dtm",
    "sch_medium",
    "sch_timetable",
    "tcp_bbr3",
    "tcp_fast",
    "tcp_fixed",
    "tcp_prague",
    "tcp_tahoe",
]
OF_THE_GUEST = [*MODULES, "twoway_testbed"]
REVISION = "v1-2-gabc"
STRICT = ("W=1", "KCFLAGS=-Werror", f"TWOWAY_REVISION={REVISION}")


def say(*argv: str | Path) -> str:
    """Run a program that must succeed; return all of its output, in C's locale."""
    # This process's environment without the variables of a make that started it.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    environment |= {"LC_ALL": "C", "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    done = subprocess.run(
        argv,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def kdir(kernel: str) -> Path:
    """Return the headers of one of Debian's kernels; skip if neither cached nor available."""
    done = subprocess.run([FETCH_HEADERS, kernel], capture_output=True, text=True, check=False)
    if done.returncode == COULD_NOT_FETCH:
        pytest.skip(f"modules not built for Linux {kernel}: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip()).resolve()


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Make a copy of the modules' sources, because a build writes beside them."""
    return shutil.copytree(
        KERNEL_MODULES,
        tmp_path / "kernel-modules",
        ignore=shutil.ignore_patterns("tests", "*.ko", "*.o", "*.mod*", ".*", "Module.symvers"),
    )


def check_modules(folder: Path, modules: list[str], release: str, revision: str) -> None:
    """Check that the modules exist and name their kernel and their revision."""
    assert sorted(path.stem for path in folder.glob("*.ko")) == modules
    for path in folder.glob("*.ko"):
        fields = dict(re.findall(r"^(\w+): +(.*)$", say("modinfo", path), re.MULTILINE))
        assert fields["license"] == "GPL"
        assert fields["revision"] == revision
        assert fields["vermagic"].split()[0] == release
    assert "net-sch-dtm" in say("modinfo", "-F", "alias", folder / "sch_dtm.ko").split()


@pytest.mark.long
@pytest.mark.parametrize("kernel", say(FETCH_HEADERS, "--list").split())
def test_builds_for_debian(kernel: str, sources: Path) -> None:
    """All modules but the guest's own build with W=1 for Debian's 6.1, 6.12 and newest kernel."""
    headers = kdir(kernel)
    said = say("make", "-s", "-C", headers, f"M={sources}", *STRICT, "modules")
    # Headers may lack the vmlinux whose types BTF needs; no other warning is allowed.
    assert re.sub(r"Skipping BTF generation for .*\n", "", said) == ""
    check_modules(sources, MODULES, headers.name.removeprefix("linux-headers-"), REVISION)


@pytest.mark.long
def test_builds_for_the_guest(guest: Guest, sources: Path) -> None:
    """For user-mode Linux all modules build with W=1, without output."""
    assert say("make", "-s", "-C", guest.kernel.parent, "ARCH=um", f"M={sources}", *STRICT) == ""
    check_modules(sources, OF_THE_GUEST, guest.release, REVISION)


def test_parameters_are_those_of_the_built_modules(guest: Guest) -> None:
    """The parameters that an experiment may set equal those that modinfo finds in each module."""
    for name in ("tcp_fast", "tcp_fixed", "tcp_tahoe"):
        listed = say("modinfo", "-F", "parm", guest.programs / f"{name}.ko").splitlines()
        built = {line.partition(":")[0] for line in listed}
        assert set(module_parameters(name)) == built != set()


def test_guest_modules_are_of_their_content_alone(guest: Guest, small_run: Path) -> None:
    """A guest's module changes with its own sources: it names neither a commit nor all sources."""
    check_modules(guest.programs, OF_THE_GUEST, guest.release, "by-content")
    modules = json.loads((small_run / "manifest.json").read_text())["modules"]
    assert sorted(modules) == [f"{name}.ko" for name in OF_THE_GUEST]
    assert all(guest.key.encode() not in (guest.programs / name).read_bytes() for name in modules)


@pytest.mark.slow
def test_revision_is_gits_or_the_files_or_unknown(sources: Path) -> None:
    """The revision is that of the file REVISION, or the checkout's, or "unknown"."""

    def revision(folder: Path) -> str:
        show = "show:;@echo $(TWOWAY_REVISION)"
        return say("make", "-s", "-C", folder, f"--eval={show}", "show").strip()

    assert revision(KERNEL_MODULES) == git_revision()
    assert revision(sources) == "unknown"
    around = ("git", "-C", sources.parent, "-c", "user.name=a", "-c", "user.email=a@localhost")
    say(*around, "init", "--quiet")
    say(*around, "commit", "--quiet", "--allow-empty", "--message", "another project")
    assert revision(sources) == "unknown", "not of a project that they only lie in"
    (sources / "REVISION").write_text(f"{REVISION}\n")
    assert revision(sources) == REVISION


@pytest.mark.slow
def test_packaging_names_every_module() -> None:
    """Kbuild and dkms.conf list the modules that exist, and dkms.conf has twoway's version."""
    kbuild = (KERNEL_MODULES / "Kbuild").read_text()
    packaging = (KERNEL_MODULES / "dkms.conf").read_text()
    indexed = re.findall(r'^BUILT_MODULE_NAME\[(\d+)\]="(\w+)"$', packaging, re.MULTILINE)
    destinations = re.findall(
        r'^DEST_MODULE_LOCATION\[(\d+)\]="/updates/dkms"$', packaging, re.MULTILINE
    )
    assert re.findall(r"^obj-m \+= (\w+)\.o$", kbuild, re.MULTILINE) == MODULES
    assert indexed == [(str(index), name) for index, name in enumerate(MODULES)]
    assert destinations == [index for index, _ in indexed]
    assert f'PACKAGE_VERSION="{__version__}"' in packaging


@pytest.mark.long
def test_dkms_installs_and_removes(tmp_path: Path) -> None:
    """With 6.1's headers `make dkms-install` installs every module, and dkms-remove removes it."""
    headers = kdir("6.1")
    release = headers.name.removeprefix("linux-headers-")
    dkms = headers.parents[1] / "sbin"
    assert (dkms / "dkms").is_file()
    library, registered, copied = (
        tmp_path / name for name in ("usr-lib", "var-lib-dkms", "usr-src")
    )
    installed = library / "modules"
    for folder in (installed / release, registered, copied):
        folder.mkdir(parents=True)
    (installed / release / "build").symlink_to(headers)
    # A machine without a packaged kernel has no /usr/lib/modules for a mount. So its whole /usr/lib
    # is replaced by links to its contents, plus that folder.
    for path in Path("/usr/lib").iterdir():
        if path.name != installed.name:
            (library / path.name).symlink_to(f"/mnt/{path.name}")
    # A system on which root may write only in these three folders, which are the test's.
    sandbox: list[str | Path] = [
        *("bwrap", "--unshare-all", "--uid", "0", "--gid", "0", "--die-with-parent"),
        *("--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),
        *("--ro-bind", "/usr/lib", "/mnt", "--bind", library, "/usr/lib", "--tmpfs", "/var/lib"),
        *("--bind", registered, "/var/lib/dkms"),
        *("--bind", copied, "/usr/src", "--ro-bind", ROOT, ROOT, "--ro-bind", cache(), cache()),
        *("--setenv", "PATH", f"{dkms}:/usr/sbin:/usr/bin"),
        *("make", "-C", KERNEL_MODULES, f"KERNEL={release}", f"TWOWAY_REVISION={REVISION}"),
    ]
    say(*sandbox, "dkms-install")
    check_modules(installed / release / "updates/dkms", MODULES, release, REVISION)
    say(*sandbox, "dkms-remove")
    assert not list(installed.rglob("*.ko*"))
    assert not list(copied.iterdir())
    assert not (registered / "twoway").exists()
