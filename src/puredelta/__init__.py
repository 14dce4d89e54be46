"""The Delta Lake table format for a stock PySpark session: no JAR, no session extension."""

# The public names are in ``__init__.pyi``, which type checkers read. Most of them need pyspark,
# whose import takes longer than reading a log. So the module of a name is imported when
# the name is first used: the command line imports this package, too.

from __future__ import annotations

import ast
import importlib
import pkgutil


def _public_names() -> dict[str, str]:
    """Return the module of each public name, as ``__init__.pyi`` has them."""
    stub = ast.parse(pkgutil.get_data(__name__, "__init__.pyi") or b"")
    return {
        alias.name: str(node.module)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


_MODULES = _public_names()
__all__ = sorted(_MODULES)  # noqa: PLE0605 - type checkers read the stub


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
