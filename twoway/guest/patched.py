"""Copies of a build, in which make compiles what changed: a user's patch, a commit of a history."""

import filecmp
import re
import shutil
import tempfile
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path

from twoway.errors import UsageError
from twoway.guest.kernel import BuildError, Recipe, call, make_kernel
from twoway.progress import Steps

_PATCH_BYTES = 16 << 20
# The lines of patch(1) that say why, and the file that it is at.
_WHY = re.compile(r"FAILED|can't find|malformed|garbage|previously applied|dangerous")
_FILE = re.compile(r"^checking file (\S+)", re.MULTILINE)


def messages_of(patch: Path) -> list[EmailMessage]:
    """Read an mbox, a mail, or a diff alone, which becomes a mail without a subject.

    Raises: UsageError if the file is too large or has no diff.
    """
    if patch.stat().st_size > _PATCH_BYTES:
        raise UsageError(f"{patch}: larger than {_PATCH_BYTES >> 20} MiB, which no patch is")
    texts = re.split(rb"^(?=From )", patch.read_bytes(), flags=re.MULTILINE)
    messages = [message_from_bytes(text, policy=default) for text in texts]
    found = [each for each in messages if re.search(rb"^\+\+\+ ", _body(each), re.MULTILINE)]
    if not found:
        raise UsageError(f"{patch}: no diff in it", "`git format-patch --stdout` writes a patch")
    return found


def _body(message: EmailMessage) -> bytes:
    """Return a message's text, without quoted-printable or base64."""
    parts = (each.get_payload(decode=True) for each in message.walk() if not each.is_multipart())
    return b"\n".join(part for part in parts if isinstance(part, bytes))


def build_patched(base: Path, patch: Path, folder: Path, recipe: Recipe, steps: Steps) -> None:
    """Build the kernel of another folder with a patch; the new folder is gone if this fails.

    Raises: UsageError if the patch does not apply, or the kernel does not compile with it.
    """
    steps.begin(f"{recipe.name} kernel: apply {patch.name}")
    if not (base / "source").is_dir():
        raise UsageError(f"{base}: without its source, so that no patch can be applied")
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.NamedTemporaryFile() as text:
        text.write(b"\n".join(map(_body, messages_of(patch))))
        text.flush()
        words = ["patch", "-p1", "--forward", "--batch", "-i", text.name, "-d"]
        try:
            call([*words, str(base / "source"), "--dry-run"])
        except BuildError as error:
            raise UsageError(
                f"{patch}: does not apply to {base / 'source'}: {_refusal(str(error))}",
                "files that no guest compiles are not there",
            ) from error
        folder.mkdir(parents=True)
        try:
            call(["cp", "-al", str(base / "source"), str(folder)])  # patch(1) replaces files
            call(["cp", "-a", str(base / "build"), str(folder)])
            call([*words, str(folder / "source")])
            _move(base, folder)
            make_kernel(folder, recipe, steps)
        except BaseException as error:
            shutil.rmtree(folder)
            if isinstance(error, BuildError):
                raise UsageError(
                    f"{patch}: the kernel does not compile with it: {error.reason}"
                ) from error
            raise


def _refusal(said: str) -> str:
    """Return the first line of patch(1) that gives a reason, and the file."""
    lines = said.splitlines()
    number, line = next(
        ((n, each) for n, each in enumerate(lines) if _WHY.search(each)), (0, lines[0])
    )
    files = _FILE.findall("\n".join(lines[:number]))
    return f"{files[-1]}: {line}" if files else line


def begin_with(base: Path, folder: Path) -> None:
    """Copy a build beside another source, so that make compiles what differs.

    Files that are equal get the times of those of `base`.
    """
    call(["cp", "-a", str(base / "build"), str(folder)])
    _move(base, folder)
    for path in (base / "source").rglob("*"):
        other = folder / "source" / path.relative_to(base / "source")
        same = path.is_file() and other.is_file() and not other.is_symlink()
        if same and filecmp.cmp(path, other, shallow=False):
            shutil.copystat(path, other)


def _move(base: Path, folder: Path) -> None:
    """Write a copied build's new place, and plain gcc, where make would find them changed."""
    makefile = folder / "build/Makefile"
    was = re.search(r"^include (/.*)/source/Makefile$", makefile.read_text(), re.MULTILINE)
    old = was[1] if was else str(base)
    for path in (makefile, *(folder / "build").rglob("*.cmd")):
        text = path.read_text()
        path.write_text(text.replace(f"{old}/headers/cc", "gcc").replace(old, str(folder)))
