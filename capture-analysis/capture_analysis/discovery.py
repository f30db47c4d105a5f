"""Find the classes that a package's modules define.

To add a metric, add a file.
"""

import importlib
import pkgutil
from types import ModuleType
from typing import TypeVar

Base = TypeVar("Base")


def modules_of(package: ModuleType) -> tuple[ModuleType, ...]:
    """Import the modules of a package; return them in order of their names."""
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    return tuple(importlib.import_module(f"{package.__name__}.{name}") for name in names)


def classes_of(package: ModuleType, base: type[Base]) -> tuple[type[Base], ...]:
    """Return a base class's subclasses in a package, by module name."""
    return tuple(
        each
        for module in modules_of(package)
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, base) and each.__module__ == module.__name__
    )
