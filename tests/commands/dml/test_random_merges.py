"""Random small merges against the plain model: rows, counts, and who is refused."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from puredelta.commands.dml.spec import (
    Clause,
    Delete,
    Insert,
    Matched,
    NotMatched,
    NotMatchedBySource,
    Update,
)
from puredelta.errors import ErrorCode, InvalidRequestError
from tests.commands.dml.model import Action, AmbiguousError, Condition, Row, Values, merge_rows
from tests.commands.dml.tables import assigned, data_files, lay_table, merge, table_rows

TARGET = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int64())])


def equal(left: Any, right: Any) -> bool | None:
    return None if left is None or right is None else left == right


def both(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def less(left: Any, right: Any) -> bool | None:
    return None if left is None or right is None else left < right


def plus(left: Any, right: Any) -> Any:
    return None if left is None or right is None else left + right


ONS: list[tuple[str, Condition]] = [
    ("t.id = s.id", lambda t, s: equal(t["id"], s["id"])),
    ("t.id <=> s.id", lambda t, s: t["id"] == s["id"]),
    (
        "t.id = s.id AND t.p = s.p",
        lambda t, s: both(equal(t["id"], s["id"]), equal(t["p"], s["p"])),
    ),
    ("t.p = 'a' AND t.id = s.id", lambda t, s: both(equal(t["p"], "a"), equal(t["id"], s["id"]))),
    ("s.v > 2 AND t.id = s.id", lambda t, s: both(less(2, s["v"]), equal(t["id"], s["id"]))),
    (
        "t.id < s.id AND t.id + 2 > s.id",
        lambda t, s: both(less(t["id"], s["id"]), less(s["id"], plus(t["id"], 2))),
    ),
    ("false", lambda _t, _s: False),
    ("t.v = 3", lambda t, _s: equal(t["v"], 3)),
]  # fmt: skip

PAIR: list[tuple[str | None, Condition | None]] = [
    ("s.v > t.v", lambda t, s: less(t["v"], s["v"])),
    ("t.p = 'b'", lambda t, _s: equal(t["p"], "b")),
    ("s.v = 1", lambda _t, s: equal(s["v"], 1)),
]
SOURCE: list[tuple[str | None, Condition | None]] = [
    ("s.v > 1", lambda _t, s: less(1, s["v"])),
    ("s.p = 'b'", lambda _t, s: equal(s["p"], "b")),
]
OLD: list[tuple[str | None, Condition | None]] = [
    ("t.v > 1", lambda t, _s: less(1, t["v"])),
    ("t.p = 'a'", lambda t, _s: equal(t["p"], "a")),
]


UPDATES: list[tuple[dict[str, str] | None, Values]] = [
    (None, lambda _t, s: dict(s)),
    ({"v": "s.v"}, lambda t, s: {**t, "v": s["v"]}),
    ({"v": "t.v + s.v", "p": "s.p"}, lambda t, s: {**t, "v": plus(t["v"], s["v"]), "p": s["p"]}),
]
OLD_UPDATES: list[tuple[dict[str, str], Values]] = [
    ({"v": "t.v + 10"}, lambda t, _s: {**t, "v": plus(t["v"], 10)}),
    ({"p": "'z'"}, lambda t, _s: {**t, "p": "z"}),
]
INSERTS: list[tuple[dict[str, str] | None, Values]] = [
    (None, lambda _t, s: dict(s)),
    (
        {"id": "s.id", "v": "s.v + 5"},
        lambda _t, s: {"id": s["id"], "p": None, "v": plus(s["v"], 5)},
    ),
]

row = st.fixed_dictionaries(
    {
        "id": st.none() | st.integers(0, 6),
        "p": st.sampled_from(["a", "b", None]),
        "v": st.none() | st.integers(0, 4),
    }
)


@dataclass(frozen=True)
class Statement:
    on: tuple[str, Condition]
    clauses: tuple[tuple[Clause, Action], ...]
    partitioned: bool
    with_stats: bool

    def __repr__(self) -> str:
        return f"ON {self.on[0]} {[c for c, _ in self.clauses]} partitioned={self.partitioned}"

    def actions(self, kind: type) -> list[Action]:
        return [action for clause, action in self.clauses if isinstance(clause, kind)]


@st.composite
def statements(draw: Any) -> Statement:
    def clauses(kind: Any, conditions: Any, makes: list[Any], wrap: Any, most: int) -> list[Any]:
        made = []
        count = draw(st.integers(0, most))
        for number in range(count):
            last = number == count - 1
            sql, fires = draw(st.sampled_from([*conditions, (None, None)] if last else conditions))
            options = [*makes] if kind is NotMatched else [*makes, None]
            chosen = draw(st.sampled_from(options))
            action = Delete() if chosen is None else wrap(assigned(chosen[0]))
            made.append(
                (kind(action, sql), Action(fires=fires, make=None if chosen is None else chosen[1]))
            )
        return made

    parts = [
        *clauses(Matched, PAIR, UPDATES, Update, 2),
        *clauses(NotMatched, SOURCE, INSERTS, Insert, 2),
        *clauses(NotMatchedBySource, OLD, OLD_UPDATES, Update, 2),
    ]
    if not parts:
        parts = [(Matched(Delete()), Action())]
    return Statement(
        on=draw(st.sampled_from(ONS)),
        clauses=tuple(parts),
        partitioned=draw(st.booleans()),
        with_stats=draw(st.booleans()),
    )


def in_files(rows: list[Row], *, partitioned: bool) -> list[list[Row]]:
    if partitioned:
        return [some for p in ("a", "b", None) if (some := [r for r in rows if r["p"] == p])]
    return [some for n in range(0, len(rows), 3) if (some := rows[n : n + 3])]


def ordered(rows: list[Row]) -> list[Row]:
    return sorted(({"id": r["id"], "p": r["p"], "v": r["v"]} for r in rows), key=repr)


def random_merges(examples: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a test so many merges: the rows of both sides, and the statement."""
    merges = given(
        target=st.lists(row, min_size=1, max_size=9),
        source=st.lists(row, max_size=5),
        statement=statements(),
    )
    limits = settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],  # shrinking costs minutes, and a case is small as it is
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    return lambda test: limits(merges(test))


