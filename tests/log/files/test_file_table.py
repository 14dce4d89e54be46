from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from puredelta.errors import CorruptTableError
from puredelta.log.files import file_table
from puredelta.log.files.file_table import (
    FILE_SCHEMA,
    FILE_WIRE_NAMES,
    TOMBSTONE_SCHEMA,
    TOMBSTONE_WIRE_NAMES,
    FileTable,
    file_keys,
    tombstone_table,
)
from puredelta.protocol.actions.actions import Add, DeletionVectorDescriptor, FileActionKey, Remove
from puredelta.protocol.schema.types import INTEGER
from puredelta.protocol.table.partitioning import PartitionColumn, Partitioning


def _add(path: str, **more: object) -> Add:
    values = {"partition_values": {}, "size_bytes": 1, "modified_ms": 2, "data_change": True}
    return Add(path=path, **{**values, **more})


VECTOR = DeletionVectorDescriptor(
    storage_type="u", path_or_inline="abc", offset=7, size_bytes=40, cardinality=3
)
FULL = _add(
    "p=a%20b/1.parquet",
    partition_values={"p": "a b", "q": None, "r": ""},
    stats='{"numRecords":10}',
    tags={"t": "1"},
    deletion_vector=VECTOR,
    base_row_id=100,
    default_row_commit_version=4,
    clustering_provider="liquid",
)


def test_actions_survive_the_round_trip() -> None:
    adds = [FULL, _add("2.parquet"), _add("3", tags={}), _add("4", stats='{"numRecords":5}')]
    table = FileTable.of(adds)
    assert table.rows.schema == FILE_SCHEMA
    assert list(table.adds()) == adds
    assert len(table) == 4
    assert table.total_size_bytes == 4
    assert list(table.take([3, 0]).adds()) == [adds[3], adds[0]]
    mask = pa.array([True, None, False, True])
    assert list(table.select(mask).adds()) == [adds[0], adds[3]]


def test_an_empty_table() -> None:
    table = FileTable.of([])
    assert (len(table), table.total_size_bytes, table.num_records()) == (0, 0, 0)
    assert list(table.adds()) == []
    assert file_keys(table.rows).to_pylist() == []


def test_a_tombstone_keeps_what_a_checkpoint_needs() -> None:
    removes = [
        Remove(
            path="a",
            deleted_ms=5,
            data_change=True,
            extended_file_metadata=True,
            partition_values={"p": None},
            size_bytes=3,
            deletion_vector=VECTOR,
        ),
        Remove(path="b", deleted_ms=None, data_change=False),
    ]
    full, bare = tombstone_table(removes).to_pylist()
    assert (full["path"], full["deleted_ms"], full["size_bytes"]) == ("a", 5, 3)
    assert full["partition_values"] == [("p", None)]
    assert full["deletion_vector"]["path_or_inline"] == VECTOR.path_or_inline
    assert (bare["path"], bare["deleted_ms"], bare["deletion_vector"]) == ("b", None, None)


def test_every_column_has_a_wire_name() -> None:
    assert list(FILE_WIRE_NAMES) == FILE_SCHEMA.names
    assert list(TOMBSTONE_WIRE_NAMES) == TOMBSTONE_SCHEMA.names


@pytest.mark.parametrize(
    ("stats", "count"),
    [
        ('{"numRecords":12}', 12),
        (' { "numRecords" : 12 , "minValues":{}}', 12),
        ('{"minValues":{"numRecords":1},"numRecords":12}', 12),
        ('{"minValues":{"numRecords":1}}', None),
        ('{"numRecords":12.5}', None),
        ('{"numRecords":"12"}', None),
        ('{"numRecords":true}', None),
        ("{", None),
        ("[]", None),
        (None, None),
    ],
)
def test_record_counts(stats: str | None, count: int | None) -> None:
    table = FileTable.of([_add("a", stats=stats), _add("b", stats='{"numRecords":1}')])
    assert table.record_counts().to_pylist() == [count, 1]
    assert table.num_records() == (None if count is None else count + 1)


def test_num_records_leaves_out_deleted_rows() -> None:
    assert FileTable.of([FULL, _add("b", stats='{"numRecords":1}')]).num_records() == 8


