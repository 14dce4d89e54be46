"""Code of this package for a server whose Python does not have it.

Python code of a stream runs in processes of the server: the functions of ``foreachBatch``, and a
data source with its tasks. A function that is sent there by value carries the modules of this
package as text. A server with another release of this package runs this one.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark import cloudpickle

from puredelta.spark.connect import memory_importer

_PACKAGE = __name__.partition(".")[0]
_UNUSED = frozenset({"cli", "__main__"})
"""Rooms that no code on a server needs."""
_SHIPPED = "_puredelta_shipped"


@functools.cache
def packed_package() -> bytes:
    """Return the modules of this package as a compressed JSON object, about 1 MB.

    Its keys are their names, its values whether a module is a package, and its text.
    """
    found = importlib.util.find_spec(_PACKAGE)
    roots = [] if found is None else list(found.submodule_search_locations or ())
    modules: dict[str, tuple[bool, str]] = {}
    for root in map(Path, roots):
        for path in sorted(root.rglob("*.py")):
            parts = (_PACKAGE, *path.relative_to(root).with_suffix("").parts)
            if parts[1] not in _UNUSED:
                is_package = parts[-1] == "__init__"
                name = ".".join(parts[:-1] if is_package else parts)
                modules[name] = (is_package, path.read_text(encoding="utf-8"))
        stub = f"{_PACKAGE}/__init__.pyi"  # the public names
        modules[stub] = (False, (root.parent / stub).read_text(encoding="utf-8"))
    return zlib.compress(json.dumps(modules).encode(), 9)


def importer() -> Callable[[], None]:
    """Return a function by value that lets Python import the modules of this package."""
    code, name = packed_package(), memory_importer.__name__

    def make_importable() -> None:
        import json  # noqa: PLC0415 - shipped by value
        import zlib  # noqa: PLC0415

        modules = json.loads(zlib.decompress(code))
        namespace: dict[str, Any] = {"__name__": name}
        exec(modules[name][1], namespace)  # noqa: S102 - the client's own code
        namespace["make_importable"](modules)

    return make_importable


def with_package(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function by value that calls another one where this package may be missing.

    The other one may be of this package, or name anything in it.
    """
    make_importable, pickled = importer(), _pickled(function)
    known: list[Any] = []

    def call(*arguments: Any) -> Any:
        if not known:
            import pickle  # noqa: PLC0415 - shipped by value

            make_importable()
            known.append(pickle.loads(pickled))  # noqa: S301 - what the same client has sent
        return known[0](*arguments)

    setattr(call, _SHIPPED, True)
    return call


def has_package(function: object) -> bool:
    """Return whether a function is one of `with_package`."""
    return bool(getattr(function, _SHIPPED, False))


def names_delta(function: object) -> bool:
    """Return whether the code of a function, or what it holds, mentions ``delta``."""
    return b"delta" in _pickled(function).lower()


def _pickled(function: object) -> bytes:
    code: bytes = cloudpickle.dumps(function)  # type: ignore[no-untyped-call]
    return code
