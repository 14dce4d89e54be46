"""A recorded statement: how its table is made, what is run, and what delta-spark made of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pytest

CASES = Path(__file__).parent / "cases"
"""One file of JSON lines for each topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One line of a file; README.md says what the fields hold."""

    id: str
    setup: list[Any]
    prepare: list[str] = field(default_factory=list)
    source: Any = None
    settings: dict[str, str] = field(default_factory=dict)
    statement: str | None = None
    calls: list[list[Any]] | None = None
    read: str | None = None
    outcome: dict[str, Any] | None = None
    difference: dict[str, Any] | None = None

    def line(self) -> str:
        """The case as a line of a file; what is not given is left out."""
        record = {f.name: getattr(self, f.name) for f in fields(self)}
        given = {name: value for name, value in record.items() if value not in (None, [], {})}
        return json.dumps(given, ensure_ascii=False)

    @property
    def has_feed(self) -> bool:
        """Tell whether the table records its changes."""
        return any("enableChangeDataFeed' = 'true'" in str(step) for step in self.setup)

    @property
    def expected_here(self) -> dict[str, Any]:
        """The outcome of puredelta: the recorded one but for the difference."""
        assert self.outcome is not None, "not recorded yet: make record"
        if self.difference is None:
            return self.outcome
        here: dict[str, Any] = self.difference["here"]
        if "error" in here or "error" in self.outcome:
            return here
        metrics = self.outcome.get("metrics", {}) | (here.get("metrics") or {})
        merged = self.outcome | here | ({"metrics": metrics} if here.get("metrics") else {})
        return {name: value for name, value in merged.items() if value is not None}


def read_cases(path: Path) -> list[Case]:
    """The cases of one file, in its order."""
    return [Case(**json.loads(line)) for line in path.read_text().splitlines()]


def all_cases() -> list[Case]:
    """The cases of every file."""
    return [case for path in sorted(CASES.glob("*.jsonl")) for case in read_cases(path)]


def require_void_columns(case_id: str, spark_version: str) -> None:
    """Skip what was recorded on a newer Spark about columns of type VOID (M-56).

    Spark 4.0 refuses new ones, and its reader of Parquet knows none inside of a struct.
    """
    if spark_version.startswith("4.0.") and "void" in case_id:
        pytest.skip("Spark 4.0 has other rules for columns of type VOID")
