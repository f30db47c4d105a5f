"""Building a guest: sources, releases of kernels, and their history."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from support.running import ROOT, ran
from support.warm_command import twoway

from twoway.errors import UsageError
from twoway.guest import cache, source
from twoway.guest.kernel import BuildError, Recipe, call, check_config, unpack
from twoway.guest.patched import begin_with, build_patched, messages_of
from twoway.guest.seals import contents
from twoway.guest.source import Flavour, KernelSource, version_of
from twoway.paths import VM
from twoway.progress import Steps

BUILDING = (
    "from twoway.guest.kernel import call; call(['sh', '-c', 'echo $$ > pid; exec sleep 99'])"
)


def test_a_build_that_is_killed_leaves_nothing_running(tmp_path: Path) -> None:
    """The programs that a build has started end with it, even if it is killed."""
    with subprocess.Popen([sys.executable, "-c", BUILDING], cwd=tmp_path) as build:
        started = tmp_path / "pid"
        while not (started.is_file() and started.read_text()):
            time.sleep(0.01)
        build.kill()
    child = Path("/proc", started.read_text().strip())
    for _ in range(500):
        if not child.is_dir() or "(zombie)" in (child / "status").read_text():
            return
        time.sleep(0.01)
    raise AssertionError("it is still running")


def test_a_program_that_a_build_lacks() -> None:
    """A program of a build that is not installed is named."""
    with pytest.raises(BuildError, match="no-such-make is not installed"):
        call(["no-such-make"])


def test_a_folder_that_is_no_source(tmp_path: Path) -> None:
    """A folder whose Makefile names no version of a kernel is no source of one."""
    (tmp_path / "Makefile").write_text("all:\n")
    with pytest.raises(UsageError, match="not a kernel tree: its Makefile has no version"):
        version_of(tmp_path)


@pytest.mark.parametrize(
    ("choice", "said"), [("wide", "the kernel wide cannot be built"), ("guest", "does not belong")]
)
def test_a_guest_without_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, choice: Flavour, said: str
) -> None:
    """A guest that was installed ready-made cannot become another kernel."""
    monkeypatch.delenv("KERNEL_SRC", raising=False)
    monkeypatch.setattr(source, "PACKAGED", tmp_path)
    (tmp_path / "deployed.json").write_text('{"source": "linux-source-6.12.tar.xz 1"}')
    with pytest.raises(BuildError, match=said):
        cache.build_guest(Steps(), choice)


def test_a_source_that_changes_during_a_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source that changes while the guest is built ends the build with a sentence."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("KERNEL_SRC", str(tmp_path))
    (tmp_path / "twoway").mkdir()
    (tmp_path / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 12\n")
    monkeypatch.setattr(cache, "_build_kernel", lambda *_: None)
    monkeypatch.setattr(cache, "build_guest_programs", lambda *_: None)  # leaves no programs
    with pytest.raises(BuildError, match="changed while it was built"):
        cache.build_guest(Steps())


def test_products_of_kbuild_are_no_sources(tmp_path: Path) -> None:
    """Modules that are built where their README says so leave the guest's sources as they are."""
    (tmp_path / "sch_dtm.c").write_text("source")
    before = [*contents(tmp_path, ["*.c"])]
    (tmp_path / "sch_dtm.mod.c").write_text("product")
    assert [*contents(tmp_path, ["*.c"])] == before == [b"sch_dtm.c", b"source"]


@pytest.mark.parametrize(
    ("later", "refused"),
    [
        ("CONFIG_A=y\n# CONFIG_B is not set\n", ""),
        ("CONFIG_A=m\n", "CONFIG_A=m"),
        ("CONFIG_C=y\n", "CONFIG_C=y"),
        ("# CONFIG_A is not set\n# CONFIG_C is not set\n", "CONFIG_A=n"),
    ],
)
def test_a_kernel_has_the_options_of_its_fragments(
    tmp_path: Path, later: str, refused: str
) -> None:
    """An option that Kconfig drops, changes or keeps on is refused; the last fragment decides."""
    made, first, second = (tmp_path / name for name in (".config", "first", "second"))
    made.write_text("CONFIG_A=y\n# CONFIG_B is not set\n")
    first.write_text("# Off\nCONFIG_A=y\nCONFIG_B=y\n")
    second.write_text("# CONFIG_B is not set\n" + later)
    if not refused:
        check_config(made, [first, second])
        return
    with pytest.raises(BuildError) as caught:
        check_config(made, [first, second])
    assert str(caught.value) == f"{second}: this kernel does not accept {refused}"


# A patch of the user's on top of a kernel.

