"""Packages that only some commands need, and that the core does not install."""

# The packages, and the extra that installs each.
EXTRAS = {"pyarrow": "parquet", "matplotlib": "figures", "distributed": "cluster"}


def missing(error: ModuleNotFoundError) -> str:
    """Say which package of an extra was missed, and how to install it.

    Raises: ModuleNotFoundError, the same, if it is of no extra.
    """
    package = (error.name or "").split(".")[0]
    if package not in EXTRAS:
        raise error
    hint = f"hint: pip install 'capture-analysis[{EXTRAS[package]}]'"
    return f"this needs {package}, which is not installed\n\n{hint}"
