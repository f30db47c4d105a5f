"""A folder of a stranger, with a file for each module that a program might import by mistake."""

import sys
from pathlib import Path

# Modules that are not of the standard library; a dot separates a package from its module.
_OTHERS = (
    *("twoway.cli", "twoway.sweeps", "capture_analysis.cli", "capture_analysis.parallel_analysis"),
    *("numpy", "yaml", "pydantic", "rich", "zstandard", "matplotlib", "distributed", "dask"),
    *("mininet", "sitecustomize", "usercustomize"),
)
_RAN = "ran.txt"


def plant_modules(folder: Path) -> None:
    """Write modules to a folder that leave a note there when they run."""
    note = f"with open({str(folder / _RAN)!r}, 'a') as ran: ran.write(__name__ + '\\n')\n"
    for name in {*sys.stdlib_module_names, *_OTHERS}:
        package, _, module = name.rpartition(".")
        (folder / package).mkdir(exist_ok=True)
        if package:
            (folder / package / "__init__.py").write_text(note)
        (folder / package / f"{module}.py").write_text(note)


def planted_that_ran(folder: Path) -> list[str]:
    """List the names of the planted modules that have run."""
    ran = folder / _RAN
    return ran.read_text().split() if ran.exists() else []
