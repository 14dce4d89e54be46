"""An outline as lines for a terminal or a log. Pure."""

from __future__ import annotations

from puredelta.commands.report.outline import Line, Outline, Section

_LABEL_MAX = 40


def text_of(outline: Outline) -> str:
    r"""Return the lines; control characters, which a terminal would obey, are spelt out.

    >>> from puredelta.commands.report.outline import Line, Outline, Section
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
    """Return text on one line, and without what would steer a terminal."""
    flat = " ".join(text.split("\n"))
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in flat)
