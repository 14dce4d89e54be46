"""The run of a command line, from its arguments to its exit code."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable, Sequence

import click

from puredelta.cli.declared import COMMAND_LINE
from puredelta.cli.output import ExitCode, Output, code_of
from puredelta.cli.parse import Context, Invocation
from puredelta.errors import DeltaError

_PROGRAM = "puredelta"


def read_command_line(arguments: Sequence[str]) -> Invocation | int:
    """Parse arguments; return the exit code for help, or for a wrong line after its message."""
    try:
        read: Invocation | int | None = COMMAND_LINE.main(
            list(arguments), prog_name=_PROGRAM, standalone_mode=False
        )
    except (click.Abort, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    except click.ClickException as error:
        if "--json" in arguments:
            Output(as_json=True).error("USAGE", error.format_message(), {})
        else:
            error.show()
        return ExitCode.USAGE
    except DeltaError as error:
        Output(as_json="--json" in arguments).error(error.code.error_class, error.message, {})
        return code_of(error)
    return ExitCode.DONE if read is None else read


def run_command_line(arguments: Sequence[str]) -> int:
    """Parse arguments, run a command and return its exit code."""
    read = read_command_line(arguments)
    return run_command(read) if isinstance(read, Invocation) else read


def run_command(invocation: Invocation) -> int:
    """Run the function of a command, and return its exit code.

    Commands are imported here, by name: those with a session import pyspark, which takes longer
    than reading a log.
    """
    try:
        module = importlib.import_module(invocation.module)
        run: Callable[..., int | None] = getattr(module, invocation.name)
        return run(invocation.context, **invocation.values) or ExitCode.DONE
    except BrokenPipeError:  # the reader of the pipe has closed it
        sys.stderr.close()
        return ExitCode.DONE
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - a command line ends here
        return _failed(invocation.context, error)


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
