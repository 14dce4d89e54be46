"""An outline as HTML for notebooks: one element, without a script or a reference. Pure."""

from __future__ import annotations

from html import escape

from puredelta.commands.report.outline import Line, Outline, Section

_BOX = "font-family:system-ui,sans-serif;font-size:13px;line-height:1.4;max-width:72em"
_CELL = "padding:1px 12px 1px 0;vertical-align:top;text-align:left;overflow-wrap:anywhere"
_FAINT = f"{_CELL};opacity:.7"
_TITLE = "cursor:pointer;font-weight:600;margin-top:6px"
_CLOSED = frozenset({"File by file", "Settings that decided", "Stages"})
"""Sections that may be long; a click opens them."""


def html_of(outline: Outline) -> str:
    """Return the element; every text is escaped, colours are those of the notebook.

    >>> from puredelta.commands.report.outline import Outline
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
    rows = "".join(map(_row, section.lines))
    return (
        f'<details{shown}><summary style="{_TITLE}">{escape(section.title)}</summary>'
        f'<table style="border-collapse:collapse;margin-left:16px"><tbody>{rows}</tbody></table>'
        "</details>"
    )


def _row(line: Line) -> str:
    return (
        f'<tr><th scope="row" style="{_CELL};font-weight:400">{escape(line.label)}</th>'
        f'<td style="{_CELL}">{escape(line.value)}</td>'
        f'<td style="{_FAINT}">{escape(line.reason)}</td></tr>'
    )
