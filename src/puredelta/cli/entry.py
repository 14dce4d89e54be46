"""The console script: it works without typer and rich, if only to say what to install."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence

MISSING_SOFTWARE = 69
"""`puredelta.cli.exit_codes.ExitCode.MISSING_SOFTWARE`, whose module needs nothing; kept apart so
that this module imports nothing."""
_NEEDED = ("typer", "rich", "jinja2")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; arguments are those of the process."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        sys.stderr.write(
            f"The command line needs {', '.join(missing)}: pip install 'puredelta[cli]'\n"
        )
        return MISSING_SOFTWARE
    run: Callable[[Sequence[str]], int] = importlib.import_module("puredelta.cli.app").run_app
    return run(sys.argv[1:] if arguments is None else arguments)