DIFF = "--- a/net/a.c\n+++ b/net/a.c\n@@ -1 +1 @@\n-int a = {old};\n+int a = 2; /* = */\n"
MAIL = """From 1 Mon Sep 17 00:00:00 2001
Subject: [PATCH 0/1] a cover letter

From nothing to something.
From 2 Mon Sep 17 00:00:00 2001
Subject: =?utf-8?q?=5BPATCH_1/1=5D_two?=
Content-Transfer-Encoding: quoted-printable

"""


def _patched(folder: Path, patch: str) -> tuple[Path, Path]:
    """Build a kernel of one file with a patch."""
    (folder / "base/source/net").mkdir(parents=True)
    (folder / "base/source/net/a.c").write_text("int a = 1;\n")
    (folder / "base/build").mkdir()
    (folder / "base/build/Makefile").write_text(f"include {folder}/base/source/Makefile\n")
    (folder / "a.mbox").write_text(patch)
    recipe = Recipe("guest", "um", "linux", [])
    build_patched(folder / "base", folder / "a.mbox", folder / "new", recipe, Steps())
    return folder / "base", folder / "new"


def test_a_patch_is_applied_to_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mail's encoding is undone, the kernel beside it stays, and make finds the copy's paths."""
    monkeypatch.setattr("twoway.guest.patched.make_kernel", lambda *_: None)
    diff = DIFF.format(old=1).replace("=", "=3D")
    base, new = _patched(tmp_path, MAIL + diff)
    assert (base / "source/net/a.c").read_text() == "int a = 1;\n"
    assert (new / "source/net/a.c").read_text() == "int a = 2; /* = */\n"
    assert (new / "build/Makefile").read_text() == f"include {new}/source/Makefile\n"
    assert [each["subject"] for each in messages_of(tmp_path / "a.mbox")] == ["[PATCH 1/1] two"]


def test_a_history_begins_with_a_build(tmp_path: Path) -> None:
    """Files equal to those of the built kernel have their times, so that make compiles others."""
    for folder, text in (("base", "1"), ("new", "2")):
        (tmp_path / folder / "source").mkdir(parents=True)
        (tmp_path / folder / "source/same.c").write_text("same")
        (tmp_path / folder / "source/other.c").write_text(text)
    (tmp_path / "base/build/net").mkdir(parents=True)
    makefile, command = "include /old/source/Makefile\n", "/old/headers/cc -I/old/source\n"
    (tmp_path / "base/build/Makefile").write_text(makefile)
    (tmp_path / "base/build/net/.same.o.cmd").write_text(command)
    names = ("same", "other")
    for name in names:
        os.utime(tmp_path / f"base/source/{name}.c", ns=(1, 1))
    begin_with(tmp_path / "base", tmp_path / "new")
    now = {name: (tmp_path / f"new/source/{name}.c").stat().st_mtime_ns for name in names}
    assert now["same"] == 1 < now["other"]
    here = tmp_path / "new"
    assert (here / "build/net/.same.o.cmd").read_text() == f"gcc -I{here}/source\n"
    assert (here / "build/Makefile").read_text() == f"include {here}/source/Makefile\n"


@pytest.mark.parametrize(
    ("patch", "sentence"),
    [
        (DIFF.format(old=5), r"does not apply to .*source: net/a.c: Hunk #1 FAILED at 1"),
        (DIFF.format(old=1).replace("a.c", "b.c"), r"does not apply to .*: can't find file"),
        (DIFF.format(old=1), r"a.mbox: the kernel does not compile with it: make -C"),
        (MAIL, r"a.mbox: no diff in it"),
    ],
)
def test_a_patch_that_makes_no_kernel(tmp_path: Path, patch: str, sentence: str) -> None:
    """A patch that does not apply or compile is a sentence, and leaves nothing."""
    with pytest.raises(UsageError, match=sentence):
        _patched(tmp_path, patch)
    assert not (tmp_path / "new").exists()


# vm/releases.tsv is the one table of distributions; other lists agree with it.

ROWS = [
    line.split("\t")
    for line in (ROOT / "vm/releases.tsv").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]
RELEASES = [row[0] for row in ROWS]
# A suite's name stands for its release; sid is the next release.
SUITES = {suite for _, suite, *_ in ROWS if suite != "-"}


def test_the_guide_has_the_table() -> None:
    """docs/lab.md has each release's tested parts, in the table's words and order."""
    guide = (ROOT / "docs/lab.md").read_text(encoding="utf-8")

    def said(tried: str) -> str:
        return "not tried" if tried == "no" else f"tried: {tried}"

    rows = [f"| {name} | {said(use)} | {said(lab)} |" for name, _, use, lab in ROWS]
    assert "| release | experiments | lab |\n|---|---|---|\n" + "\n".join(rows) + "\n\n" in guide
    assert f"`{', '.join(RELEASES)} on x86_64 are supported`" in guide


@pytest.mark.parametrize("name", ["README.md", "docs/index.md"])
def test_where_to_begin(name: str) -> None:
    """The first page names exactly the releases on which experiments have been tried."""
    text = (ROOT / name).read_text(encoding="utf-8")
    (numbers,) = re.findall(r"[Oo]n Debian (\d+(?: and \d+| or \d+)*)[ ,]+with", text)
    tried = [release for release, _, use, _ in ROWS if use != "no"]
    assert [f"Debian {number}" for number in re.findall(r"\d+", numbers)] == tried


def test_kernels_are_of_these_suites() -> None:
    """The modules are built for kernels of the table's suites, and for the next kernel."""
    program = (ROOT / "kernel-modules/tests/fetch-headers").read_text(encoding="utf-8")
    table = program.partition("cat << EOF\n")[2].partition("EOF")[0]
    suites = {line.split()[2].removesuffix("-security") for line in table.splitlines()}
    assert suites <= {suite.removesuffix("-security") for suite in SUITES} | {"sid"}


