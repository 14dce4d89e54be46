"""A report as text, Markdown and HTML. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from puredelta.commands.statement.parts import (
    ClauseReport,
    FileDecision,
    FileTotals,
    ForeignCommit,
    JobCount,
    RowTotals,
    SelectedFiles,
    SettingValue,
    StageTime,
)
from puredelta.quantities import counted, size_text


@dataclass(frozen=True, slots=True)
class Line:
    """A label, its text, and the reason."""

    label: str
    value: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Lines under a title."""

    title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Outline:
    """Sections under a title; their texts come from users and may contain any characters."""

    title: str
    sections: tuple[Section, ...]


def clause_line(clause: ClauseReport) -> Line:
    """Return the line of a clause."""
    rows = "" if clause.rows is None else counted(clause.rows, "row")
    return Line(str(clause.number), clause.text, rows)


def selection_lines(selected: SelectedFiles | None) -> tuple[Line, ...]:
    """Return the files left by each rule."""
    if selected is None:
        return ()
    back = selected.files_added_back
    return (
        Line("table", _sized(selected.files_total, selected.bytes_total)),
        *(
            Line(
                f"after {step.rule}",
                _sized(step.files_left, step.bytes_left),
                f"{step.files_skipped:,} skipped by {step.by}",
            )
            for step in selected.steps
        ),
        Line(
            "searched",
            _sized(selected.files_left, selected.bytes_left),
            f"{back:,} only for NOT MATCHED BY SOURCE" if back else "",
        ),
    )


def row_lines(rows: RowTotals | None) -> tuple[Line, ...]:
    """Return the counts that are known."""
    if rows is None:
        return ()
    named = {
        "source": rows.source,
        "inserted": rows.inserted,
        "updated": rows.updated,
        "deleted": rows.deleted,
        "copied unchanged": rows.copied,
    }
    return tuple(Line(name, f"{count:,}") for name, count in named.items() if count is not None)


def file_lines(files: FileTotals | None) -> tuple[Line, ...]:
    """Return the counts and sizes that are known."""
    if files is None:
        return ()
    named = {
        "rewritten": (files.rewritten, files.rewritten_bytes),
        "marked by a deletion vector": (files.marked, files.marked_bytes),
        "removed as a whole": (files.removed, files.removed_bytes),
        "added": (files.added, files.added_bytes),
        "change files": (files.change_files, None),
    }
    return tuple(
        Line(n, _sized(count, size)) for n, (count, size) in named.items() if count is not None
    )


def decision_lines(decisions: Sequence[FileDecision], *, left_out: int) -> tuple[Line, ...]:
    """Return a line for each file, and the number of unnamed ones."""
    lines = [
        Line(d.path, f"{d.action.value}, {size_text(d.size_bytes)}", d.reason) for d in decisions
    ]
    if left_out:
        lines.append(Line("", f"and {left_out:,} more"))
    return tuple(lines)


def job_lines(expected: Sequence[JobCount], run: int | None) -> tuple[Line, ...]:
    """Return the jobs of each stage, and the number that ran."""
    lines = tuple(Line(j.stage, str(j.jobs), j.reason) for j in expected)
    return lines if run is None else (*lines, Line("run", str(run)))


def stage_line(stage: StageTime) -> Line:
    """Return the line of a stage."""
    return Line(stage.name, f"{stage.seconds:.3f} s", stage.outcome)


def foreign_lines(
    commits: Sequence[ForeignCommit], *, since: int | None, runs: int | None, retries: int | None
) -> tuple[Line, ...]:
    """Return the concurrent commits of other writers, and the number of runs."""
    lines = []
    if runs is not None and runs > 1:
        lines.append(Line("runs", str(runs)))
    if retries is not None:
        lines.append(Line("retries allowed", str(retries)))
    for commit in commits:
        outcome = "no conflict" if commit.conflict is None else f"would have been {commit.error}"
        label = f"version {commit.version}, {commit.operation}"
        lines.append(Line(label, outcome, commit.conflict or ""))
    if not commits and since is not None:
        lines.append(Line("commits of others", f"none since version {since}"))
    return tuple(lines)


def setting_lines(settings: Sequence[SettingValue], *, full: bool) -> tuple[Line, ...]:
    """Return the settings that were made; ``full``: all, with their meaning."""
    shown = [s for s in settings if full or s.origin != "default"]
    return tuple(Line(s.key, f"{s.value} ({s.origin})", s.effect if full else "") for s in shown)


