"""The commands and their arguments; what they do is in `puredelta.cli.reading` and ``session``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from puredelta.cli.context import read_context
from puredelta.cli.exit_codes import ExitCode, code_of
from puredelta.cli.output import Output
from puredelta.cli.run import run_command
from puredelta.errors import DeltaError
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

_READ = "Without Spark"
_WRITE = "With Spark"
Table = Annotated[str, typer.Argument(metavar="TABLE", help="Path or URI of the table.")]
Version = Annotated[int | None, typer.Option("--version", min=0, help="An older version.")]


def run_app(arguments: Sequence[str]) -> int:
    """Parse arguments, run a command and return its exit code."""
    command = typer.main.get_command(app)
    try:
        context, rest = read_context(arguments)
        outcome = command.main(rest, prog_name="puredelta", standalone_mode=False, obj=context)
    except DeltaError as error:
        Output(as_json="--json" in arguments).error(error.code.error_class, error.message, {})
        return code_of(error)
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


def _run(ctx: typer.Context, name: str, **arguments: Any) -> None:
    code = run_command(name, ctx.obj, **arguments)
    if code:
        raise typer.Exit(int(code))


@app.command(rich_help_panel=_READ)
def history(
    ctx: typer.Context,
    table: Table,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Newest commits.")] = 20,
) -> None:
    """Show the newest commits: when, what, by whom, and how many rows."""
    _run(ctx, "history", table=table, limit=limit)


@app.command(rich_help_panel=_READ)
def detail(ctx: typer.Context, table: Table, version: Version = None) -> None:
    """Show columns, size, protocol and properties."""
    _run(ctx, "detail", table=table, version=version)


@app.command(rich_help_panel=_READ)
def show(
    ctx: typer.Context,
    table: Table,
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many.")] = 20,
    files: Annotated[bool, typer.Option("--files", help="Data files instead of rows.")] = False,
    version: Version = None,
) -> None:
    """Show the first rows, or the largest data files; read by Arrow, without Spark."""
    _run(ctx, "show", table=table, limit=limit, files=files, version=version)


@app.command(rich_help_panel=_READ)
def diff(
    ctx: typer.Context,
    table: Table,
    older: Annotated[int, typer.Argument(min=0, help="Version before.")],
    newer: Annotated[int | None, typer.Argument(min=0, help="Version after (newest).")] = None,
) -> None:
    """Show what commits changed between two versions: files, rows, columns, properties."""
    _run(ctx, "diff", table=table, older=older, newer=newer)


@app.command(rich_help_panel=_READ)
def doctor(
    ctx: typer.Context,
    table: Annotated[str | None, typer.Argument(metavar="[TABLE]", help="Check it.")] = None,
    *,
    migrate: Annotated[
        Path | None, typer.Option("--migrate", help="A script written for delta-spark.")
    ] = None,
    environment: Annotated[
        bool, typer.Option("--environment", help="Check it, too, beside a table.")
    ] = False,
    list_files: Annotated[
        bool, typer.Option("--files/--no-files", help="List the table's files.")
    ] = True,
) -> None:
    """Check the environment, a table or a script, and say what to do."""
    _run(
        ctx,
        "doctor",
        table=table,
        migrate=migrate,
        environment=environment,
        list_files=list_files,
    )


@app.command(rich_help_panel=_READ)
def report(
    ctx: typer.Context,
    table: Table,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The page; default: NAME-report.html.")
    ] = None,
    commits: Annotated[int, typer.Option("--commits", min=1, help="Newest commits.")] = 200,
) -> None:
    """Write one HTML page about a table: history, sizes, clustering, warnings."""
    _run(ctx, "report", table=table, out=out, commits=commits)


@app.command(rich_help_panel=_WRITE)
def sql(
    ctx: typer.Context,
    statement: Annotated[str | None, typer.Argument(help="A statement of SQL.")] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Statements, ended by semicolons.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Rows shown.")] = 50,
) -> None:
    """Run SQL, on Delta tables and on everything that Spark reads."""
    _run(ctx, "sql", statement=statement, file=file, limit=limit)


@app.command(rich_help_panel=_WRITE)
def merge(
    ctx: typer.Context,
    table: Annotated[str, typer.Argument(help="A file with a MERGE statement, or the table.")],
    *,
    source: Annotated[
        str | None, typer.Option("--source", help="Table, Parquet, CSV or JSON file, or a name.")
    ] = None,
    keys: Annotated[
        str | None, typer.Option("--keys", help="Key columns, separated by commas.")
    ] = None,
) -> None:
    """Merge by a file of SQL, or update and insert rows of a source by its keys."""
    _run(ctx, "merge", table=table, source=source, keys=keys)


@app.command(rich_help_panel=_WRITE)
def convert(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(help="Directory of Parquet files, or a table.")],
    *,
    partitions: Annotated[
        str | None, typer.Option("--partitions", help='Columns and types: "day DATE, n INT".')
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done; write nothing.")
    ] = False,
    statistics: Annotated[
        bool, typer.Option("--statistics/--no-statistics", help="Collect statistics.")
    ] = True,
) -> None:
    """Convert a directory of Parquet files, or a table, to Delta; the files stay."""
    _run(
        ctx,
        "convert",
        source=source,
        partitions=partitions,
        dry_run=dry_run,
        statistics=statistics,
    )


@app.command(rich_help_panel=_WRITE)
def optimize(
    ctx: typer.Context,
    table: Table,
    *,
    where: Annotated[str | None, typer.Option("--where", help="Partitions only.")] = None,
    zorder: Annotated[
        str | None, typer.Option("--zorder", help="Columns, separated by commas.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Cluster all files again.")] = False,
) -> None:
    """Write small files together, in the order of clustering or Z-order columns."""
    _run(ctx, "optimize", table=table, where=where, zorder=zorder, full=full)


@app.command(rich_help_panel=_WRITE)
def vacuum(
    ctx: typer.Context,
    table: Table,
    *,
    retain: Annotated[
        float | None, typer.Option("--retain", min=0, help="Hours (default: the table's).")
    ] = None,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete. Without it files are only listed.")
    ] = False,
) -> None:
    """List files that no version within the retention time needs; delete them with --delete."""
    _run(ctx, "vacuum", table=table, retain=retain, delete=delete)


@app.command(rich_help_panel=_WRITE)
def restore(
    ctx: typer.Context,
    table: Table,
    *,
    version: Annotated[int | None, typer.Option("--version", min=0, help="To which.")] = None,
    timestamp: Annotated[str | None, typer.Option("--timestamp", help="To when.")] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Restore. Without it only the difference is shown.")
    ] = False,
) -> None:
    """Show what going back to a version would change; do it with --apply."""
    _run(ctx, "restore", table=table, version=version, timestamp=timestamp, apply=apply)