def _on_path(folder: Path, programs: dict[str, str]) -> dict[str, str]:
    """Write programs of a line each; return an environment in which they stand for others."""
    for name, line in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / name).chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(folder)}


@pytest.mark.parametrize("known", ["", "linux-source-6.1 - old\nlinux-source-6.12 - new"])
def test_a_system_without_a_kernel_source_gets_debians(tmp_path: Path, known: str) -> None:
    """Apt installs the oldest source from 6.12 on; if it knows none, Debian's is fetched."""
    programs = {
        "apt-get": f'echo "apt-get $*" >> {tmp_path}/said',
        "fetch-source": f'echo "fetch-source $*" >> {tmp_path}/said',
        "apt-cache": f"printf '{known}'",
        "dpkg-query": "printf installed",
        "id": "echo 0",
    }
    path = _on_path(tmp_path, programs)
    program = (ROOT / "vm/install-packages").read_text().replace("/usr/src", str(tmp_path))
    (tmp_path / "install-packages").write_text(program)
    subprocess.run(["bash", tmp_path / "install-packages", "run"], env=path, check=True)
    _, install, *fetch = (tmp_path / "said").read_text().splitlines()
    package = "linux-source-6.12" if known else "debian-archive-keyring"
    assert install.endswith(f"--no-install-recommends {package}")
    assert fetch == ([] if known else ["fetch-source 6.12"])


@pytest.mark.parametrize(("version", "found"), [("6.1", "6.1"), ("6.12", "6.12"), (None, "7.3")])
def test_the_source_of_a_version_is_fetched(
    tmp_path: Path, version: str | None, found: str
) -> None:
    """The version's own package is fetched, not that of one which begins alike, or the newest."""
    names = "\\n".join(f"linux-source-{each}" for each in ("6.1", "6.12", "7.3"))
    programs = {
        "apt-cache": f'printf "{names}" | grep -E "$3"',
        "apt-get": f'echo "$*" >> {tmp_path}/said',
        "dpkg-deb": "exit 1",
    }
    program = (ROOT / "vm/fetch-source").read_text().replace("/usr/share/keyrings/", f"{tmp_path}/")
    (tmp_path / "fetch-source").write_text(program)
    (tmp_path / "debian-archive-keyring.gpg").touch()
    words = ["bash", str(tmp_path / "fetch-source"), *([version] if version else [])]
    subprocess.run(words, env=_on_path(tmp_path, programs), check=False)
    assert (tmp_path / "said").read_text().endswith(f"download linux-source-{found}\n")
    assert not list(tmp_path.rglob("*.tar.xz"))