def _sized(count: int | None, size_bytes: int | None) -> str:
    number = "unknown" if count is None else counted(count, "file")
    return number if size_bytes is None else f"{number}, {size_text(size_bytes)}"


_LABEL_MAX = 40


def text_of(outline: Outline) -> str:
    r"""Return the lines; control characters, which a terminal would execute, are escaped.

    >>> from puredelta.commands.statement.rendering import Line, Outline, Section
    >>> print(text_of(Outline("DELETE", (Section("Rows", (Line("deleted", "3\x1b[2J"),)),))))
    DELETE
    Rows
      deleted  3\x1b[2J
    """
    blocks = [printable(outline.title)]
    for section in outline.sections:
        blocks += [printable(section.title), *_lines(section)]
    return "\n".join(blocks)


def _lines(section: Section) -> list[str]:
    width = min(_LABEL_MAX, max(len(printable(line.label)) for line in section.lines))
    return [_line(line, width) for line in section.lines]


def _line(line: Line, width: int) -> str:
    label, value = printable(line.label), printable(line.value)
    start = f"  {label.ljust(width)}  {value}" if width else f"  {value}"
    return f"{start}  ({printable(line.reason)})" if line.reason else start.rstrip()


def printable(text: str) -> str:
    """Return text on one line, and without terminal control characters."""
    flat = " ".join(text.split("\n"))
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in flat)


_SPECIAL = re.compile(r"([\\`*_\[\]|<>&~$])")
_BREAKS = re.compile(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")


def markdown_of(outline: Outline) -> str:
    r"""Return a heading and one table for each section; nothing in the texts is markup.

    >>> from puredelta.commands.statement.rendering import Line, Outline, Section
    >>> print(markdown_of(Outline("DELETE", (Section("Rows", (Line("a|b", "3"),)),))))
    ### DELETE
    <BLANKLINE>
    #### Rows
    <BLANKLINE>
    | | | |
    | --- | --- | --- |
    | a\|b | 3 |  |
    <BLANKLINE>
    """
    blocks = [f"### {_escaped(outline.title)}", ""]
    for section in outline.sections:
        blocks += [f"#### {_escaped(section.title)}", "", "| | | |", "| --- | --- | --- |"]
        blocks += [_markdown_row(line) for line in section.lines]
        blocks.append("")
    return "\n".join(blocks)


def _markdown_row(line: Line) -> str:
    return f"| {_escaped(line.label)} | {_escaped(line.value)} | {_escaped(line.reason)} |"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", _BREAKS.sub(" ", text))


_BOX = "font-family:system-ui,sans-serif;font-size:13px;line-height:1.4;max-width:72em"
_CELL = "padding:1px 12px 1px 0;vertical-align:top;text-align:left;overflow-wrap:anywhere"
_FAINT = f"{_CELL};opacity:.7"
_TITLE = "cursor:pointer;font-weight:600;margin-top:6px"
_CLOSED = frozenset({"File by file", "Settings that decided", "Stages"})
"""Sections that may be long; a click opens them."""


def html_of(outline: Outline) -> str:
    """Return the element; every text is escaped, colours are those of the notebook.

    >>> from puredelta.commands.statement.rendering import Outline
    >>> "<b>" in html_of(Outline("<b>", ()))
    False
    """
    parts = [
        f'<div class="puredelta-report" style="{_BOX}">',
        f'<div style="font-weight:600;font-size:14px">{escape(outline.title)}</div>',
        *map(_section, outline.sections),
        "</div>",
    ]
    return "".join(parts)


def _section(section: Section) -> str:
    shown = "" if section.title in _CLOSED else " open"
    rows = "".join(map(_html_row, section.lines))
    return (
        f'<details{shown}><summary style="{_TITLE}">{escape(section.title)}</summary>'
        f'<table style="border-collapse:collapse;margin-left:16px"><tbody>{rows}</tbody></table>'
        "</details>"
    )


def _html_row(line: Line) -> str:
    return (
        f'<tr><th scope="row" style="{_CELL};font-weight:400">{escape(line.label)}</th>'
        f'<td style="{_CELL}">{escape(line.value)}</td>'
        f'<td style="{_FAINT}">{escape(line.reason)}</td></tr>'
    )
