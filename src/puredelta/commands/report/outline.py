"""Titles and lines: the one form between a report and its texts. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """A label, what there is to say of it, and why."""

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
    """Sections under a title. The texts may hold anything: names and predicates are the user's."""

    title: str
    sections: tuple[Section, ...]
