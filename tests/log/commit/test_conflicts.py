"""Conflict rules as a table of cases: X-20 to X-29.

Most cases are those of delta-spark's ``OptimisticTransactionSuite`` (``check``) and
``OptimisticTransactionLegacyTests``; where the answer differs on purpose, the case says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from puredelta.log.commit.commit_request import ReadSet
from puredelta.log.commit.conflicts import (
    ConflictKind,
    IsolationLevel,
    OurCommit,
    WinningCommit,
    find_conflicts,
    isolation_level,
)
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.commit_files import Commit
from puredelta.protocol.actions.actions import (
    Action,
    Add,
    AddChangeFile,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    SetTransaction,
)
from puredelta.protocol.schema.predicates import TRUE, Predicate
from puredelta.protocol.schema.types import LONG, StructField, StructType
from puredelta.protocol.table.table_config import TableConfig
from tests.log.tables import (
    PLAIN,
    SCHEMA,
    add,
    both,
    compare,
    config,
    either,
    equal,
    feature_protocol,
    metadata,
    remove,
)

BY_PART = config(partitioned_by=("part",))
NESTED = config(partitioned_by=("part", "sub"))
FLAT = config()
P1, P2, P3 = ({"part": str(p)} for p in (1, 2, 3))
ROW_ID_DOMAIN = DomainMetadata(domain="delta.rowTracking", configuration='{"rowIdHighWaterMark":9}')
OPTIMIZE = CommitInfo(operation="OPTIMIZE", is_blind_append=False)
BLIND = CommitInfo(operation="WRITE", is_blind_append=True)
VECTOR = DeletionVectorDescriptor(
    storage_type="u", path_or_inline="v", offset=1, size_bytes=9, cardinality=1
)


def unchanged(action: Add) -> Add:
    return replace(action, data_change=False)


@dataclass(frozen=True, kw_only=True)
class Case:
    """Ours reads and commits; a rival won. ``conflict`` is the kind found, None for none."""

    reads: tuple[tuple[Predicate | None, tuple[Add, ...]], ...] = ()
    app_ids: frozenset[str] = frozenset()
    ours: tuple[Action, ...] = ()
    winner: tuple[Action, ...]
    table: TableConfig = BY_PART
    conflict: ConflictKind | None = None
    partition: str | None = None
    level: IsolationLevel | None = None
    said: str = ""
    operation: str = "WRITE"
    extra: dict[str, object] = field(default_factory=dict)

    def run(self) -> tuple[object, ...]:
        read_set = ReadSet(app_ids=self.app_ids)
        for predicate, files in self.reads:
            read_set = read_set.with_files(predicate, FileTable.of(files))
        adds_only = all(isinstance(a, Add) for a in self.ours)
        ours = OurCommit(
            actions=self.ours,
            isolation=self.level or isolation_level(self.ours, self.table.metadata),
            is_blind_append=adds_only and not read_set.depends_on_data,
            operation=self.operation,
        )
        winner = WinningCommit.of(Commit(version=1, modified_ms=5, actions=self.winner))
        return find_conflicts(ours, winner, read_set=read_set, config=self.table)


APPENDED = ConflictKind.APPENDED
DELETE_READ = ConflictKind.DELETED_WHAT_WE_READ
DELETE_DELETE = ConflictKind.DELETED_WHAT_WE_DELETE
PROTOCOL = ConflictKind.PROTOCOL_CHANGED
METADATA = ConflictKind.METADATA_CHANGED

WITH_COLUMN = replace(SCHEMA, fields=(*SCHEMA.fields, StructField("extra", LONG)))
MAPPED = StructType(
    tuple(
        replace(
            f,
            metadata={
                "delta.columnMapping.id": i,
                "delta.columnMapping.physicalName": f.name,
            },
        )
        for i, f in enumerate(SCHEMA.fields, start=1)
    )
)
NAME_MAPPING = {"delta__columnMapping__mode": "name", "delta__columnMapping__maxColumnId": "3"}
VECTORS = feature_protocol(readers=("deletionVectors",))
VACUUM_STARTED = CommitInfo(operation="VACUUM START")
VACUUM_ENDED = CommitInfo(operation="VACUUM END")
CASES = {
    "restore / vacuum start": Case(
        ours=(add("a"),), operation="RESTORE", winner=(VACUUM_STARTED,), conflict=DELETE_READ
    ),
    "restore / vacuum end": Case(ours=(add("a"),), operation="RESTORE", winner=(VACUUM_ENDED,)),
    "write / vacuum start": Case(ours=(add("a"),), winner=(VACUUM_STARTED,)),
    # --- delta-spark's matrix --------------------------------------------------------------
    "append / append": Case(ours=(add("b"),), winner=(add("a"),)),
    "disjoint txns": Case(
        app_ids=frozenset({"t1"}), winner=(SetTransaction(app_id="t2", version=0),)
    ),
    "disjoint delete / read": Case(
        reads=((equal("part", 1), ()),), winner=(remove("a", P2),), ours=(add("b", P1),)
    ),
    "disjoint add / read": Case(
        reads=((equal("part", 1), ()),), winner=(add("a", P2),), ours=(add("b", P1),)
    ),
    "delete / delete": Case(
        ours=(remove("a", P1),),
        winner=(remove("a", P1),),
        conflict=DELETE_DELETE,
        partition="[part=1]",
    ),
    "add / read + write": Case(
        reads=((equal("part", 1), ()),),
        ours=(add("b", P1),),
        winner=(add("a", P1),),
        conflict=APPENDED,
        partition="[part=1]",
    ),
    "add / read + no write": Case(reads=((equal("part", 1), ()),), winner=(add("a", P1),)),
    "add in part=1 / read part=1 and 2, write part=2": Case(
        reads=((equal("part", 1), ()), (equal("part", 2), ())),
        ours=(add("b", P2),),
        winner=(add("a", P1),),
        conflict=APPENDED,
        partition="[part=1]",
    ),
    "delete / read": Case(
        reads=((equal("part", 1), (add("a", P1),)),),
        winner=(remove("a", P1),),
        conflict=DELETE_READ,
        partition="[part=1]",
    ),
    #
    "schema change": Case(winner=(metadata(schema=WITH_COLUMN),), conflict=METADATA, table=FLAT),
    "conflicting txns": Case(
        app_ids=frozenset({"t1", "t0"}),
        winner=(SetTransaction(app_id="t1", version=0),),
        conflict=ConflictKind.TRANSACTION_CHANGED,
        said="t1",
    ),
    #
    "upgrade / upgrade": Case(ours=(VECTORS,), winner=(VECTORS,), conflict=PROTOCOL),
    "taint whole table": Case(
        reads=((equal("part", 1), ()), (None, ())),
        ours=(add("c", P3),),
        winner=(add("b", P2),),
        conflict=APPENDED,
        partition="[part=2]",
    ),
    "taint whole table + concurrent remove": Case(
        table=FLAT,
        reads=((None, (add("a"),)),),
        ours=(add("b"),),
        winner=(remove("a"),),
        conflict=DELETE_READ,
    ),
    # --- delta-spark's older tests ---------------------------------------------------------
    "append against metadata change": Case(
        table=FLAT,
        ours=(add("a"),),
        winner=(metadata(delta__appendOnly="true"),),
        conflict=METADATA,
        said="delta.appendOnly",
    ),
    "read + append against append": Case(
        table=FLAT, reads=((TRUE, ()),), ours=(add("b"),), winner=(add("a"),), conflict=APPENDED
    ),
    "blind append against any data change": Case(
        table=FLAT, ours=(add("c"),), winner=(remove("a"), add("b"))
    ),
    "read + append + delete against no data change": Case(
        table=FLAT, reads=((TRUE, (add("a"),)),), ours=(remove("a"), add("b")), winner=(BLIND,)
    ),
    "commit on disjoint partitions": Case(
        reads=((equal("part", 3), (add("e", P3),)),),
        ours=(add("c", P2), remove("e", P3)),
        winner=(add("b", P1),),
    ),
    "disjoint partitions, the rival read all": Case(
        reads=((equal("part", 1), (add("a", P1),)),),
        ours=(add("e", P3),),
        winner=(add("c", P2), remove("d", P2)),
    ),
    "partition read was appended to": Case(
        reads=((equal("part", 1), (add("a", P1),)),),
        ours=(add("c", P2),),
        winner=(add("b", P1),),
        conflict=APPENDED,
        partition="[part=1]",
    ),
    "full table scan": Case(
        reads=((TRUE, (add("a", P1),)), (equal("part", 1), ())),
        ours=(add("e", P3),),
        winner=(add("c", P2), remove("d", P2)),
        conflict=APPENDED,
        partition="[part=2]",
    ),
    "nested partitions, read disjoint from the rival's write": Case(
        table=NESTED,
        reads=((both(equal("part", 1), equal("sub", 1)), ()),),
        ours=(add("c", {"part": "2", "sub": "1"}),),
        winner=(add("b", {"part": "1", "sub": "2"}),),
    ),
    "outer partition read, rival in another": Case(
        table=NESTED,
        reads=((equal("part", 1), ()),),
        ours=(add("d", {"part": "3", "sub": "1"}),),
        winner=(add("c", {"part": "2", "sub": "1"}),),
    ),
    "outer partition read, inner file deleted": Case(
        table=NESTED,
        reads=((equal("part", 1), (add("a", {"part": "1", "sub": "1"}),)),),
        ours=(add("d", {"part": "3", "sub": "1"}),),
        winner=(remove("a", {"part": "1", "sub": "1"}),),
        conflict=DELETE_READ,
        partition="[part=1, sub=1]",
    ),
    "range over partitions": Case(
        table=NESTED,
        reads=((either(compare("part", ">=", 1), compare("sub", ">", 1)), ()),),
        ours=(add("d", {"part": "3", "sub": "1"}),),
        winner=(add("b", {"part": "1", "sub": "2"}),),
        conflict=APPENDED,
        partition="[part=1, sub=2]",
    ),
    "removes on the same file, reads elsewhere": Case(
        table=NESTED,
        reads=((equal("part", 2), ()),),
        ours=(remove("b", {"part": "1", "sub": "2"}),),
        winner=(remove("b", {"part": "1", "sub": "2"}),),
        conflict=DELETE_DELETE,
        partition="[part=1, sub=2]",
    ),
    "replaceWhere of a partition that was empty": Case(
        reads=((compare("part", ">=", 2), ()),),
        ours=(add("c", P2),),
        winner=(add("e", P3),),
        conflict=APPENDED,
        partition="[part=3]",
    ),
    "replaceWhere of disjoint partitions": Case(
        reads=((compare("part", ">", 3), ()),),
        ours=(add("g", {"part": "4"}),),
        winner=(add("c", P2),),
    ),
    "mixed partition and data predicate": Case(
        reads=((either(equal("part", 1), compare("id", ">", 5)), (add("a", P1),)),),
        ours=(remove("a", P1),),
        winner=(add("c", P2),),
        conflict=APPENDED,
        partition="[part=2]",
    ),
    "two replaceWhere changing partitions": Case(
        reads=((either(equal("part", 3), equal("part", 2)), (add("c", P2), add("e", P3))),),
        ours=(remove("c", P2), remove("e", P3), add("d", P2)),
        winner=(remove("a", P1), remove("e", P3), add("b", P1)),
        conflict=DELETE_READ,
        partition="[part=3]",
    ),
    "a compaction may follow appends": Case(
        reads=((TRUE, (add("a", P1), add("b", P1))),),
        ours=(
            remove("a", P1, data_change=False),
            remove("b", P1, data_change=False),
            unchanged(add("c", P1)),
        ),
        winner=(add("e", P3),),
    ),
    "a compaction may not follow a delete of its files": Case(
        reads=((TRUE, (add("a", P1), add("b", P1))),),
        ours=(remove("a", P1, data_change=False), unchanged(add("c", P1))),
        winner=(remove("a", P1),),
        conflict=DELETE_READ,
        partition="[part=1]",
    ),
    # --- more precise than delta-spark ----------------------------------------------------------
    "statistics tell the rows apart": Case(
        table=FLAT,
        reads=((compare("id", ">", 100), ()),),
        ours=(add("b"), remove("x")),
        winner=(add("a", ids=(1, 100)),),
    ),
    "statistics do not tell the rows apart": Case(
        table=FLAT,
        reads=((compare("id", ">", 100), ()),),
        ours=(add("b"), remove("x")),
        winner=(add("a", ids=(1, 101)),),
        conflict=APPENDED,
    ),
    "a file without statistics may hold anything": Case(
        table=FLAT,
        reads=((compare("id", ">", 100), ()),),
        ours=(add("b"), remove("x")),
        winner=(replace(add("a"), stats=None),),
        conflict=APPENDED,
    ),
    "OPTIMIZE of a file that was only looked at": Case(
        reads=((equal("part", 1), (add("a", P1), add("b", P1))),),
        ours=(remove("a", P1), add("c", P1)),
        winner=(remove("b", P1, data_change=False), unchanged(add("d", P1)), OPTIMIZE),
    ),
    "OPTIMIZE of a file that we rewrite": Case(
        reads=((equal("part", 1), (add("a", P1), add("b", P1))),),
        ours=(remove("a", P1), add("c", P1)),
        winner=(remove("a", P1, data_change=False), unchanged(add("d", P1)), OPTIMIZE),
        conflict=DELETE_DELETE,
        partition="[part=1]",
    ),
    # --- stricter than delta-spark ---------------------------------------------------------
    "a file committed again must still be there": Case(
        ours=(unchanged(add("a", P1)),),
        winner=(remove("a", P1),),
        conflict=DELETE_READ,
        partition="[part=1]",
        level=IsolationLevel.SERIALIZABLE,
    ),
    "a file given a vector must not have been compacted": Case(
        ours=(
            replace(add("a", P1), deletion_vector=VECTOR),
            remove("a", P1),
        ),
        winner=(remove("a", P1, data_change=False), unchanged(add("d", P1))),
        conflict=DELETE_DELETE,
        partition="[part=1]",
    ),
    "spellings of one path": Case(
        table=FLAT, ours=(remove("d/x%20y"),), winner=(remove("d//x y"),), conflict=DELETE_DELETE
    ),
    "a null partition is named": Case(
        ours=(remove("a", {"part": None}),),
        winner=(remove("a"),),
        conflict=DELETE_DELETE,
        partition="[part=null]",
    ),
    # --- isolation levels --------------------------------------------------------------------
    "write-serializable lets blind appends pass": Case(
        table=FLAT,
        reads=((TRUE, ()),),
        ours=(add("b"), remove("x")),
        winner=(add("a"), BLIND),
        level=IsolationLevel.WRITE_SERIALIZABLE,
    ),
    "write-serializable checks other appends": Case(
        table=FLAT,
        reads=((TRUE, ()),),
        ours=(add("b"), remove("x")),
        winner=(add("a"), OPTIMIZE),
        level=IsolationLevel.WRITE_SERIALIZABLE,
        conflict=APPENDED,
    ),
    "write-serializable checks all appends when the metadata changes": Case(
        table=FLAT,
        reads=((TRUE, ()),),
        ours=(metadata(),),
        winner=(add("a"), BLIND),
        level=IsolationLevel.WRITE_SERIALIZABLE,
        conflict=APPENDED,
    ),
    # --- domains -----------------------------------------------------------------------------
    "different domains": Case(
        ours=(DomainMetadata(domain="a", configuration=""),),
        winner=(DomainMetadata(domain="b", configuration=""),),
    ),
    "the same domain": Case(
        ours=(DomainMetadata(domain="a", configuration=""),),
        winner=(DomainMetadata(domain="a", configuration="", removed=True),),
        conflict=ConflictKind.DOMAIN_CHANGED,
        said="a",
    ),
    "the row id counter is merged": Case(ours=(ROW_ID_DOMAIN,), winner=(ROW_ID_DOMAIN,)),
    # --- protocol ----------------------------------------------------------------------------
    "a feature that asks nothing of old rows": Case(ours=(remove("a", P1),), winner=(VECTORS,)),
    "a feature that constrains rows": Case(
        ours=(add("a", P1),),
        winner=(feature_protocol("checkConstraints"),),
        conflict=PROTOCOL,
        said="checkConstraints",
    ),
    "a legacy version that implies one": Case(
        ours=(add("a", P1),),
        winner=(replace(PLAIN, min_writer_version=3),),
        conflict=PROTOCOL,
        said="checkConstraints",
    ),
    "a feature nobody knows": Case(
        ours=(add("a", P1),), winner=(feature_protocol("shiny"),), conflict=PROTOCOL, said="shiny"
    ),
    "a dropped feature": Case(
        table=config(VECTORS),
        ours=(add("a"),),
        winner=(feature_protocol(),),
        conflict=PROTOCOL,
        said="dropped the table feature(s) deletionVectors",
    ),
    # --- metadata ----------------------------------------------------------------------------
    "metadata / metadata": Case(
        table=FLAT, ours=(metadata(),), winner=(metadata(),), conflict=METADATA, said="too"
    ),
    "identity counters": Case(
        table=FLAT,
        ours=(add("a"),),
        winner=(
            metadata(schema=WITH_COLUMN),
            CommitInfo(tags={"delta.identity.schemaUpdate": "true"}),
        ),
    ),
    "deletion vectors switched on": Case(
        table=config(VECTORS),
        ours=(add("a"), remove("b")),
        winner=(metadata(delta__enableDeletionVectors="true"),),
    ),
    "deletion vectors switched on without the feature": Case(
        table=FLAT,
        ours=(add("a"),),
        winner=(metadata(delta__enableDeletionVectors="true"),),
        conflict=METADATA,
        said="delta.enableDeletionVectors",
    ),
    "deletion vectors switched off": Case(
        table=config(VECTORS, delta__enableDeletionVectors="true"),
        ours=(add("a"),),
        winner=(metadata(delta__enableDeletionVectors="false"),),
        conflict=METADATA,
    ),
    "a property removed": Case(
        table=config(VECTORS, delta__enableDeletionVectors="true"),
        ours=(add("a"),),
        winner=(metadata(),),
        conflict=METADATA,
    ),
    "feature and property in one commit": Case(
        table=FLAT,
        ours=(add("a"),),
        winner=(VECTORS, metadata(delta__enableDeletionVectors="true")),
    ),
    "in-commit timestamps switched on": Case(
        table=FLAT,
        ours=(add("a"),),
        winner=(
            feature_protocol("inCommitTimestamp"),
            metadata(
                delta__enableInCommitTimestamps="true",
                delta__inCommitTimestampEnablementVersion="1",
                delta__inCommitTimestampEnablementTimestamp="5",
            ),
        ),
    ),
    "row tracking switched on": Case(
        table=FLAT,
        ours=(add("a"),),
        winner=(
            feature_protocol("rowTracking", "domainMetadata"),
            metadata(
                delta__enableRowTracking="true",
                delta__rowTracking__materializedRowIdColumnName="x",
                delta__rowTracking__materializedRowCommitVersionColumnName="y",
            ),
        ),
    ),
    "v2 checkpoints switched on": Case(
        table=FLAT,
        ours=(add("a"),),
        winner=(
            feature_protocol(readers=("v2Checkpoint",)),
            metadata(delta__checkpointPolicy="v2"),
        ),
    ),
    "column mapping by name switched on": Case(
        table=FLAT,
        ours=(add("a"),),
        winner=(
            feature_protocol(readers=("columnMapping",)),
            metadata(schema=MAPPED, **NAME_MAPPING),  # type: ignore[arg-type]
        ),
    ),
    "column mapping and a new column": Case(
        table=FLAT,
        ours=(add("a"),),
        winner=(
            feature_protocol(readers=("columnMapping",)),
            metadata(schema=WITH_COLUMN, **NAME_MAPPING),  # type: ignore[arg-type]
        ),
        conflict=METADATA,
        said="schema",
    ),
    "another physical name": Case(
        table=config(feature_protocol(readers=("columnMapping",)), schema=MAPPED, **NAME_MAPPING),
        ours=(add("a"),),
        winner=(metadata(schema=SCHEMA, **NAME_MAPPING),),  # type: ignore[arg-type]
        conflict=METADATA,
        said="schema",
    ),
    "other partition columns": Case(
        table=FLAT,
        ours=(add("a"),),
        winner=(metadata(partitioned_by=("part",)),),
        conflict=METADATA,
        said="partition columns",
    ),
    "a catalog's id": Case(
        table=FLAT,
        ours=(add("a"),),
        winner=(metadata(io__unitycatalog__tableId="u"),),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_conflict(name: str) -> None:
    case = CASES[name]
    found = case.run()
    if case.conflict is None:
        assert found == ()
    else:
        assert [c.kind for c in found] == [case.conflict] * len(found) != []  # type: ignore[attr-defined]
        assert found[0].partition == case.partition  # type: ignore[attr-defined]
        assert case.said in found[0].detail  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ((), IsolationLevel.SNAPSHOT),
        ((unchanged(add("a")), remove("b", data_change=False)), IsolationLevel.SNAPSHOT),
        ((ROW_ID_DOMAIN,), IsolationLevel.SNAPSHOT),
        ((add("a"),), IsolationLevel.SERIALIZABLE),
        ((remove("a"),), IsolationLevel.SERIALIZABLE),
        ((metadata(),), IsolationLevel.SERIALIZABLE),
        ((SetTransaction(app_id="a", version=1),), IsolationLevel.SERIALIZABLE),
        (
            (AddChangeFile(path="_change_data/c", partition_values={}, size_bytes=1),),
            IsolationLevel.SNAPSHOT,
        ),
    ],
)
def test_level_chosen(actions: tuple[Action, ...], expected: IsolationLevel) -> None:
    assert isolation_level(actions, metadata()) is expected


def test_a_tables_own_level_is_kept() -> None:
    table = metadata(delta__isolationLevel="writeSerializable")  # in any case
    assert isolation_level((), table) is IsolationLevel.WRITE_SERIALIZABLE
    assert isolation_level((add("a"),), table) is IsolationLevel.WRITE_SERIALIZABLE
