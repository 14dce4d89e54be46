"""The answer of a command, its errors and its exit code.

An answer is a table for people, or one JSON document; everything else is printed to stderr.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from puredelta.errors import ConflictError, InvalidRequestError, TableNotFoundError
from puredelta.inspection.findings import Finding, Severity

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_FILE_WIDTH = 1_000
"""Width of lines in a file or a pipe, where nothing is cut."""
_NARROW = 24
"""A column up to this width is never wrapped."""
_STYLES = {
    Severity.OK: ("green", "ok"),
    Severity.INFO: ("blue", "info"),
    Severity.WARNING: ("yellow", "warning"),
    Severity.ERROR: ("bold red", "error"),
}


class ExitCode(IntEnum):
    """The outcomes that a script can distinguish; ``docs/cli.md`` lists them."""

    DONE = 0
    FAILED = 1
    """Storage, the table or Spark refused; the message has the reason."""
    USAGE = 2
    """The command line or the request is wrong."""
    NOT_FOUND = 3
    """There is no such table, version or file."""
    CONFLICT = 4
    """Another writer won: run the command again."""
    FINDINGS = 5
    """``doctor`` found an error; warnings alone are 0."""
    MISSING_SOFTWARE = 69
    """PySpark, Java, or a package for the command is not installed."""
    INTERRUPTED = 130
    """Ctrl-C."""


def code_of(error: BaseException) -> ExitCode:
    """Return the exit code of an exception."""
    if is_interrupted(error):
        return ExitCode.INTERRUPTED
    match error:
        case ConflictError():
            return ExitCode.CONFLICT
        case TableNotFoundError() | FileNotFoundError():
            return ExitCode.NOT_FOUND
        case InvalidRequestError():
            return ExitCode.USAGE
        case _:
            return ExitCode.FAILED


def is_interrupted(error: BaseException) -> bool:
    """Whether it was Ctrl-C, or a failure during its handling: Py4J may lose a connection."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            return True
        cause = cause.__context__
    return False


def shown(value: object) -> str:
    r"""Return a value as text without terminal control characters.

    >>> shown("a\x1b[2Jb"), shown(None), shown({"a": 1})
    ('a\\x1b[2Jb', '', '{"a": 1}')
    """
    if value is None:
        return ""
    if isinstance(value, Mapping | list | tuple):
        value = json.dumps(value, default=str, ensure_ascii=False) if value else ""
    return _CONTROL.sub(lambda match: repr(match[0])[1:-1], str(value))


class Output:
    """The output of a command's answer."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._before: Callable[[], None] = lambda: None
        self._stderr = Console(stderr=True, highlight=False)
        is_terminal = sys.stdout.isatty()
        self._stdout = Console(highlight=False, width=None if is_terminal else _FILE_WIDTH)

    def call_before(self, call: Callable[[], None]) -> None:
        """Register a function that runs before anything is printed from now on."""
        self._before = call

    def rows(self, rows: Iterable[Mapping[str, Any]], columns: Sequence[str] | None = None) -> None:
        """Print rows with the same keys; the table for people has only ``columns``."""
        found = list(rows)
        if self.as_json:
            self._print_json(found)
            return
        names = list(columns if columns is not None else (found[0] if found else ()))
        table = Table(show_edge=False, pad_edge=False, header_style="bold")
        for name in names:
            numbers = bool(found) and all(isinstance(r.get(name), int | None) for r in found)
            widest = max((len(shown(row.get(name))) for row in found), default=0)
            table.add_column(
                Text(shown(name)),
                justify="right" if numbers else "left",
                no_wrap=widest <= _NARROW,
                overflow="fold",
            )
        for row in found:
            table.add_row(*(Text(shown(row.get(name))) for name in names))
        self._print(table if found else Text("(no rows)"))

    def value(self, value: Mapping[str, Any]) -> None:
        """Print one row, a line per key."""
        if self.as_json:
            self._print_json(value)
            return
        table = Table(show_header=False, show_edge=False, pad_edge=False, box=None)
        for name, each in value.items():
            table.add_row(Text(shown(name), style="bold"), Text(shown(each)))
        self._print(table)

    def findings(self, findings: Sequence[Finding]) -> None:
        """Print the findings of checks, with their next steps."""
        if self.as_json:
            self._print_json([finding.as_json() for finding in findings])
            return
        for finding in findings:
            style, word = _STYLES[finding.severity]
            line = Text(f"{word:<8}", style=style)
            line.append(f"{finding.check}: ", style="bold")
            line.append(shown(finding.message))
            self._print(line)
            for evidence in finding.evidence:
                self._print(Text(f"         - {shown(evidence)}"))
            if finding.certainty is not None:
                self._print(Text(f"         certainty: {finding.certainty.value}", style="dim"))
            if finding.mend is not None:
                self._print(Text(f"         -> {shown(finding.mend)}", style="cyan"))

    def text(self, text: str) -> None:
        """Print a line for people; nothing in JSON."""
        if not self.as_json:
            self._print(Text(shown(text)))

    def note(self, text: str) -> None:
        """Print a remark to stderr."""
        self._before()
        self._stderr.print(Text(shown(text), style="dim"))

    def error(self, kind: str, message: str, details: Mapping[str, Any]) -> None:
        """Print a command's error to stderr."""
        self._before()
        if self.as_json:
            body = {"error": kind, "message": message, **details}
            sys.stderr.write(json.dumps(body, default=str, ensure_ascii=False) + "\n")
        else:
            self._stderr.print(Text("error: ", style="bold red") + Text(shown(message)))

    def _print(self, answer: Table | Text) -> None:
        self._before()
        self._stdout.print(answer)

    def _print_json(self, value: object) -> None:
        self._before()
        text = json.dumps(value, default=str, ensure_ascii=False, indent=2)
        sys.stdout.write(text + "\n")