# A folder that is no repository of the kernel's source.


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("gone", "--source: {source}: no such folder"),
        ("plain", "--source: {source}: git rev-parse: fatal: not a git repository"),
        ("other", "HEAD: {source} has no kernel in this commit"),
    ],
)
def test_a_source_that_is_none(
    source: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`bisect` names a source that is no kernel's repository, and leaves the cache empty."""
    (tmp_path / "plain").mkdir()
    (tmp_path / "other").mkdir()
    git = "git -c user.name=t -c user.email=t@example.org"
    for words in ("init --quiet", "commit --quiet --allow-empty --message x"):
        subprocess.run([*git.split(), *words.split()], cwd=tmp_path / "other", check=True)
    ends = ("--source", tmp_path / source, "--good", "HEAD", "--bad", "HEAD")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    done = twoway("bisect", "kalampoukas-5.2", *ends)
    assert done.returncode == 2
    assert sentence.format(source=tmp_path / source) in done.stderr
    assert not list((tmp_path / "cache/twoway").glob("history/*"))


TEXT = """
#ifdef COMPILED_ONCE
const char said[] = COMPILED_ONCE KBUILD_MODNAME pr_fmt("!");
#else
const char said[] = "alone, " KBUILD_MODNAME pr_fmt("!");
#endif
"""
KBUILD = ("-D__KERNEL__", "-O2", '-DKBUILD_MODNAME="{name}"', "-c", "-o", "{name}.o")


def _compile(folder: Path, name: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [each.format(name=name) for each in (*KBUILD, *words, f"{folder}/mm/{name}.c")]
    return ran([folder / "headers/cc", *command], cwd=folder)


@pytest.fixture
def precompiled(tmp_path: Path) -> Path:
    """Make a source whose file mm/util.c has compiled the headers, as a build does at first."""
    shutil.copytree(VM / "headers", tmp_path / "headers")
    header = '#define pr_fmt(fmt) fmt\n#define COMPILED_ONCE "once, "\n'
    (tmp_path / "headers/kernel.h").write_text(header)
    (tmp_path / "mm").mkdir()
    (tmp_path / "mm/own.h").write_text("#ifndef pr_fmt\n#define pr_fmt(fmt) fmt\n#endif\n")
    (tmp_path / "mm/util.c").write_text("int util;\n")
    assert _compile(tmp_path, "util").returncode == 0
    return tmp_path


@pytest.mark.parametrize(
    ("source", "word", "said"),
    [
        ('#include "own.h"', "-Imm", "once, file!"),
        ('#include "own.h"\n#define AFTER 1', "-Imm", "once, file!"),
        ('#define pr_fmt(fmt) " mine" fmt\n#include "own.h"', "-Imm", "once, file mine!"),
        ('#define FOR_A_HEADER 1\n#include "own.h"', "-Imm", "alone, file!"),
        ('#include "own.h"\n#warning "a word"', "-Imm", "alone, file!"),
        ('#include "own.h"', "-fexceptions", "alone, file!"),
        ('#include "own.h"', "-DMODULE", "alone, file!"),
    ],
)
def test_headers_are_compiled_once_for_files_that_fit(
    precompiled: Path, source: str, word: str, said: str
) -> None:
    """A file has the headers compiled once, with its own names, unless they would not fit it."""
    (precompiled / "mm/file.c").write_text(f"{source}\n{TEXT}")
    done = _compile(precompiled, "file", word)
    assert done.returncode == 0
    assert said.encode() + b"\0" in (precompiled / "file.o").read_bytes()
    assert done.stderr.count("a word") == 2 * source.count("#warning")  # the message and its line


def test_an_error_is_that_of_gcc(precompiled: Path) -> None:
    """A file that does not compile fails with gcc's message, once."""
    (precompiled / "mm/file.c").write_text("int file = unknown;\n")
    done = _compile(precompiled, "file")
    assert done.returncode == 1
    assert done.stderr.count("error:") == 1


def test_a_source_is_unpacked_without_what_no_guest_compiles(tmp_path: Path) -> None:
    """Kconfig files and files of patches are unpacked, drivers for devices are not."""
    patches = "\n".join(each.read_text() for each in VM.glob("patches/**/*.patch"))
    wanted = {
        *re.findall(r"^\+\+\+ b/(\S+)", patches, re.MULTILINE),
        *re.findall(r"<((?:linux|net)/\S+)>", (VM / "headers/net.h").read_text()),
        *("arch/arm/Kconfig", "drivers/gpu/drm/Kconfig", "drivers/net/veth.c", "fs/proc/base.c"),
        "tools/testing/selftests/net/packetdrill/defaults.sh",
    }
    tarball = tmp_path / "linux.tar.xz"
    with tarfile.open(tarball, "w:xz") as packed:
        for name in (*wanted, "arch/arm/arm.c", "drivers/gpu/drm/i915/i915.c", "fs/xfs/xfs.h"):
            packed.addfile(tarfile.TarInfo(f"linux/{name}"))
    unpack(KernelSource(tarball, ""), tmp_path / "tree")
    files = {p for p in (tmp_path / "tree").rglob("*") if p.is_file()}
    assert {str(p.relative_to(tmp_path / "tree")) for p in files} == wanted
