"""Kernel modules of one's own: a C file, or a folder with a Kbuild, beside the experiment file."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from twoway.contract.files_below import files_below
from twoway.description.congestion import CONTROLS, Control, declared_parameters
from twoway.errors import SpecError

# All files of a module together; they become part of the run's plan.
_MOST_BYTES = 1 << 20
_KBUILD = "Kbuild"


@dataclass(frozen=True)
class OwnModule:
    """A kernel module that belongs to an experiment.

    Attributes:
        name: as the kernel has it.
        sources: the contents of its source files, by name, with a Kbuild.
    """

    name: str
    sources: Mapping[str, str]

    def __hash__(self) -> int:
        """Hash the name and the sources."""
        return hash((self.name, *self.sources.items()))

    @cached_property
    def controls(self) -> tuple[str, ...]:
        """The congestion controls that the module registers, as its source names them."""
        return tuple(
            name
            for text in self.sources.values()
            for fields in re.findall(
                r"struct tcp_congestion_ops\s+\w+[^={;]*=\s*{(.*?)};", text, re.DOTALL
            )
            for name in re.findall(r'\.name\s*=\s*"([^"]+)"', fields)
        )

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The parameters that its source declares."""
        return tuple(name for text in self.sources.values() for name in declared_parameters(text))


def read_own_modules(paths: Sequence[str], folder: Path) -> tuple[OwnModule, ...]:
    """Read the modules that an experiment brings along.

    Args:
        paths: the experiment's `own_modules`.
        folder: the experiment's folder; paths are relative to it and must not leave it.

    Raises: SpecError with every path that names no module.
    """
    found, problems = [], []
    modules = {control.module for control in CONTROLS.values()}
    controls = set(CONTROLS)
    for path in paths:
        try:
            module = _read(folder, path)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            problems.append(f"own_modules: {path}: {reason}")
            continue
        clashes = [f'the module "{n}"' for n in {module.name} & modules]
        clashes += [f'the control "{n}"' for n in sorted({*module.controls} & controls)]
        problems += [f"own_modules: {path}: {clash} is there already" for clash in clashes]
        modules.add(module.name)
        controls |= {*module.controls}
        found.append(module)
    if problems:
        raise SpecError(problems)
    return tuple(found)


def _read(folder: Path, path: str) -> OwnModule:
    """Read one module; raise OSError or ValueError if the path names none."""
    files = [file for _, file in files_below(folder, path, "*.c", "*.h", _KBUILD)]
    if (folder / path).is_dir() and _KBUILD not in [file.name for file in files]:
        raise ValueError(f"has no {_KBUILD}")
    if sum(file.stat().st_size for file in files) > _MOST_BYTES:
        raise ValueError(f"more than {_MOST_BYTES} bytes of source")
    try:
        sources = {file.name: file.read_text("utf-8") for file in files}
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8: {error.reason} at byte {error.start}") from error
    sources.setdefault(_KBUILD, f"obj-m := {files[0].stem}.o\n")
    names = re.findall(r"^obj-m\s*[:+]?=\s*(\w+)\.o\s*$", sources[_KBUILD], re.MULTILINE)
    if len(names) != 1:
        raise ValueError(f'its {_KBUILD} must have one line "obj-m := NAME.o"')
    return OwnModule(names[0], sources)


def controls_with(modules: Iterable[OwnModule]) -> dict[str, Control]:
    """List all congestion controls: ours, the kernel's and those of an experiment's modules."""
    own = {name: Control(module.name) for module in modules for name in module.controls}
    return CONTROLS | own
