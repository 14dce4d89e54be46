"""``delta.tables`` and its kin as names of this package's modules, for code that imports them."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from types import ModuleType

import puredelta.exceptions
import puredelta.pip_utils
import puredelta.tables
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.version import __version__

_NAME = "delta"
_PARTS = {
    "tables": puredelta.tables,
    "exceptions": puredelta.exceptions,
    "pip_utils": puredelta.pip_utils,
}
_MARK = "__puredelta__"


def install_delta_module() -> None:
    """Let ``import delta`` find this package's ``tables``, ``exceptions`` and ``pip_utils``.

    Raises:
        InvalidRequestError: another package called ``delta`` is installed, which stays as it is.
    """
    if is_installed():
        return
    if _NAME in sys.modules or importlib.util.find_spec(_NAME) is not None:
        raise InvalidRequestError(
            f"The module 'delta' is there already{_release()}, and delta_module=True never "
            "replaces it. Uninstall it (pip uninstall delta-spark), or import puredelta.tables "
            "instead.",
            code=ErrorCode.INVALID_WRITE_OPTION,
            module=_NAME,
        )
    module = ModuleType(_NAME, "delta-spark's modules, as puredelta has them.")
    module.__path__ = []
    module.__version__ = __version__  # type: ignore[attr-defined]
    setattr(module, _MARK, True)
    module.DeltaTable = puredelta.tables.DeltaTable  # type: ignore[attr-defined]
    module.configure_spark_with_delta_pip = (  # type: ignore[attr-defined]
        puredelta.pip_utils.configure_spark_with_delta_pip
    )
    sys.modules[_NAME] = module
    for name, part in _PARTS.items():
        setattr(module, name, part)
        sys.modules[f"{_NAME}.{name}"] = part


def remove_delta_module() -> None:
    """Take the modules away again, if they are ours."""
    if is_installed():
        for name in (_NAME, *(f"{_NAME}.{part}" for part in _PARTS)):
            sys.modules.pop(name, None)


def is_installed() -> bool:
    """Return whether ``delta`` is this package."""
    return hasattr(sys.modules.get(_NAME), _MARK)


def _release() -> str:
    try:
        return f" (delta-spark {importlib.metadata.version('delta-spark')})"
    except importlib.metadata.PackageNotFoundError:
        return ""
