"""Which files a MERGE searches: statistics against the statement and the source's keys."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from puredelta.commands.dml.lookup_plan import plan_lookup
from puredelta.commands.dml.resolve.resolved_statement import (
    ConditionParts,
    EquiPair,
    MatchedClause,
    NotMatchedBySourceClause,
    NotMatchedClause,
    ResolvedCondition,
    ResolvedDelete,
    ResolvedInsert,
    ResolvedStatement,
    ResolvedUpdate,
)
from puredelta.commands.dml.search_plan import (
    Rule,
    Search,
    SearchLimits,
    SearchPlan,
    key_predicate,
    plan_search,
    reads_little,
)
from puredelta.commands.dml.staged_source import ColumnNames, SourceProfile
from puredelta.log.files.file_table import FileTable
from puredelta.log.skipping.pruning import prune
from puredelta.protocol.actions.actions import Add, Metadata, Protocol
from puredelta.protocol.schema.predicates import (
    FALSE,
    TRUE,
    And,
    Compare,
    CompareOp,
    Const,
    IsNull,
    Not,
    OneOf,
    Opaque,
    Or,
    Predicate,
    Ref,
    Side,
)
from puredelta.protocol.schema.schema_json import encode_schema
from puredelta.protocol.schema.types import (
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    DecimalType,
    StructField,
    StructType,
)
from puredelta.protocol.table.stats import LeafStatistics
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.offload.workers import WorkerMemory
from puredelta.worker.expressions import ALWAYS
from puredelta.worker.lookup.conditions import ResidualConditions
from puredelta.worker.lookup.lookup_request import KeyColumn
from puredelta.worker.lookup.range_index import KeyRange
from tests.worker.expressions import expression

SCHEMA = StructType((StructField("id", LONG), StructField("part", STRING), StructField("v", LONG)))
ID = Ref(Side.TARGET, ("id",), LONG)
PART = Ref(Side.TARGET, ("part",), STRING)
V = Ref(Side.TARGET, ("v",), LONG)
KEY = Ref(Side.SOURCE, ("s0",), LONG)
SOURCE_V = Ref(Side.SOURCE, ("s1",), LONG)
PAIR = EquiPair(target=ID, source=KEY)
V_IS_SMALL = Compare(CompareOp.LESS, V, Const(9))


@pytest.fixture(scope="module")
def config() -> TableConfig:
    return config_of(SCHEMA)


def config_of(schema: StructType) -> TableConfig:
    metadata = Metadata(id="x", schema_string=encode_schema(schema), partition_columns=("part",))
    return TableConfig.of(Protocol(min_reader_version=1, min_writer_version=2), metadata)


@pytest.fixture(scope="module")
def files() -> FileTable:
    """Ten files: ids [0, 9] to [90, 99], half in partition a, half in b; v is the file's number."""
    return FileTable.of(
        Add(
            path=f"f{n}",
            partition_values={"part": "a" if n < 5 else "b"},
            size_bytes=100,
            modified_ms=0,
            data_change=True,
            stats=json.dumps(
                {
                    "numRecords": 10,
                    "minValues": {"id": 10 * n, "v": n},
                    "maxValues": {"id": 10 * n + 9, "v": n},
                    "nullCount": {"id": 0, "v": 0},
                }
            ),
        )
        for n in range(10)
    )


def condition(
    *target_only: Predicate, pairs: tuple[EquiPair, ...] = (), other: tuple[Predicate, ...] = ()
) -> ResolvedCondition:
    nothing: Any = None
    return ResolvedCondition(
        column=nothing,
        predicate=And((*target_only, *other)),
        parts=ConditionParts(pairs=pairs, target_only=target_only, other=other),
        sql="",
        target_columns=frozenset({"id"}),
        source_columns=frozenset({"s0"}),
    )


def update(*, unchanged: frozenset[str] = frozenset()) -> ResolvedUpdate:
    return ResolvedUpdate(
        values={}, unchanged=unchanged, target_columns=frozenset(), source_columns=frozenset()
    )


INSERT = NotMatchedClause(
    action=ResolvedInsert(values={}, source_columns=frozenset()), condition=None
)


