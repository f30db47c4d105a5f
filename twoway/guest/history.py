"""A kernel's git history, built commit by commit in one folder of the cache.

A commit and our patches become a new commit. A checkout then touches only files that changed, and
make compiles only these.
"""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from twoway.errors import TwowayError, UsageError
from twoway.guest.cache import Guest, build_commit, build_lock, find_guest
from twoway.guest.kernel import BuildError, patches_for, recipe_of
from twoway.guest.patched import begin_with
from twoway.guest.seals import content_hash
from twoway.guest.source import Flavour, flavour_of
from twoway.paths import cache
from twoway.progress import Steps

# Author and date of our commits, equal for everybody.
_AUTHOR = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "twoway"), ("EMAIL", "twoway@localhost"), ("DATE", "@0 +0000"))
}


class History:
    """A repository of the kernel's source, and the guests built from it.

    The repository itself is only read: checkouts and `git bisect` happen in a clone.
    """

    def __init__(self, repository: Path, *, wide: bool = False) -> None:
        """Look at the repository; nothing is written yet.

        Args:
            repository: its folder.
            wide: True: kernels before 7.3 have the options of `kernel: wide`.

        Raises: UsageError if it is not a repository, or if git is missing.
        """
        self._repository = repository.resolve()
        self._wide = wide
        self._key = content_hash(f"{self._repository}{' wide' if wide else ''}".encode())
        self._folder = cache() / "history" / self._key
        if not self._repository.is_dir():
            raise UsageError(f"--source: {repository}: no such folder")
        above = {"GIT_CEILING_DIRECTORIES": str(self._repository.parent)}  # not searched
        try:
            _git("rev-parse", "--git-dir", there=self._repository, settings=above)
        except UsageError as error:
            raise UsageError(
                f"--source: {repository}: {error}", "a clone of the kernel's repository is needed"
            ) from error

    def commit(self, revision: str) -> str:
        """Return the full name of a commit of a kernel.

        Raises: UsageError if there is no such commit.
        """
        words = ("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
        try:
            commit = _git(*words, there=self._repository)
        except UsageError as error:
            raise UsageError(f"{revision:.80}: no commit of {self._repository}") from error
        if "Kbuild" not in _git("ls-tree", "--name-only", commit, there=self._repository).split():
            raise UsageError(f"{revision:.80}: {self._repository} has no kernel in this commit")
        return commit

    def title(self, commit: str) -> str:
        """Return a commit's first twelve digits, and its subject."""
        return self.git("log", "-1", "--format=%h %s", "--abbrev=12", commit)

    def git(self, *words: str, settings: Mapping[str, str] | None = None) -> str:
        """Run git in the clone; return its output.

        Raises: UsageError with git's own message.
        """
        return _git(*words, there=self._clone(), settings=settings)

    def guest(self, commit: str, steps: Steps) -> Guest:
        """Build the guest of a commit; it exists until the next one is built.

        Raises: BuildError if the kernel is too old, if our patches do not fit it, or if it does
            not compile.
        """
        steps.begin(f"{self.title(commit)}: check out")
        self.git("checkout", "--quiet", "--force", "--detach", self._patched(commit))
        flavour = self._flavour(self._folder / "source")
        if not (self._folder / "build").is_dir():
            self._begin(flavour)
        return build_commit(self._folder, commit, flavour, steps)

    def _begin(self, flavour: Flavour) -> None:
        """Begin with the build of a kernel in the cache, if one of the flavour is there."""
        try:
            built = find_guest(flavour)
        except TwowayError:  # of a source that is not here
            return
        if built and (base := built.kernel.parent.parent / "source").is_dir():
            begin_with(base.parent, self._folder)
            self.git("update-index", "-q", "--refresh")  # or git would write the files again

    def _flavour(self, tree: Path) -> Flavour:
        """Return the flavour of a commit's kernel; UsageError if it is too old."""
        flavour = flavour_of(tree)
        return "wide" if self._wide and flavour == "guest" else flavour

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Exclude other processes from building commits of the repository, for a `with`."""
        with build_lock(f"history-{self._key}"):
            yield

    def _clone(self) -> Path:
        """Clone the repository into the cache, without its objects, unless done already."""
        clone = self._folder / "source"
        if not clone.is_dir():
            self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self._folder) as scratch:
                words = ("clone", "--quiet", "--shared", "--no-checkout")
                _git(*words, str(self._repository), f"{scratch}/clone", there=self._folder)
                (Path(scratch) / "clone").rename(clone)
        return clone

    def _patched(self, commit: str) -> str:
        """Make a commit that has our patches on top of another, without a checkout."""
        with tempfile.TemporaryDirectory(dir=self._folder) as scratch:
            (Path(scratch) / "Makefile").write_text(self.git("show", f"{commit}:Makefile"))
            try:
                recipe = recipe_of(self._flavour(Path(scratch)))
            except UsageError as error:  # the tree is too old, or no kernel
                reason = str(error).removeprefix(f"{scratch}: ")
                raise BuildError(f"{commit[:12]}: {reason}", error.hint) from error
            settings = {**_AUTHOR, "GIT_INDEX_FILE": f"{scratch}/index"}
            self.git("read-tree", commit, settings=settings)
            for patch in patches_for(recipe.patches, Path(scratch)):
                try:  # with one line of context, as patch(1) uses if three do not match
                    self.git("apply", "--cached", "-C1", str(patch), settings=settings)
                except UsageError as error:
                    raise BuildError(
                        f"{commit[:12]}: {patch.name} does not fit: {error}"
                    ) from error
            tree = self.git("write-tree", settings=settings)
            words = ("commit-tree", tree, "-p", commit, "-m", "twoway's patches")
            return self.git(*words, settings=settings)


def _git(*words: str, there: Path, settings: Mapping[str, str] | None = None) -> str:
    # Without variables of a caller's git, such as GIT_DIR.
    outside = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(there), *words],
            env={**outside, **(settings or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except FileNotFoundError as error:
        raise UsageError("git is not installed", "`apt install git`") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise UsageError(f"git {words[0]}: {said[-1] if said else 'failed'}")
    return done.stdout.strip()
