"""The console script: it works without typer and rich, if only to say what to install."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec

from puredelta.cli.declared import COMMANDS

MISSING_SOFTWARE = 69
"""`puredelta.cli.exit_codes.ExitCode.MISSING_SOFTWARE`, whose module needs nothing; kept apart so
that this module needs no package."""
_NEEDED = ("typer", "rich", "jinja2")
_OBJECTS = 50_000
"""Made between two collections of garbage: imports make many objects, and hardly any garbage."""


class _WithoutPandas:
    """Lets Arrow find no pandas: no command without Spark uses it, and its import takes long."""

    def find_spec(
        self, fullname: str, _path: object = None, _target: object = None
    ) -> ModuleSpec | None:
        """Find nothing: not even where the package is."""
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
    given = sys.argv[1:] if arguments is None else arguments
    if not any(command.name in given and command.starts_spark(given) for command in COMMANDS):
        sys.meta_path.insert(0, _WithoutPandas())
        gc.set_threshold(_OBJECTS)
    run: Callable[[Sequence[str]], int]
    run = importlib.import_module("puredelta.cli.command_line").run_command_line
    return run(given)