@random_merges(7)
def test_a_random_merge_is_what_the_model_says(spark: SparkSession, **merge: Any) -> None:
    require_as_modelled(spark, **merge)


@pytest.mark.thorough
@random_merges(15)
def test_more_random_merges_are_what_the_model_says(spark: SparkSession, **merge: Any) -> None:
    require_as_modelled(spark, **merge)


def require_as_modelled(
    spark: SparkSession, target: list[Row], source: list[Row], statement: Statement
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory) / "t"
        log = lay_table(
            root,
            TARGET,
            in_files(target, partitioned=statement.partitioned),
            partition_by=["p"] if statement.partitioned else [],
            with_stats=statement.with_stats,
        )
        before = data_files(root)
        rows = spark.createDataFrame(
            [(s["id"], s["p"], s["v"]) for s in source], "id long, p string, v long"
        )
        clauses = [clause for clause, _ in statement.clauses]
        try:
            wanted = merge_rows(
                target,
                source,
                statement.on[1],
                matched=statement.actions(Matched),
                not_matched=statement.actions(NotMatched),
                by_source=statement.actions(NotMatchedBySource),
            )
        except AmbiguousError:
            with pytest.raises(InvalidRequestError) as refused:
                merge(spark, log, rows, statement.on[0], *clauses)
            assert refused.value.code is ErrorCode.MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW
            assert data_files(root) == before
            return
        outcome = merge(spark, log, rows, statement.on[0], *clauses)
        counts = (outcome.rows.updated, outcome.rows.deleted, outcome.rows.inserted)
        assert counts == (wanted.updated, wanted.deleted, wanted.inserted)
        assert outcome.version == (1 if any(counts) else None)
        assert table_rows(spark, log) == ordered(wanted.rows)
        active = {add.path for add in log.snapshot().files.adds()}
        assert len(data_files(root) - before) == outcome.metrics["numTargetFilesAdded"]
        assert len(active) <= len(before) + outcome.metrics["numTargetFilesAdded"]
