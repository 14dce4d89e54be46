from __future__ import annotations

from puredelta.commands.dml.resolve.errors import unresolved


def test_names_that_both_sides_have_ask_for_aliases() -> None:
    error = unresolved("t.id", clause="search condition", columns=["id", "v", "id", "v"])
    assert "alias('t')" in error.message
    plain = unresolved("x", clause="search condition", columns=["t.id", "s.id"])
    assert "alias(" not in plain.message
