"""Statements read for tests."""

from __future__ import annotations

from puredelta.statements.parse.parse import parse
from puredelta.statements.parse.statement import Rejected


def rejected(text: str) -> Rejected:
    """What is wrong with a text that begins as a statement."""
    statement = parse(text)
    assert isinstance(statement, Rejected)
    return statement
