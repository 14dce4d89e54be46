"""From the words of a command line to an exit code."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence

from puredelta.cli.context import Context, read_context
from puredelta.cli.exit_codes import code_of
from puredelta.cli.output import Output
from puredelta.cli.quick import read_quickly
from puredelta.cli.run import run_command
from puredelta.errors import DeltaError

_COMPLETION = "_PUREDELTA_COMPLETE"
"""Set by the completion of a shell: typer answers then."""


def run_command_line(arguments: Sequence[str]) -> int:
    """Read arguments, run a command and return its exit code.

    The module that needs typer is imported, by name, only for what `read_quickly` leaves.
    """
    try:
        context, rest = read_context(arguments)
    except DeltaError as error:
        Output(as_json="--json" in arguments).error(error.code.error_class, error.message, {})
        return code_of(error)
    asked = None if _COMPLETION in os.environ else read_quickly(rest)
    if asked is not None:
        return run_command(asked.command, context, asked.values)
    typed: Callable[[Sequence[str], Context], int]
    typed = importlib.import_module("puredelta.cli.app").run_app
    return typed(rest, context)
