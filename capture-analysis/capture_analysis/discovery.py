"""Find the modules of a package and the classes that they define.

To add a metric, add a file.
"""

import importlib
import pkgutil
from types import ModuleType
from typing import TypeVar

Base = TypeVar("Base")


def names_of(package: ModuleType) -> list[str]:
    """Return the names of a package's modules, sorted, without importing them."""
    return sorted(module.name for module in pkgutil.iter_modules(package.__path__))


def module_of(package: ModuleType, name: str) -> ModuleType:
    """Import one module of a package."""
    return importlib.import_module(f"{package.__name__}.{name}")


def modules_of(package: ModuleType) -> tuple[ModuleType, ...]:
    """Import the modules of a package; return them in order of their names."""
    return tuple(module_of(package, name) for name in names_of(package))


def classes_of(package: ModuleType, base: type[Base]) -> tuple[type[Base], ...]:
    """Return a base class's subclasses in a package, by module name.

    The base class's own module has none.
    """
    return tuple(
        each
        for module in modules_of(package)
        for each in vars(module).values()
        if isinstance(each, type)
        and issubclass(each, base)
        and each.__module__ == module.__name__ != base.__module__
    )
