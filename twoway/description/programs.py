"""Programs of the host's file system that run on an experiment's hosts, and their files."""

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from twoway.contract.files_below import files_below
from twoway.contract.model import Model, Name, NonNegative, Positive, text
from twoway.contract.network import whole_ns
from twoway.contract.plan import PlannedFile
from twoway.errors import SpecError

# Limit for the files of an experiment's programs together. They become part of plan.json, a third
# larger, in the folder of each point: a sweep of 100 points keeps them 100 times.
_MIB = 1 << 20
_MOST_BYTES = 16 * _MIB
_MOST_FILES = 1000
_MOST_WORDS = 256


def _word(given: Any) -> Any:
    """Take a number or truth value of YAML as a word: -1, 5201, 0.5, true."""
    if isinstance(given, bool):
        return str(given).lower()
    return str(given) if isinstance(given, int | float) else given


# One word of a command, or the value of a variable.
_Word = Annotated[
    str, BeforeValidator(_word, json_schema_input_type=str | float | bool), Field(max_length=16384)
]
_Variable = Annotated[
    str, text(r"^[A-Za-z_][A-Za-z0-9_]*$", "of letters, digits and _, no digit first", most=256)
]
_Kept = Annotated[
    str, text(r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", "of letters, digits and _ . -, no path", most=64)
]


class HostProgram(Model):
    """A program on a host: its command, start and end."""

    name: Name = Field(description="its name in metrics, and the name of its folder and output")
    host: str = Field(description="the host that runs it")
    command: Annotated[list[_Word], Field(min_length=1, max_length=_MOST_WORDS)] = Field(
        description="the program and its arguments, without a "
        "shell; hosts are reached by their names"
    )
    start_s: NonNegative = Field(default=0, description="start, after the traffic's start")
    stop_s: Positive | None = Field(
        default=None,
        description="time of the SIGTERM that asks it to end, after the traffic's start; "
        "by default "
        "the end of traffic",
    )
    exit_code: Annotated[int, Field(ge=0, le=255)] | None = Field(
        default=0,
        description="the exit status with which it must end by itself; null for a "
        "program that must "
        "run until the SIGTERM",
    )
    files: list[Annotated[str, Field(min_length=1, max_length=256)]] = Field(
        default=[],
        description="files and folders to copy into the folder in which it starts, by their paths "
        "from the experiment's file",
    )
    environment: dict[_Variable, _Word] = Field(
        default={}, description="environment variables besides PATH and HOME (its folder)"
    )
    udp_port: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        default=None,
        description="the UDP port that it sends from, such as a server's of QUIC: the payload that "
        "arrives from there is its goodput",
    )
    keeps: list[_Kept] = Field(
        default=[],
        description="files of its folder to keep after the run, as programs/NAME/FILE; it must "
        "have written each",
    )


def program_problems(programs: Sequence[HostProgram], duration_s: float) -> list[str]:
    """List contradictions in programs, each after its field."""
    problems = []
    for index, program in enumerate(programs):
        end_s = duration_s if program.stop_s is None else program.stop_s
        where = f"programs.{index}"
        if not program.command[0]:
            problems.append(f"{where}.command.0: names no program")
        if whole_ns(end_s) > whole_ns(duration_s):
            problems.append(
                f"{where}.stop_s: must be at most duration_s ({duration_s:g}), got {end_s:g}"
            )
        if whole_ns(program.start_s) >= whole_ns(end_s):
            field = "duration_s" if program.stop_s is None else "stop_s"
            problems.append(
                f"{where}.start_s: must be below {field} ({end_s:g}), got {program.start_s:g}"
            )
    return problems


def read_files(programs: Sequence[HostProgram], folder: Path) -> dict[str, dict[str, PlannedFile]]:
    """Read the files of programs.

    Args:
        programs: the experiment's programs.
        folder: the experiment's folder; paths are relative to it and must not leave it.

    Returns: files by their paths in the program's folder, by the program's name.
    Raises: SpecError with every path that cannot be copied.
    """
    found: dict[str, dict[str, Path]] = {}
    problems = []
    for index, program in enumerate(programs):
        mine = found.setdefault(program.name, {})
        for path in program.files:
            try:
                mine.update(files_below(folder, path, "**/*"))
            except (OSError, ValueError) as error:
                reason = error.strerror if isinstance(error, OSError) else error
                problems.append(f"programs.{index}.files: {path}: {reason}")
    if problems := problems or _excesses(found):
        raise SpecError(problems)
    try:
        return {
            name: {path: _plan_file(file) for path, file in files.items()}
            for name, files in found.items()
        }
    except OSError as error:
        raise SpecError([f"programs: {error.filename}: {error.strerror}"]) from error


def _excesses(found: Mapping[str, Mapping[str, Path]]) -> list[str]:
    """List the limits that the files of all programs together exceed."""
    sizes = [
        (file.stat().st_size, f"{name}'s {path}")
        for name, files in found.items()
        for path, file in files.items()
    ]
    problems = []
    if len(sizes) > _MOST_FILES:
        problems.append(f"programs: files: must be at most {_MOST_FILES}, got {len(sizes)}")
    if (total := sum(size for size, _ in sizes)) > _MOST_BYTES:
        size, largest = max(sizes)
        problems.append(
            f"programs: files: must be at most {_MOST_BYTES >> 20} MiB together, got "
            f"{total / _MIB:.1f}; the largest is {largest}, {size / _MIB:.1f} MiB"
        )
    return problems


def _plan_file(file: Path) -> PlannedFile:
    content = base64.b64encode(file.read_bytes()).decode()
    return PlannedFile(base64=content, executable=bool(file.stat().st_mode & 0o100))
