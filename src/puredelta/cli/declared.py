"""What the commands and their parameters are, as values: one place for help and for parsing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

LOG = "puredelta.cli.log_commands"
"""Commands that read the log alone."""
DOCTOR = "puredelta.cli.doctor"
"""The one that reads the environment, too."""
SPARK = "puredelta.cli.spark_commands"
"""Commands that start a Spark session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredParameter:
    """One argument or option of a command."""

    name: str
    """That of the keyword of the command's function."""
    help: str
    kind: type[bool | float | int | Path | str] = str
    flags: tuple[str, ...] = ()
    """Its spellings: ``("--limit", "-n")``, or ``("--a/--no-a",)`` of a switch that may be on.
    An argument, known by its place, has none."""
    default: bool | int | None = None
    is_required: bool = False
    minimum: int | None = None
    metavar: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredCommand:
    """One command: the function of its name in a module."""

    name: str
    module: str
    help: str
    parameters: tuple[DeclaredParameter, ...]
    spark_switch: str | None = None
    """The switch with which the function of the same name in `SPARK` runs it."""

    def module_of(self, values: Mapping[str, object]) -> str:
        """Return the module that runs the command with these values."""
        switched = self.spark_switch is not None and values.get(self.spark_switch)
        return SPARK if switched else self.module

    def arguments_of(self, values: Mapping[str, object]) -> dict[str, object]:
        """Return what the function gets: all but the switch that has chosen it."""
        return {name: value for name, value in values.items() if name != self.spark_switch}

    def starts_spark(self, words: Collection[str]) -> bool:
        """Tell whether the command with these words starts a session."""
        switch = self.spark_switch
        return self.module == SPARK or (switch is not None and f"--{switch}" in words)


def _argument(
    name: str,
    text: str,
    *,
    kind: type[int | str] = str,
    is_required: bool = True,
    minimum: int | None = None,
    metavar: str | None = None,
) -> DeclaredParameter:
    return DeclaredParameter(
        name=name,
        help=text,
        kind=kind,
        is_required=is_required,
        minimum=minimum,
        metavar=metavar,
    )


def _text(flags: str, text: str) -> DeclaredParameter:
    return _option(flags, text, kind=str)


def _option(
    flags: str,
    text: str,
    *,
    kind: type[float | int | Path | str],
    default: int | None = None,
    minimum: int | None = None,
) -> DeclaredParameter:
    spelt = tuple(flags.split())
    return DeclaredParameter(
        name=_name(spelt), help=text, kind=kind, flags=spelt, default=default, minimum=minimum
    )


def _switch(
    flags: str, text: str, *, name: str | None = None, default: bool = False
) -> DeclaredParameter:
    spelt = (flags,)
    return DeclaredParameter(
        name=name or _name(spelt), help=text, kind=bool, flags=spelt, default=default
    )


def _name(flags: tuple[str, ...]) -> str:
    return flags[0].partition("/")[0].removeprefix("--").replace("-", "_")


_TABLE = _argument("table", "Path or URI of the table.", metavar="TABLE")
_VERSION = _option("--version", "An older version.", kind=int, minimum=0)

COMMANDS = (
    DeclaredCommand(
        name="history",
        module=LOG,
        help="Show the newest commits: when, what, by whom, and how many rows.",
        parameters=(
            _TABLE,
            _option("--limit -n", "Newest commits.", kind=int, default=20, minimum=1),
        ),
    ),
    DeclaredCommand(
        name="detail",
        module=LOG,
        help="Show columns, size, protocol and properties.",
        parameters=(_TABLE, _VERSION),
    ),
    DeclaredCommand(
        name="show",
        module=LOG,
        help="Show the first rows, or the largest data files; read by Arrow, without Spark.",
        parameters=(
            _TABLE,
            _option("--limit -n", "How many.", kind=int, default=20, minimum=1),
            _switch("--files", "Data files instead of rows."),
            _VERSION,
        ),
    ),
    DeclaredCommand(
        name="diff",
        module=LOG,
        help="Show what commits changed between two versions: files, rows, columns, properties; "
        "with --rows the rows that differ, which starts Spark.",
        parameters=(
            _TABLE,
            _argument("older", "Version before.", kind=int, minimum=0),
            _argument("newer", "Version after (newest).", kind=int, is_required=False, minimum=0),
            _switch("--rows", "The rows that differ."),
            _text("--keys", "Columns that name a row, for --rows: what was changed, too."),
            _option("--limit -n", "Rows shown.", kind=int, default=50, minimum=1),
        ),
        spark_switch="rows",
    ),
    DeclaredCommand(
        name="doctor",
        module=DOCTOR,
        help="Check the environment, a table or a script, and say what to do.",
        parameters=(
            _argument("table", "Check it.", is_required=False, metavar="[TABLE]"),
            _option("--migrate", "A script written for delta-spark.", kind=Path),
            _switch("--environment", "Check it, too, beside a table."),
            _switch(
                "--files/--no-files", "List the table's files.", name="list_files", default=True
            ),
        ),
    ),
    DeclaredCommand(
        name="report",
        module=LOG,
        help="Write one HTML page about a table: history, sizes, clustering, warnings.",
        parameters=(
            _TABLE,
            _option("--out -o", "The page; default: NAME-report.html.", kind=Path),
            _option("--commits", "Newest commits.", kind=int, default=200, minimum=1),
        ),
    ),
    DeclaredCommand(
        name="sql",
        module=SPARK,
        help="Run SQL, on Delta tables and on everything that Spark reads.",
        parameters=(
            _argument("statement", "A statement of SQL.", is_required=False),
            _option("--file -f", "Statements, ended by semicolons.", kind=Path),
            _option("--limit -n", "Rows shown.", kind=int, default=50, minimum=1),
        ),
    ),
    DeclaredCommand(
        name="merge",
        module=SPARK,
        help="Merge by a file of SQL, or update and insert rows of a source by its keys.",
        parameters=(
            _argument("table", "A file with a MERGE statement, or the table."),
            _text("--source", "Table, Parquet, CSV or JSON file, or a name."),
            _text("--keys", "Key columns, separated by commas."),
        ),
    ),
    DeclaredCommand(
        name="convert",
        module=SPARK,
        help="Convert a directory of Parquet files, or a table, to Delta; the files stay.",
        parameters=(
            _argument("source", "Directory of Parquet files, or a table."),
            _text("--partitions", 'Columns and types: "day DATE, n INT".'),
            _switch("--dry-run", "Say what would be done; write nothing."),
            _switch("--statistics/--no-statistics", "Collect statistics.", default=True),
        ),
    ),
    DeclaredCommand(
        name="optimize",
        module=SPARK,
        help="Write small files together, in the order of clustering or Z-order columns.",
        parameters=(
            _TABLE,
            _text("--where", "Partitions only."),
            _text("--zorder", "Columns, separated by commas."),
            _switch("--full", "Cluster all files again."),
        ),
    ),
    DeclaredCommand(
        name="vacuum",
        module=SPARK,
        help="List files that no version within the retention time needs; delete them with "
        "--delete.",
        parameters=(
            _TABLE,
            _option("--retain", "Hours (default: the table's).", kind=float, minimum=0),
            _switch("--delete", "Delete. Without it files are only listed."),
        ),
    ),
    DeclaredCommand(
        name="restore",
        module=SPARK,
        help="Show what going back to a version would change; do it with --apply.",
        parameters=(
            _TABLE,
            _option("--version", "To which.", kind=int, minimum=0),
            _text("--timestamp", "To when."),
            _switch("--apply", "Restore. Without it only the difference is shown."),
        ),
    ),
)
