"""What the core of the package does not install: packages that only some commands need."""

from importlib.util import find_spec

# The packages, and the extra that installs each.
EXTRAS = {"pyarrow": "parquet", "matplotlib": "figures", "distributed": "cluster"}


def is_installed(package: str) -> bool:
    """Tell whether a package of an extra is there."""
    return find_spec(package) is not None


def hint(package: str) -> str:
    """Say how to install a package of an extra."""
    return f"hint: pip install 'capture-analysis[{EXTRAS[package]}]'"


def missing(error: ModuleNotFoundError) -> str:
    """Say which package of an extra was missed, and how to install it.

    Raises: ModuleNotFoundError, the same, if it is of no extra.
    """
    package = (error.name or "").split(".")[0]
    if package not in EXTRAS:
        raise error
    return f"this needs {package}, which is not installed\n\n{hint(package)}"
