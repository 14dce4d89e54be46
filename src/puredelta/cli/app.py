"""The commands as typer has them: for help, completion, and for saying what is wrong."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from puredelta.cli.context import Context
from puredelta.cli.declared import COMMANDS, SPARK, DeclaredCommand, DeclaredParameter
from puredelta.cli.exit_codes import ExitCode
from puredelta.cli.run import run_command
from puredelta.version import __version__

app = typer.Typer(
    name="puredelta",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Delta tables from the command line. TABLE is a path or a URI (s3://bucket/table); "
    "commands that start Spark take names of the catalog, too.",
    epilog="Options of every command, wherever they stand: --json (one JSON document on stdout), "
    "--verbose (Spark's messages and tracebacks), --storage-option KEY=VALUE (how storage is "
    "reached), and for commands with Spark --conf KEY=VALUE, --master URL, --remote sc://HOST. "
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no such table, 4 conflict (try again), "
    "5 doctor found an error, 69 software is missing, 130 interrupted.",
)


def run_app(arguments: Sequence[str], context: Context) -> int:
    """Parse arguments, run a command and return its exit code."""
    command = typer.main.get_command(app)
    try:
        outcome = command.main(arguments, prog_name="puredelta", standalone_mode=False, obj=context)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except Exception as error:
        show = getattr(error, "show", None)  # click's, wherever typer has it from
        if show is None:
            if type(error).__name__ == "Abort":
                return ExitCode.INTERRUPTED
            raise
        show()
        return int(getattr(error, "exit_code", ExitCode.USAGE))
    return int(outcome or 0)


def _version_wanted(wanted: bool) -> None:  # noqa: FBT001 - typer's callback
    if wanted:
        sys.stdout.write(f"puredelta {__version__}\n")
        raise typer.Exit


@app.callback()
def _common(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version_wanted, is_eager=True, help="Print it."),
    ] = False,
) -> None:
    pass


def _function_of(command: DeclaredCommand) -> Callable[..., None]:
    """Return a function whose signature typer reads as the declaration of a command."""

    def function(ctx: typer.Context, **values: Any) -> None:
        code = run_command(command, ctx.obj, values)
        if code:
            raise typer.Exit(int(code))

    context = inspect.Parameter(
        "ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
    )
    parameters = [context, *map(_typed, command.parameters)]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {each.name: each.annotation for each in parameters}
    function.__doc__ = command.help
    return function


def _typed(parameter: DeclaredParameter) -> inspect.Parameter:
    kind: Any = parameter.kind
    info: Any
    if parameter.flags:
        info = typer.Option(*parameter.flags, min=parameter.minimum, help=parameter.help)
        if kind is not bool and parameter.default is None:
            kind = kind | None
    else:
        info = typer.Argument(metavar=parameter.metavar, min=parameter.minimum, help=parameter.help)
        if not parameter.is_required:
            kind = kind | None
    return inspect.Parameter(
        parameter.name,
        inspect.Parameter.KEYWORD_ONLY,
        annotation=Annotated[kind, info],
        default=inspect.Parameter.empty if parameter.is_required else parameter.default,
    )


for _command in COMMANDS:
    app.command(
        _command.name,
        rich_help_panel="With Spark" if _command.module == SPARK else "Without Spark",
    )(_function_of(_command))
