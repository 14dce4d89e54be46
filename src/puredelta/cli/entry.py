"""The console script, which also runs without click and rich, to name missing packages."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from puredelta.cli.parse import Invocation

MISSING_SOFTWARE = 69
"""`puredelta.cli.output.ExitCode.MISSING_SOFTWARE`; kept apart so that this module needs no
package."""
_NEEDED = ("click", "rich", "jinja2")
_OBJECTS = 50_000
"""Allocations between garbage collections: imports make many objects, and hardly any garbage."""


class _WithoutPandas:
    """Import hook that hides pandas from Arrow, which needs 0.2 s to import it.

    No command without Spark uses pandas. Arrow imports it for the first array of Python values, and
    has no setting against that.
    ``sys.modules["pandas"] = None`` does not help: Arrow takes None for the module.
    """

    def find_spec(
        self, fullname: str, _path: object = None, _target: object = None
    ) -> ModuleSpec | None:
        """Find nothing, even if the package is installed."""
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is not imported here", name=fullname)
        return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; arguments are those of the process."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        sys.stderr.write(
            f"The command line needs {', '.join(missing)}: pip install 'puredelta[cli]'\n"
        )
        return MISSING_SOFTWARE
    gc.set_threshold(_OBJECTS)
    command_line = importlib.import_module("puredelta.cli.run")
    read: Callable[[Sequence[str]], Invocation | int] = command_line.read_command_line
    invocation = read(sys.argv[1:] if arguments is None else arguments)
    if isinstance(invocation, int):
        return invocation
    if not invocation.starts_spark:
        sys.meta_path.insert(0, _WithoutPandas())
    run: Callable[[Invocation], int] = command_line.run_command
    return run(invocation)
