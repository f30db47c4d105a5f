"""placeholder"""
from dataclasses import dataclass
from pathlib import Path
@dataclass(frozen=True)
class Guest:
    kernel: Path
    programs: Path
    has_seccomp: bool
