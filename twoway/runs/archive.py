"""Archives of runs for other machines, with checksums of all files.

An archive is unpacked under a temporary name and checked before its runs are moved to the results,
so that a truncated or changed archive leaves nothing that looks like a run.
"""

import hashlib
import io
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from twoway.backends.guest_files import DEEPEST
from twoway.contract.files import digest_of, open_run_file
from twoway.errors import DiskFullError, TwowayError
from twoway.manifest import CAPTURES, MACHINE, MANIFEST, read_manifest

_SUMS = "SHA256SUMS"
# The most files of an archive: enough for some thousand runs.
_MOST_FILES = 200_000
# A folder costs as much time as a file, and a file may lie in DEEPEST folders of its own.
_MOST_FOLDERS = 50_000
# Endings of files whose scripts a browser runs.
_PAGES = (".html", ".htm", ".xhtml", ".svg", ".xml")
# EXPERIMENT/RUN: not an option, not hidden, and not the link to the latest run.
_RUN = re.compile(r"(?!latest/)[A-Za-z0-9][A-Za-z0-9@=,._+-]*/[A-Za-z0-9][A-Za-z0-9._-]*")


class ArchiveError(TwowayError):
    """An archive of runs that is incomplete or changed, or cannot be made."""

    exit_code = 2


def finished_runs(results: Path) -> list[str]:
    """List the complete runs below a results folder, as "EXPERIMENT/RUN"."""
    found = results.glob(f"*/[0-9]*/{MANIFEST}")
    return sorted(f"{path.parts[-3]}/{path.parts[-2]}" for path in found)


def pack_runs(results: Path, runs: Iterable[str], to: BinaryIO, *, captures: bool = True) -> None:
    """Write an archive of runs.

    Args:
        results: the results folder.
        runs: names of runs, as finished_runs() returns them.
        to: the archive, written from beginning to end without seeking.
        captures: False leaves the captures out.

    Raises: ArchiveError if a name is not one of a run, or if a run does not exist or is not
        complete.
    """
    sums = []
    with tarfile.open(fileobj=to, mode="w|") as archive:
        for run in runs:
            if not _RUN.fullmatch(run):
                raise ArchiveError(f"{run!r:.80}: must be EXPERIMENT/RUN")
            _refuse_damaged(results / run)
            for path in sorted((results / run).rglob("*")):
                if path.parent.name == CAPTURES and not captures:
                    continue
                if path.is_file() and not path.is_symlink() and path.name[0] != ".":
                    name = str(path.relative_to(results))
                    content = _content(results, name)  # only once: an analysis may replace the file
                    sums.append(f"{hashlib.sha256(content).hexdigest()}  {name}\n")
                    _add(archive, name, content, int(path.stat().st_mtime))
        _add(archive, _SUMS, "".join(sums).encode(), 0)


def _content(results: Path, name: str) -> bytes:
    """Read a file of a run as root, without following links that its owner may plant."""
    try:
        with open_run_file(results, name) as file:
            return file.read()
    except OSError as error:
        raise ArchiveError(
            f"{results / name}: not readable, no plain file, or below a link: {error}"
        ) from error


def _end_of(folder: Path) -> bytes | None:
    """Read the document that ends a run, or a host's part of one, if any."""
    for name in (MANIFEST, MACHINE):
        with suppress(FileNotFoundError), open_run_file(folder, name) as file:
            return file.read()
    return None


def _add(archive: tarfile.TarFile, name: str, content: bytes, changed: int) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mtime = len(content), changed
    archive.addfile(member, io.BytesIO(content))


