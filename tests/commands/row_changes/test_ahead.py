"""Statistics that are parsed while the statement is resolved and the source staged."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeAlias

import pytest

from puredelta.commands.row_changes import ahead
from puredelta.commands.row_changes.ahead import FILES_MIN, StatisticsPrefetch, statistics_ahead
from puredelta.commands.row_changes.statement import ConditionParts, EquiPair
from puredelta.log.files import statistics_cache
from puredelta.log.files.file_table import FileTable
from puredelta.log.skipping.pruning import prune
from puredelta.protocol.schema.types import INTEGER, LONG
from puredelta.protocol.values.predicates import Compare, CompareOp, Const, Ref, Side
from tests.log.tables import add, config

ID, PART, SUB = (
    Ref(Side.TARGET, (name,), kind)
    for name, kind in (("id", LONG), ("part", INTEGER), ("sub", INTEGER))
)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[set[tuple[str, ...]]]:
    """The columns that were parsed each time."""
    seen: list[set[tuple[str, ...]]] = []
    parse = statistics_cache.read_stats_columns

    def noted(stats: Any, leaves: Any) -> Any:
        seen.append(set(leaves))
        return parse(stats, leaves)

    monkeypatch.setattr(statistics_cache, "read_stats_columns", noted)
    return seen


def statement(*targets: Ref, condition: Ref | None = None) -> Any:
    pairs = [EquiPair(target=t, source=Ref(Side.SOURCE, t.path, t.type)) for t in targets]
    only = () if condition is None else (Compare(CompareOp.GREATER, condition, Const(5)),)
    parts = ConditionParts(pairs=tuple(pairs), target_only=only)
    return SimpleNamespace(on=SimpleNamespace(parts=parts))


def files(count: int = FILES_MIN, **more: Any) -> FileTable:
    return FileTable.of(add(f"{n}.parquet", ids=(n, n + 1), **more) for n in range(count))


Act: TypeAlias = Callable[[StatisticsPrefetch], None]


def asking(*targets: Ref, condition: Ref | None = None) -> Act:
    return lambda ahead: ahead.ask(statement(*targets, condition=condition))


def guessing(on: str) -> Act:
    return lambda ahead: ahead.guess(on)


@pytest.mark.parametrize(
    "act",
    [
        asking(ID, condition=SUB),
        guessing("t.id = s.key AND t.sub > 5"),
        guessing("Column<'and(=(t.ID, s.key), >(`sub`, 5))'>"),
    ],
)
def test_what_on_asks_for_is_there_afterwards(parsed: list[set[tuple[str, ...]]], act: Act) -> None:
    table, known = config(), files()
    with statistics_ahead(known, table) as ahead:
        act(ahead)
    assert parsed == [{("id",), ("sub",)}]
    found = prune(known, table, Compare(CompareOp.LESS, ID, Const(10)))
    assert found.mask.to_pylist() == [n < 10 for n in range(FILES_MIN)]
    assert len(parsed) == 1


def test_only_what_was_not_guessed_is_parsed_once_the_statement_is_known(
    parsed: list[set[tuple[str, ...]]],
) -> None:
    with statistics_ahead(files(), config()) as ahead:
        ahead.guess("t.id = s.key")
        ahead.ask(statement(ID))
        ahead.ask(statement(ID, condition=SUB))
        ahead.wait()
        assert parsed == [{("id",)}, {("sub",)}]


@pytest.mark.parametrize(
    ("known", "act"),
    [
        (lambda: files(FILES_MIN - 1), asking(ID)),
        (lambda: files(FILES_MIN - 1), guessing("t.id = s.id")),
        (files, asking()),
        (files, guessing("false")),
        (lambda: files(part={"part": "1"}), asking(ID, PART)),
        (lambda: files(part={"part": "1"}), guessing("t.id = s.id AND s.part = t.part")),
    ],
)
def test_nothing_is_parsed_that_may_not_be_asked_for(
    parsed: list[set[tuple[str, ...]]], known: Callable[[], FileTable], act: Act
) -> None:
    with statistics_ahead(known(), config(partitioned_by=("part",))) as ahead:
        act(ahead)
    assert parsed == []


def test_few_files_do_not_ask_what_a_condition_says() -> None:
    class Condition:
        def __str__(self) -> str:
            raise AssertionError("asked for its text, of the JVM")

    with statistics_ahead(files(FILES_MIN - 1), config()) as ahead:
        ahead.guess(Condition())
    with statistics_ahead(files(), config(), by_statistics=False) as ahead:
        ahead.guess(Condition())


def test_nothing_is_parsed_where_statistics_do_not_count(
    parsed: list[set[tuple[str, ...]]],
) -> None:
    with statistics_ahead(files(), config(), by_statistics=False) as ahead:
        ahead.guess("t.id = s.id")
        ahead.ask(statement(ID))
        ahead.wait()
    assert parsed == []


def test_errors_are_left_to_who_asks_next(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise ValueError("no statistics")

    monkeypatch.setattr(ahead, "read_statistics", broken)
    with statistics_ahead(files(), config()) as statistics:
        statistics.ask(statement(ID))
        statistics.wait()


def test_the_callers_own_error_passes(parsed: list[set[tuple[str, ...]]]) -> None:
    def staging() -> None:
        with statistics_ahead(files(), config()) as statistics:
            statistics.ask(statement(ID))
            raise KeyError("staging")

    with pytest.raises(KeyError, match="staging"):
        staging()
    assert parsed == [{("id",)}]
