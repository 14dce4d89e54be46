"""The console script: it works without typer and rich, if only to say what to install."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec

MISSING_SOFTWARE = 69
"""`puredelta.cli.exit_codes.ExitCode.MISSING_SOFTWARE`, whose module needs nothing; kept apart so
that this module imports nothing."""
_NEEDED = ("typer", "rich", "jinja2")
_WITH_SPARK = frozenset({"convert", "merge", "optimize", "restore", "sql", "vacuum"})


class _WithoutPandas(MetaPathFinder):
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
    if _WITH_SPARK.isdisjoint(given):
        sys.meta_path.insert(0, _WithoutPandas())
    run: Callable[[Sequence[str]], int] = importlib.import_module("puredelta.cli.app").run_app
    return run(given)
