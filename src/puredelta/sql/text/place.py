"""Where in a text something is, and how an error shows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextPosition:
    """A line, counted from 1, and a position in it, counted from 0, as Spark counts."""

    line: int
    position: int

    @classmethod
    def of(cls, text: str, offset: int) -> TextPosition:
        r"""Return the place of an offset.

        >>> TextPosition.of("SELECT 1\nFROM", 9)
        TextPosition(line=2, position=0)
        """
        before = text[:offset]
        return cls(line=before.count("\n") + 1, position=offset - (before.rfind("\n") + 1))

    def __str__(self) -> str:
        return f"(line {self.line}, pos {self.position})"


def with_caret(text: str, place: TextPosition) -> str:
    """Return the text with a line below the place that points at it, as Spark prints it."""
    lines = text.split("\n")
    lines.insert(place.line, "-" * place.position + "^^^")
    return "\n".join(lines)