@pytest.mark.parametrize(
    ("column", "value"), [("path", "half \ud83d"), ("size_bytes", 2**63), ("tags", {"a": "\udc00"})]
)
def test_values_no_column_can_hold_are_a_damaged_log(column: str, value: object) -> None:
    with pytest.raises(CorruptTableError, match=column):
        FileTable.of([replace(FULL, **{column: value})])


PATHS = st.one_of(
    st.text(max_size=8),
    st.text(alphabet="/.a%2F0:#+ é", max_size=12),
    st.sampled_from(["", ".", "..", "/", "//a", "a/", "a//b", "./a", "file:/a", "%C3%A9", "%ff"]),
)
VECTORS = st.one_of(
    st.none(),
    st.builds(
        DeletionVectorDescriptor,
        storage_type=st.sampled_from("uip"),
        path_or_inline=st.text(alphabet="ab@1", max_size=3),
        offset=st.one_of(st.none(), st.integers(0, 99)),
        size_bytes=st.just(1),
        cardinality=st.just(1),
    ),
)


NAMED = st.tuples(PATHS, st.sampled_from(["/a", "/b-0.parquet", "/é", "a", "/..a"])).map("".join)


@given(
    st.one_of(
        st.lists(st.tuples(PATHS, VECTORS), max_size=6),
        st.lists(st.tuples(NAMED, VECTORS), min_size=1, max_size=6),
    )
)
def test_keys_by_column_are_keys_by_action(
    files: list[tuple[str, DeletionVectorDescriptor | None]],
) -> None:
    adds = [_add(path, deletion_vector=dv) for path, dv in files]
    encoded = [FileActionKey.of(add).encoded for add in adds]
    assert file_keys(FileTable.of(adds).rows).to_pylist() == encoded


@given(st.dictionaries(st.text(), st.one_of(st.none(), st.text())))
def test_partition_values_keep_null_and_empty_apart(values: dict[str, str | None]) -> None:
    stats = json.dumps({"numRecords": 1})
    (back,) = FileTable.of([_add("a", partition_values=values, stats=stats)]).adds()
    assert back.partition_values == values


@pytest.mark.parametrize("places", [[0, 2, 3, 6], [6], [], [3, 0], [2, 2], list(range(7))])
@pytest.mark.parametrize("sizes", [[7], [3, 0, 3, 1]])
def test_files_are_picked_in_order_from_any_chunks(sizes: list[int], places: list[int]) -> None:
    parts = [
        FileTable.of(
            _add(f"{part}-{n}", size_bytes=n, stats=f'{{"numRecords":{n}}}') for n in range(size)
        ).rows
        for part, size in enumerate(sizes)
    ]
    files = FileTable(pa.concat_tables(parts))
    adds = list(files.adds())
    picked = files.take(places)
    assert list(picked.adds()) == [adds[place] for place in places]
    assert picked.record_counts().to_pylist() == [adds[n].size_bytes for n in places]


def test_files_are_picked_in_any_order_among_statistics_of_more_than_2_gb(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stats = '{"numRecords":7' + " " * (1 << 26) + "}"
    one = FileTable.of([_add("x", stats=stats)]).rows
    files = FileTable(pa.concat_tables([one] * 34))  # one text, which all rows share
    assert len(files.take([33, 0])) == 2
    monkeypatch.setattr(file_table, "_TAKEN", 2)
    adds = list(files.take([33, 0, 5]).adds())
    assert [len(add.stats or "") for add in adds] == [len(stats)] * 3


def test_partitions_are_counted_by_all_of_their_values() -> None:
    values = [("1", None), ("01", None), (None, "1"), ("", "1"), ("1", ""), ("11", None)]
    files = FileTable.of(
        _add(str(n), partition_values={"p": p, "q": q}) for n, (p, q) in enumerate(values)
    )
    p, q = (
        PartitionColumn(physical_name=name, type=INTEGER, is_padded=False, time_zone=None)
        for name in ("p", "q")
    )
    assert files.num_partitions(Partitioning(columns=(p, q))) == 3
    assert files.num_partitions(Partitioning(columns=(q,))) == 2
    assert files.num_partitions(Partitioning(columns=())) == 0
    assert FileTable.of([]).num_partitions(Partitioning(columns=(p,))) == 0
