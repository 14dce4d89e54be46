"""Import of this package's modules from memory, in a Python process of a server.

The text of this module is sent along with the others and runs first (`shipped_code`), so it has the
standard library alone. Nothing is written to a disk of the server.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
import types
import typing
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from typing import Any

_MARK = "is_of_puredelta"
_NATIVE = {"pyroaring": (), "obstore": ("exceptions", "store")}
"""Packages that few tables need, with those of their modules that are imported."""

Modules = Mapping[str, tuple[bool, str]]
"""By name: whether it is a package, and its text. Files that are no modules have their path."""


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules in memory."""

    is_of_puredelta = True

    def __init__(self, modules: Modules) -> None:
        self._modules = modules

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        """Return where a module is; None for all others."""
        if fullname not in self._modules:
            return None
        is_package = self._modules[fullname][0]
        return importlib.util.spec_from_loader(fullname, self, is_package=is_package)

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python make the module."""

    def exec_module(self, module: types.ModuleType) -> None:
        """Run the text of a module."""
        text = self._modules[module.__name__][1]
        module.__file__ = f"/{module.__name__.replace('.', '/')}/__init__.py"  # for `get_data`
        exec(compile(text, f"<{module.__name__}>", "exec"), vars(module))  # noqa: S102

    def get_data(self, path: str) -> bytes:
        """Return a file that is no module, by the path that ``pkgutil`` makes of its package's."""
        name = path.lstrip("/")
        if name not in self._modules:
            raise FileNotFoundError(path)
        return self._modules[name][1].encode()


def make_importable(modules: Modules) -> None:
    """Let Python import these modules, also where it has others of the names; once a process."""
    if any(getattr(finder, _MARK, False) for finder in sys.meta_path):
        return
    for name in [known for known in sys.modules if known in modules]:
        del sys.modules[name]
    sys.meta_path.insert(0, Finder(modules))
    if importlib.util.find_spec("typing_extensions") is None:
        sys.modules["typing_extensions"] = typing
    for name, members in _NATIVE.items():
        if not _is_here(name):
            package = sys.modules[name] = stand_in(name)
            for member in members:
                inner = sys.modules[f"{name}.{member}"] = stand_in(f"{name}.{member}")
                setattr(package, member, inner)


def _is_here(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


def stand_in(name: str) -> types.ModuleType:
    """Return a module whose members say what is missing when they are called.

    >>> stand_in("pyroaring").BitMap64()
    Traceback (most recent call last):
    ImportError: This table needs pyroaring in the Python of the Spark server: pip install pyroaring
    """
    package = name.partition(".")[0]

    def refuse(*_: object, **__: object) -> None:
        raise ImportError(
            f"This table needs {package} in the Python of the Spark server: pip install {package}"
        )

    def member(attribute: str) -> type:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return type(attribute, (Exception,), {"__init__": refuse})  # some are named in `except`

    module = types.ModuleType(name)
    vars(module)["__getattr__"] = member
    return module
