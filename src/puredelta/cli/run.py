"""Run one command: import what it needs and no more, and turn what it raises into an exit code."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable, Mapping

from puredelta.cli.context import Context
from puredelta.cli.declared import DeclaredCommand
from puredelta.cli.exit_codes import ExitCode, code_of
from puredelta.errors import DeltaError


def run_command(command: DeclaredCommand, context: Context, values: Mapping[str, object]) -> int:
    """Run the function of a command; its exit code is returned.

    Commands are imported here, by name: those of a session import pyspark, which takes longer
    than reading a log does.
    """
    try:
        module = importlib.import_module(command.module_of(values))
        run: Callable[..., int | None] = getattr(module, command.name)
        return run(context, **command.arguments_of(values)) or ExitCode.DONE
    except BrokenPipeError:  # the reader of a pipe has seen enough
        sys.stderr.close()
        return ExitCode.DONE
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - a command line ends here
        return _failed(context, error)


def _failed(context: Context, error: BaseException) -> ExitCode:
    code = code_of(error)
    if context.verbose:
        traceback.print_exception(error)
    if code is ExitCode.INTERRUPTED:
        text = (
            "Interrupted. A statement that had not committed has changed nothing; "
            "puredelta history TABLE shows what was committed."
        )
        context.output.error("INTERRUPTED", text, {})
    elif isinstance(error, DeltaError):
        details = {"sqlState": error.code.sqlstate, "details": error.getMessageParameters()}
        context.output.error(error.code.error_class, error.message, details)
    elif isinstance(error, ModuleNotFoundError):
        package = (error.name or "").partition(".")[0]
        text = f"The Python package {package} is not installed: pip install {package}"
        context.output.error("MISSING_SOFTWARE", text, {"package": package})
        return ExitCode.MISSING_SOFTWARE
    else:
        text = str(error).strip() or type(error).__name__
        context.output.error(type(error).__name__, text, {})
    return code
