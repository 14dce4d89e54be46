"""An outline as Markdown. Pure."""

from __future__ import annotations

import re

from puredelta.commands.report.outline import Line, Outline

_SPECIAL = re.compile(r"([\\`*_\[\]|<>&~$])")
_BREAKS = re.compile(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")


def markdown_of(outline: Outline) -> str:
    r"""Return a heading and one table for each section; nothing in the texts is markup.

    >>> from puredelta.commands.report.outline import Line, Outline, Section
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
        blocks += [_row(line) for line in section.lines]
        blocks.append("")
    return "\n".join(blocks)


def _row(line: Line) -> str:
    return f"| {_escaped(line.label)} | {_escaped(line.value)} | {_escaped(line.reason)} |"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", _BREAKS.sub(" ", text))