def merge(
    on: ResolvedCondition,
    *,
    matched: tuple[MatchedClause, ...] = (),
    not_matched: tuple[NotMatchedClause, ...] = (),
    by_source: tuple[NotMatchedBySourceClause, ...] = (),
) -> ResolvedStatement:
    nothing: Any = None
    made = object.__new__(ResolvedStatement)
    for name, value in {
        "config": config_of(SCHEMA),
        "schema_evolves": False,
        "on": on,
        "matched": matched,
        "not_matched": not_matched,
        "not_matched_by_source": by_source,
        "target_columns": frozenset({"id"}),
        "source_columns": (nothing,),
        "timestamp": nothing,
    }.items():
        object.__setattr__(made, name, value)
    return made


def source(low: Any = 12, high: Any = 35, *, num_rows: int = 3, **more: Any) -> SourceProfile:
    bounds = {("s0",): LeafStatistics(minimum=low, maximum=high, null_count=0)}
    return SourceProfile(
        num_rows=num_rows, size_bytes=1000, **{"bounds": bounds, "distinct": {}, **more}
    )


def planned(
    statement: ResolvedStatement,
    files: FileTable,
    config: TableConfig,
    profile: SourceProfile | None = None,
    *,
    broadcast_bytes_max: int = 10_000,
    lookup_bytes_max: int = 1_000_000,
    lookup_parts_max: int = 1,
) -> SearchPlan:
    known = profile or source()
    memory = WorkerMemory(task_max=lookup_bytes_max, parts_max=lookup_parts_max)
    return plan_search(
        statement,
        files,
        known,
        prune=lambda some, predicate, parsed: prune(some, config, predicate, statistics=parsed),
        limits=SearchLimits(
            broadcast_bytes_max=broadcast_bytes_max,
            look_up=lambda: plan_lookup(statement, known.num_rows, ColumnNames(), memory),
        ),
    )


def names(plan: SearchPlan) -> list[str]:
    return [add.path for add in plan.candidates.adds()]


MATCHED_UPDATE = MatchedClause(action=update(), condition=None)


def test_keys_of_the_source_skip_files(files: FileTable, config: TableConfig) -> None:
    """W-1: the reference never uses the source's keys."""
    plan = planned(merge(condition(pairs=(PAIR,)), matched=(MATCHED_UPDATE,)), files, config)
    assert names(plan) == ["f1", "f2", "f3"]
    assert plan.skipped_by_rule() == {Rule.SOURCE_KEYS: 7}
    assert plan.search is Search.INNER


def test_few_keys_are_looked_up_one_by_one(files: FileTable, config: TableConfig) -> None:
    few = source(12, 95, distinct={("s0",): (12, 95)})
    plan = planned(merge(condition(pairs=(PAIR,)), matched=(MATCHED_UPDATE,)), files, config, few)
    assert names(plan) == ["f1", "f9"]


def test_target_only_conjuncts_of_on_skip_files(files: FileTable, config: TableConfig) -> None:
    """M-80."""
    on = condition(Compare(CompareOp.EQUAL, PART, Const("a")), pairs=(PAIR,))
    plan = planned(merge(on, matched=(MATCHED_UPDATE,)), files, config, source(30, 70))
    assert names(plan) == ["f3", "f4"]
    assert plan.skipped_by_rule() == {Rule.ON_TARGET: 5, Rule.SOURCE_KEYS: 3}


def test_conditions_of_matched_clauses_skip_files_only_where_nothing_else_acts(
    files: FileTable, config: TableConfig
) -> None:
    """M-80: an INSERT must know of every match."""
    clauses = tuple(
        MatchedClause(
            action=ResolvedDelete(), condition=condition(Compare(CompareOp.EQUAL, V, Const(n)))
        )
        for n in (2, 7)
    )
    on = condition(pairs=(PAIR,))
    wide = source(0, 99)
    assert names(planned(merge(on, matched=clauses), files, config, wide)) == ["f2", "f7"]
    inserting = merge(on, matched=clauses, not_matched=(INSERT,))
    assert len(names(planned(inserting, files, config, wide))) == 10
    unconditional = merge(on, matched=(*clauses, MATCHED_UPDATE))
    assert len(names(planned(unconditional, files, config, wide))) == 10