def unpack_runs(packed: BinaryIO, results: Path, *, pages: bool = False) -> list[Path]:
    """Unpack an archive's runs into a results folder; keep existing runs.

    Args:
        packed: the archive.
        results: the results folder.
        pages: True keeps reports and pictures, if their maker is trusted: a browser runs the
            scripts in them.

    Returns: the runs' folders, in the archive's order.
    Raises: ArchiveError if a checksum differs, a file is missing or not listed, or a different run
        of the same name exists; DiskFullError if a file is larger than the free space. No run is
        added in these cases.
    """
    results.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".gathering-", dir=results) as scratch:
        aside = Path(scratch)
        try:
            with tarfile.open(fileobj=packed, mode="r|") as archive:
                folders: set[Path] = set()
                for number, member in enumerate(archive):
                    if number == _MOST_FILES:
                        raise ArchiveError(f"archive of runs: more than {_MOST_FILES} files")
                    folders.update(Path(member.name).parents)
                    if len(folders) > _MOST_FOLDERS:
                        raise ArchiveError(f"archive of runs: more than {_MOST_FOLDERS} folders")
                    _extract(archive, member, aside)
            runs = _check_unpacked(aside)
        except (tarfile.TarError, EOFError, ValueError, RecursionError) as error:
            raise ArchiveError(f"not a whole archive of runs: {error}") from error
        for run in runs:
            _refuse_damaged(aside / run)
            _refuse_another(aside / run, results / run)
            for path in () if pages else [*(aside / run).rglob("*")]:
                if path.suffix.lower() in _PAGES and path.is_file():
                    path.unlink()
        for run in runs:
            if not (results / run).exists():
                (results / run).parent.mkdir(exist_ok=True)
                (aside / run).rename(results / run)
    return [results / run for run in runs]


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, aside: Path) -> None:
    """Unpack a plain file below `aside`; refuse anything else.

    tarfile's own filters came with Python 3.11.4; Debian 12 has 3.11.2.
    """
    parts = Path(member.name).parts
    plain = member.isreg() and not member.issparse()
    placed = (
        2 < len(parts) <= 2 + DEEPEST and ".." not in parts and _RUN.fullmatch("/".join(parts[:2]))
    )
    content = archive.extractfile(member) if plain and (placed or member.name == _SUMS) else None
    if content is None:
        raise ArchiveError(f"archive of runs: {member.name:.200}: not allowed")
    free = shutil.disk_usage(aside).free
    if member.size > free:
        raise DiskFullError(
            f"{aside.parent}: {member.name:.200}: {member.size} bytes, and {free} are free"
        )
    try:
        (aside / member.name).parent.mkdir(parents=True, exist_ok=True)
        with open_run_file(aside, member.name, new=True) as file:
            shutil.copyfileobj(content, file)
    except (FileExistsError, NotADirectoryError) as error:
        raise ArchiveError(f"archive of runs: {member.name:.200}: its name occurs twice") from error


def _check_unpacked(aside: Path) -> list[str]:
    """Check all files of an unpacked archive; return its runs."""
    try:
        lines = (aside / _SUMS).read_text("utf-8").splitlines()
    except OSError as error:
        raise ArchiveError(f"not a whole archive of runs: no {_SUMS}") from error
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    there = {str(p.relative_to(aside)) for p in aside.rglob("*") if p.is_file()} - {_SUMS}
    if there != set(sums):
        raise ArchiveError(
            f"archive of runs: {', '.join(sorted(there ^ set(sums)))}: differ from those sent"
        )
    for name, digest in sums.items():
        with open_run_file(aside, name) as file:
            found = digest_of(file)
        if found != digest:
            raise ArchiveError(
                f"archive of runs: {name}: its checksum differs from the one it was sent with"
            )
    return list(dict.fromkeys("/".join(Path(name).parts[:2]) for name in sums))


def _refuse_damaged(folder: Path) -> None:
    """Raise ArchiveError unless a run is finished and matches its manifest."""
    if _end_of(folder) is None:
        raise ArchiveError(f"{folder}: not a finished run")
    if not (folder / MANIFEST).is_file():  # a host's part of a run has none
        return
    try:
        damaged = read_manifest(folder).list_damaged(folder)
    except ValueError as error:
        raise ArchiveError(str(error)) from error
    if damaged:
        raise ArchiveError(f"{folder}: missing or changed since the run: {', '.join(damaged)}")


def _refuse_another(new: Path, old: Path) -> None:
    if old.exists() and _end_of(new) != _end_of(old):
        raise ArchiveError(f"{old}: another run of that name exists")
