"""Packages that only some commands need, and that the core does not install."""

# The packages, and the extra that installs each.
EXTRAS = {"pyarrow": "parquet", "matplotlib": "figures", "distributed": "cluster"}


def explain_missing(error: ModuleNotFoundError) -> str:
    """Write which package of an extra is missing, and how to install it.

    Raises: ModuleNotFoundError, unchanged, if the package belongs to no extra.
    """
    package = (error.name or "").split(".")[0]
    if package not in EXTRAS:
        raise error
    hint = f"hint: pip install 'capture-analysis[{EXTRAS[package]}]'"
    return f"this needs {package}, which is not installed\n\n{hint}"