def test_by_source_clauses_widen_to_what_their_conditions_reach(
    files: FileTable, config: TableConfig
) -> None:
    """W-2: the reference rewrites every file."""
    clause = NotMatchedBySourceClause(
        action=ResolvedDelete(), condition=condition(Compare(CompareOp.EQUAL, V, Const(8)))
    )
    on = condition(pairs=(PAIR,))
    plan = planned(merge(on, matched=(MATCHED_UPDATE,), by_source=(clause,)), files, config)
    assert names(plan) == ["f1", "f2", "f3", "f8"]
    assert plan.extra_candidates == 1
    assert plan.search is Search.LEFT_OUTER
    everything = NotMatchedBySourceClause(action=ResolvedDelete(), condition=None)
    plan = planned(merge(on, by_source=(everything,)), files, config)
    assert len(names(plan)) == 10
    assert plan.read_predicate == TRUE


def test_an_empty_source_matches_nothing(files: FileTable, config: TableConfig) -> None:
    nothing = source(None, None, num_rows=0, bounds={})
    on = condition(pairs=(PAIR,))
    plan = planned(
        merge(on, matched=(MATCHED_UPDATE,), not_matched=(INSERT,)), files, config, nothing
    )
    assert (plan.search, names(plan), plan.read_predicate) == (Search.NOTHING, [], FALSE)
    clause = NotMatchedBySourceClause(
        action=ResolvedDelete(), condition=condition(Compare(CompareOp.EQUAL, V, Const(8)))
    )
    plan = planned(merge(on, by_source=(clause,)), files, config, nothing)
    assert (plan.search, names(plan)) == (Search.TARGET_ONLY, ["f8"])
    assert not plan.finds_source_rows


@pytest.mark.parametrize(
    ("pair", "profile", "expected"),
    [
        (PAIR, source(), And((Compare(CompareOp.GREATER_OR_EQUAL, ID, Const(12)),
                              Compare(CompareOp.LESS_OR_EQUAL, ID, Const(35))))),
        (PAIR, source(None, 35), And((Compare(CompareOp.LESS_OR_EQUAL, ID, Const(35)),))),
        (PAIR, source(None, None), TRUE),
        (PAIR, source(bounds={}), TRUE),
        (PAIR, source(distinct={("s0",): (1, 5)}), OneOf(ID, (1, 5))),
        # every key is NULL: = never matches, <=> matches NULL alone
        (PAIR, source(bounds={("s0",): LeafStatistics(null_count=3)}), FALSE),
        (EquiPair(target=ID, source=KEY, null_safe=True),
         source(bounds={("s0",): LeafStatistics(null_count=3)}), Or((IsNull(ID), FALSE))),
        (EquiPair(target=ID, source=KEY, null_safe=True), source(distinct={("s0",): (1,)}),
         OneOf(ID, (1,))),
        # NaN lies outside of any bounds, and text is no number
        (EquiPair(target=Ref(Side.TARGET, ("x",), DOUBLE),
                  source=Ref(Side.SOURCE, ("s0",), DOUBLE)), source(), TRUE),
        (EquiPair(target=ID, source=Ref(Side.SOURCE, ("s0",), STRING)), source("1", "3"), TRUE),
        (EquiPair(target=ID, source=Ref(Side.SOURCE, ("s0",), None)), source(), TRUE),
    ],
)  # fmt: skip
def test_what_keys_prove(pair: EquiPair, profile: SourceProfile, expected: Predicate) -> None:
    assert key_predicate(pair, profile) == expected


def test_integers_of_other_width_compare_as_they_are() -> None:
    pair = EquiPair(target=ID, source=Ref(Side.SOURCE, ("s0",), INTEGER))
    assert key_predicate(pair, source(1, 2)) != TRUE


def test_the_search_tells_what_it_must(files: FileTable, config: TableConfig) -> None:
    on = condition(pairs=(PAIR,))
    delete = MatchedClause(action=ResolvedDelete(), condition=None)
    plan = planned(merge(on, matched=(delete,)), files, config)
    assert not plan.checks_multiple_matches  # M-71
    assert not plan.finds_source_rows
    plan = planned(merge(on, not_matched=(INSERT,)), files, config)
    assert not plan.checks_multiple_matches  # M-73
    assert plan.finds_source_rows
    plan = planned(merge(on, matched=(delete, MATCHED_UPDATE)), files, config)
    assert plan.checks_multiple_matches  # M-70
    assert plan.finds_source_rows  # the staged row alone makes the new one
    keeps = MatchedClause(action=update(unchanged=frozenset({"v"})), condition=None)
    assert not planned(merge(on, matched=(keeps,)), files, config).finds_source_rows


