"""The commands, their arguments and their options."""

from __future__ import annotations

import math
from pathlib import Path

import click

from puredelta.cli.parse import (
    DOCTOR,
    LOG,
    SPARK,
    CommandLine,
    DeclaredArgument,
    DeclaredCommand,
)


def _option(flags: str, text: str, **settings: object) -> click.Option:
    return click.Option(flags.split(), help=text, **settings)  # type: ignore[arg-type]


def _number(flags: str, text: str, *, minimum: int, default: int | None = None) -> click.Option:
    return _option(flags, text, type=click.IntRange(min=minimum), default=default)


def _file(flags: str, text: str) -> click.Option:
    return _option(flags, text, type=click.Path(path_type=Path))


def _switch(flags: str, text: str) -> click.Option:
    return _option(flags, text, is_flag=True, default=False)


class _Hours(click.FloatRange):
    """A finite number of hours."""

    def convert(
        self, value: float | str, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read the number."""
        hours: float = super().convert(value, param, ctx)  # type: ignore[arg-type]
        if not math.isfinite(hours):
            self.fail(f"{value!r} is no number of hours.", param, ctx)
        return hours


_TABLE = DeclaredArgument("table", "Path or URI of the table, or its name in a catalog of --conf.")
_VERSION = _number("--version", "An older version.", minimum=0)

COMMANDS = (
    DeclaredCommand(
        "history",
        LOG,
        "Show the newest commits: when, what, by whom, and how many rows.",
        (_TABLE, _number("--limit -n", "Newest commits.", minimum=1, default=20)),
    ),
    DeclaredCommand(
        "detail", LOG, "Show columns, size, protocol and properties.", (_TABLE, _VERSION)
    ),
    DeclaredCommand(
        "show",
        LOG,
        "Show the first rows, or the largest data files; read by Arrow, without Spark.",
        (
            _TABLE,
            _number("--limit -n", "How many.", minimum=1, default=20),
            _switch("--files", "Data files instead of rows."),
            _VERSION,
        ),
    ),
    DeclaredCommand(
        "diff",
        LOG,
        "Show what commits changed between two versions: files, rows, columns, properties; "
        "with --rows the rows that differ, which starts Spark.",
        (
            _TABLE,
            DeclaredArgument("older", "Version before.", type=click.IntRange(min=0)),
            DeclaredArgument(
                "newer", "Version after (newest).", type=click.IntRange(min=0), required=False
            ),
            _switch("--rows", "The rows that differ."),
            _option("--keys", "Columns that name a row, for --rows: what was changed, too."),
            _number("--limit -n", "Rows shown.", minimum=1, default=50),
        ),
        spark_switch="rows",
    ),
    DeclaredCommand(
        "doctor",
        DOCTOR,
        "Check the environment, a table or a script, and say what to do.",
        (
            DeclaredArgument("table", "Check it.", required=False),
            _file("--migrate", "A script written for delta-spark."),
            _option("--catalog", "A catalog that --conf describes: its server, token and files."),
            _switch("--environment", "Check it, too, beside a table."),
            _switch("--deep", "Compare the whole log with itself and with the data files."),
            _file("--resume", "Where --deep remembers its work: the next call goes on from there."),
            _option("list_files --files/--no-files", "List the table's files.", default=True),
        ),
    ),
    DeclaredCommand(
        "iceberg",
        LOG,
        "Export the newest version to Iceberg (export), and name it in a catalog (register).",
        (
            DeclaredArgument(
                "action", "export or register.", type=click.Choice(("export", "register"))
            ),
            _TABLE,
            _option("--catalog", "A catalog of pyiceberg's configuration."),
            _option("--name", "The table's name in the catalog: namespace.table."),
        ),
    ),
    DeclaredCommand(
        "report",
        LOG,
        "Write one HTML page about a table: history, sizes, clustering, warnings.",
        (
            _TABLE,
            _file("--out -o", "The page; default: NAME-report.html."),
            _number("--commits", "Newest commits.", minimum=1, default=200),
        ),
    ),
    DeclaredCommand(
        "sql",
        SPARK,
        "Run SQL, on Delta tables and on everything that Spark reads.",
        (
            DeclaredArgument("statement", "A statement of SQL.", required=False),
            _file("--file -f", "Statements, ended by semicolons."),
            _number("--limit -n", "Rows shown.", minimum=1, default=50),
        ),
    ),
    DeclaredCommand(
        "merge",
        SPARK,
        "Merge by a file of SQL, or update and insert rows of a source by its keys.",
        (
            DeclaredArgument("table", "A file with a MERGE statement, or the table."),
            _option("--source", "Table, Parquet, CSV or JSON file, or a name."),
            _option("--keys", "Key columns, separated by commas."),
        ),
    ),
    DeclaredCommand(
        "convert",
        SPARK,
        "Convert a directory of Parquet files, or a table, to Delta; the files stay.",
        (
            DeclaredArgument("source", "Directory of Parquet files, or a table."),
            _option("--partitions", 'Columns and types: "day DATE, n INT".'),
            _switch("--dry-run", "Say what would be done; write nothing."),
            _option("--statistics/--no-statistics", "Collect statistics.", default=True),
        ),
    ),
    DeclaredCommand(
        "optimize",
        SPARK,
        "Write small files together, in the order of clustering or Z-order columns.",
        (
            _TABLE,
            _option("--where", "Partitions only."),
            _option("--zorder", "Columns, separated by commas."),
            _switch("--full", "Cluster all files again."),
        ),
    ),
    DeclaredCommand(
        "vacuum",
        SPARK,
        "List files that no version within the retention time needs; delete them with --delete.",
        (
            _TABLE,
            _option("--retain", "Hours (default: the table's).", type=_Hours(min=0)),
            _switch("--delete", "Delete. Without it files are only listed."),
        ),
    ),
    DeclaredCommand(
        "revert",
        SPARK,
        "Show what undoing one commit would change, later ones kept; do it with --apply.",
        (
            _TABLE,
            _number("--version", "Which commit.", minimum=1),
            _switch("--apply", "Revert. Without it only the difference is shown."),
        ),
    ),
    DeclaredCommand(
        "restore",
        SPARK,
        "Show what going back to a version would change; do it with --apply.",
        (
            _TABLE,
            _number("--version", "To which.", minimum=0),
            _option("--timestamp", "To when."),
            _switch("--apply", "Restore. Without it only the difference is shown."),
        ),
    ),
)

COMMAND_LINE = CommandLine(
    COMMANDS,
    text="Delta tables from the command line. TABLE is a path or a URI (s3://bucket/table); "
    "commands that start Spark take names of the catalog, too.",
    epilog="Options of every command may be written anywhere: --json, --verbose and "
    "--storage-option, and for commands with Spark --conf, --master and --remote. "
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no such table, 4 conflict (try again), "
    "5 doctor found an error, 69 software is missing, 130 interrupted.",
)