@pytest.mark.parametrize(("limit", "expected"), [(10_000, True), (999, False), (-1, False)])
def test_a_small_source_is_broadcast(
    files: FileTable, config: TableConfig, limit: int, *, expected: bool
) -> None:
    statement = merge(condition(pairs=(PAIR,)), matched=(MATCHED_UPDATE,))
    plan = planned(statement, files, config, broadcast_bytes_max=limit)
    assert plan.broadcast_source is expected
    assert "3 of 10 files searched" in plan.describe()


def test_keys_are_looked_up(files: FileTable, config: TableConfig) -> None:
    on = condition(pairs=(PAIR,))
    found = (KeyColumn(target="id", source="s0", null_safe=False),)
    for statement in (
        merge(on, matched=(MATCHED_UPDATE,)),
        merge(on, not_matched=(INSERT,)),
        merge(on, matched=(MatchedClause(action=ResolvedDelete(), condition=None),)),
    ):
        plan = planned(statement, files, config)
        assert plan.lookup is not None
        assert plan.lookup.keys == found
        assert plan.lookup.conditions is None  # every pair has the same fate
        assert plan.lookup.clause == (0 if statement.matched else -1)
        assert "keys looked up" in plan.describe()
    assert planned(merge(on), files, config, source(num_rows=0)).lookup is None
    assert planned(merge(condition(V_IS_SMALL)), files, config).lookup is None


def test_residual_conditions_are_arrows(files: FileTable, config: TableConfig) -> None:
    changed = condition(other=(Not(Compare(CompareOp.EQUAL, V, SOURCE_V)),))
    conditional = MatchedClause(action=update(), condition=changed)
    reach = NotMatchedBySourceClause(action=ResolvedDelete(), condition=condition(V_IS_SMALL))
    statement = merge(
        condition(V_IS_SMALL, pairs=(PAIR,)),
        matched=(conditional, MATCHED_UPDATE),
        by_source=(reach,),
    )
    plan = planned(statement, files, config)
    assert plan.search is Search.LEFT_OUTER
    assert plan.lookup is not None
    small = expression(("less", ("target", 0), ("value", 9, pa.int64())))
    differs = expression(("invert", ("equal", ("target", 0), ("source", 0))))
    assert plan.lookup.conditions == ResidualConditions(
        on=small,
        matched=(differs, ALWAYS),
        by_source=(small,),
        target_columns=(("v", pa.int64()),),
        source_columns=(("s1", pa.int64()),),
    )
    names = ColumnNames(in_files={"s0": "key", "s1": "value"})
    renamed = plan_lookup(statement, 3, names, WorkerMemory(task_max=1_000_000))
    assert renamed is not None
    assert renamed.conditions is not None
    assert [key.source for key in renamed.keys] == ["key"]
    assert renamed.conditions.source_columns == (("value", pa.int64()),)
    unknown = Opaque(frozenset({ID, KEY}))
    for statement in (
        merge(condition(other=(unknown,), pairs=(PAIR,))),
        merge(condition(other=(unknown,))),
        merge(
            condition(pairs=(PAIR,)),
            matched=(MatchedClause(action=update(), condition=condition(unknown)),),
        ),
    ):
        assert planned(statement, files, config).lookup is None


def test_keys_are_looked_up_as_far_as_they_fit_into_memory(
    files: FileTable, config: TableConfig
) -> None:
    statement = merge(condition(pairs=(PAIR,)), matched=(MATCHED_UPDATE,))
    lookup = planned(statement, files, config, source(num_rows=1000)).lookup
    assert lookup is not None
    assert 8_000 <= lookup.task_bytes <= 100_000
    for limit, fits in ((lookup.task_bytes, True), (lookup.task_bytes - 1, False)):
        plan = planned(statement, files, config, source(num_rows=1000), lookup_bytes_max=limit)
        assert (plan.lookup is not None) is fits


def test_a_source_is_looked_up_in_parts_where_memory_is_scarce(
    files: FileTable, config: TableConfig
) -> None:
    statement = merge(condition(pairs=(PAIR,)), matched=(MATCHED_UPDATE,))
    whole = planned(statement, files, config, source(num_rows=1000)).lookup
    assert whole is not None
    assert whole.parts == 1
    limit = whole.task_bytes * 2 // 5  # two and a half times as much is needed
    for parts_max, parts in ((4, 3), (3, 3), (2, None)):
        lookup = planned(
            statement,
            files,
            config,
            source(num_rows=1000),
            lookup_bytes_max=limit,
            lookup_parts_max=parts_max,
        ).lookup
        assert (None if lookup is None else lookup.parts) == parts
        assert lookup is None or lookup.task_bytes <= limit
    with_by_source = merge(
        condition(pairs=(PAIR,)),
        matched=(MATCHED_UPDATE,),
        by_source=(NotMatchedBySourceClause(action=ResolvedDelete(), condition=None),),
    )
    for limit, fits in ((1_000_000, True), (whole.task_bytes * 2 // 5, False)):
        plan = planned(
            with_by_source,
            files,
            config,
            source(num_rows=1000),
            lookup_bytes_max=limit,
            lookup_parts_max=4,
        )
        assert plan.search is Search.LEFT_OUTER
        assert (plan.lookup is not None) is fits


@pytest.mark.parametrize(
    ("target", "key", "looked_up"),
    [
        (LONG, INTEGER, True),
        (STRING, STRING, True),
        (DecimalType(7, 2), DecimalType(7, 2), True),
        (DecimalType(7, 2), DecimalType(9, 2), False),
        (DOUBLE, DOUBLE, False),
        (TIMESTAMP, TIMESTAMP, True),
        (None, None, False),
    ],
)
def test_types_whose_equal_values_are_equal_bytes(
    target: Any, key: Any, *, looked_up: bool
) -> None:
    pair = EquiPair(target=Ref(Side.TARGET, ("id",), target), source=Ref(Side.SOURCE, ("s0",), key))
    statement = merge(condition(pairs=(pair,)), matched=(MATCHED_UPDATE,))
    assert (
        plan_lookup(statement, 3, ColumnNames(), WorkerMemory(task_max=10_000)) is not None
    ) is looked_up


LOW = Ref(Side.SOURCE, ("s2",), INTEGER)
HIGH = Ref(Side.SOURCE, ("s3",), LONG)


def test_a_range_is_looked_up(files: FileTable, config: TableConfig) -> None:
    above = Compare(CompareOp.GREATER_OR_EQUAL, ID, LOW)
    below = Compare(CompareOp.GREATER, HIGH, ID)
    other = Compare(CompareOp.LESS, V, SOURCE_V)
    bounds = {("s2",): LeafStatistics(minimum=3), ("s3",): LeafStatistics(maximum=8)}
    known = SourceProfile(num_rows=2000, size_bytes=1, bounds=bounds)
    statement = merge(condition(other=(other, above, below)), matched=(MATCHED_UPDATE,))
    plan = planned(statement, files, config, known)
    assert plan.lookup is not None
    assert plan.lookup.keys == ()
    assert plan.lookup.within == KeyRange(target="id", low="s2", high="s3", high_open=True)
    assert plan.lookup.conditions is not None
    assert plan.lookup.conditions.on == expression(("less", ("target", 0), ("source", 0)))
    least = Compare(CompareOp.GREATER_OR_EQUAL, ID, Const(3))
    most = Compare(CompareOp.LESS_OR_EQUAL, ID, Const(8))
    assert plan.read_predicate == And((least, most))
    only = merge(condition(other=(above, below)), matched=(MATCHED_UPDATE,))
    alone = planned(only, files, config, known).lookup
    assert alone is not None
    assert alone.conditions is None  # every pair has the same fate
    for num_rows, fits in ((1000, True), (2000, False)):  # each is in as many parts as there are
        one_sided = merge(condition(other=(above,)), matched=(MATCHED_UPDATE,))
        few = SourceProfile(num_rows=num_rows, size_bytes=1)
        assert (planned(one_sided, files, config, few).lookup is not None) is fits
    of_doubles = Compare(
        CompareOp.LESS, Ref(Side.TARGET, ("x",), DOUBLE), Ref(Side.SOURCE, ("s4",), DOUBLE)
    )
    by_spark = merge(condition(other=(of_doubles,)), matched=(MATCHED_UPDATE,))
    assert planned(by_spark, files, config, known).lookup is None


def test_few_small_files_are_read_by_one_task(files: FileTable, config: TableConfig) -> None:
    statement = merge(condition(pairs=(PAIR,)), matched=(MATCHED_UPDATE,))
    assert planned(statement, files, config).reads_little
    large = SourceProfile(num_rows=3, size_bytes=17 * 1024 * 1024)
    assert not planned(statement, files, config, large).reads_little
    assert reads_little([100] * 50)
    assert not reads_little([100] * 100)
    assert not reads_little([17 * 1024 * 1024])
