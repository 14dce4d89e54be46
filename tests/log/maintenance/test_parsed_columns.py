"""``stats_parsed`` and ``partitionValues_parsed`` of checkpoints (X-34)."""

from __future__ import annotations

import datetime as dt
import io
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from puredelta.log.files.stats_columns import read_stats_columns
from puredelta.log.maintenance.checkpoint_write import (
    StatisticsLayout,
    parsed_partition_values,
    parsed_statistics,
    write_checkpoint,
)
from puredelta.log.replay.action_columns import stats_text
from puredelta.log.replay.checkpoint_read import read_checkpoint
from puredelta.log.replay.segment import CheckpointFiles
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.log_paths import classic_checkpoint_name, commit_name, log_path
from puredelta.protocol.schema.types import (
    BINARY,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DecimalType,
    StructField,
    StructType,
)
from puredelta.store.local import LocalStore
from tests.faults import MemoryStore
from tests.log.maintenance.test_checkpoint_write import NOW_MS, assert_same_state, full_table
from tests.log.tables import add, config, create_table, feature_protocol

MIXED = StructType(
    (
        StructField("l", LONG),
        StructField("t", BYTE),
        StructField("f", FLOAT),
        StructField("d", DOUBLE),
        StructField("s", STRING),
        StructField("day", DATE),
        StructField("at", TIMESTAMP),
        StructField("clock", TIMESTAMP_NTZ),
        StructField("n", DecimalType(20, 3)),
        StructField("b", BINARY),
        StructField("in", StructType((StructField("a", LONG), StructField("b.c", STRING)))),
        StructField("many", ArrayType(LONG, contains_null=True)),
    )
)
BOUNDS: dict[str, Any] = {
    "l": 2**62,
    "t": 3,
    "f": 0.1,
    "d": -1.5,
    "s": 'x"\\\n',
    "day": "2020-01-31",
    "at": "2020-01-01T10:11:12.123Z",
    "clock": "2020-01-01T10:11:12.123",
    "n": 12.345,
    "in": {"a": 1, "b.c": "q"},
}
COUNTS = {**dict.fromkeys(MIXED.names, 0), "in": {"a": 0, "b.c": 1}}
UTC = dt.timezone.utc


def mixed(**properties: str) -> Any:
    return config(schema=MIXED, **properties)


def text(**statistics: Any) -> str:
    return json.dumps({"numRecords": 4, **statistics})


def parsed(*texts: str | None, **properties: str) -> list[Any]:
    return parsed_statistics(pa.array(texts, pa.string()), mixed(**properties)).to_pylist()


def test_statistics_have_the_types_of_their_columns() -> None:
    (row,) = parsed(text(minValues=BOUNDS, maxValues=BOUNDS, nullCount=COUNTS))
    assert row["numRecords"] == 4
    assert row["minValues"] == row["maxValues"]
    assert row["minValues"] == {
        "l": 2**62,
        "t": 3,
        "f": pytest.approx(0.1),
        "d": -1.5,
        "s": 'x"\\\n',
        "day": dt.date(2020, 1, 31),
        "at": dt.datetime(2020, 1, 1, 10, 11, 12, 123000, tzinfo=UTC),
        "clock": dt.datetime(2020, 1, 1, 10, 11, 12, 123000),  # noqa: DTZ001 - timestamp_ntz
        "n": Decimal("12.345"),
        "in": {"a": 1, "b.c": "q"},
    }
    assert row["nullCount"] == COUNTS


@pytest.mark.parametrize(
    "statistics",
    [
        {"minValues": {"t": 300}},
        {"maxValues": {"n": 10**30}},
        {"minValues": {"at": "1950-01-01T00:00:00.000+01:00"}},
        {"minValues": {"day": "2020-01-31"}, "maxValues": {"t": 1000}},
    ],
    ids=["byte", "decimal", "offset of seconds", "one of two"],
)
def test_a_file_whose_bounds_do_not_fit_keeps_its_text_only(statistics: Any) -> None:
    good = text(minValues={"l": 1})
    assert [row is None for row in parsed(good, text(**statistics))] == [False, True]


def test_files_without_statistics_have_none() -> None:
    rows = parsed(None, "{}", "no JSON", '{"numRecords":2}')
    assert rows[0] is None
    assert rows[3]["numRecords"] == 2
    assert rows[3]["minValues"] is None
    # Nothing is said of these, and nothing must be made up.
    assert {str(row and row["numRecords"]) for row in rows[1:3]} <= {"None"}


def test_tight_bounds_are_kept_where_files_may_have_vectors() -> None:
    texts = [text(tightBounds=False), text(tightBounds=True), text()]
    protocol = feature_protocol(readers=("deletionVectors",))
    rows = parsed_statistics(pa.array(texts), config(protocol, schema=MIXED)).to_pylist()
    assert [row["tightBounds"] for row in rows] == [False, True, None]
    assert "tightBounds" not in parsed(*texts)[0]
    tricky = text(minValues={"s": '"tightBounds":true'})
    (row,) = parsed_statistics(pa.array([tricky]), config(protocol, schema=MIXED)).to_pylist()
    assert row["tightBounds"] is None


WHOLE = st.integers(-(2**70), 2**70)
STRANGE = st.one_of(
    st.none(), WHOLE, st.floats(), st.text(max_size=5), st.booleans(), st.just({}), st.just([])
)
SAID = st.dictionaries(st.sampled_from(MIXED.names), STRANGE, max_size=6)


INT96 = pa.struct(
    [("numRecords", pa.int64()), ("minValues", pa.struct([("at", pa.timestamp("us"))]))]
)


def test_timestamps_that_are_int96_are_instants() -> None:
    """So delta-spark writes them; read as clock times they would skip nothing."""
    at = dt.datetime(2020, 1, 1, 10, 11, 12, 123456)  # noqa: DTZ001 - INT96 has no zone
    row = {"path": "a", "stats_parsed": {"numRecords": 1, "minValues": {"at": at}}}
    adds = pa.array([row], pa.struct([("path", pa.string()), ("stats_parsed", INT96)]))
    sink = io.BytesIO()
    pq.write_table(pa.table({"add": adds}), sink, use_deprecated_int96_timestamps=True)
    store = MemoryStore()
    path = log_path(classic_checkpoint_name(2))
    store.put(path, sink.getvalue())
    (file,) = store.list_from("_delta_log")
    state = read_checkpoint(store, CheckpointFiles(version=2, files=(file,))).state
    (stats,) = state.files.rows["stats"].to_pylist()
    assert json.loads(stats)["minValues"] == {"at": "2020-01-01T10:11:12.123Z"}


@given(st.lists(st.tuples(SAID, SAID, SAID), min_size=1, max_size=4))
def test_whatever_is_written_says_the_same_as_the_text(rows: list[Any]) -> None:
    """A file whose statistics are odd has no typed ones; the others read back as they were."""
    texts = pa.array([text(minValues=a, maxValues=b, nullCount=c) for a, b, c in rows])
    typed = parsed_statistics(texts, mixed())
    leaves = {(f.name,): f.type for f in MIXED.fields if f.name != "in"}
    kept = typed.is_valid()
    said = read_stats_columns(texts.filter(kept), leaves)
    again = read_stats_columns(stats_text(typed.filter(kept)), leaves)
    assert said.num_records.equals(again.num_records)
    for path, column in said.leaves.items():
        assert column.null_count.equals(again.leaves[path].null_count)
        if column.low is not None:
            assert column.low.equals(again.leaves[path].low)
            assert column.high.equals(again.leaves[path].high)


# --- partition values -----------------------------------------------------------------------

PLACES = StructType((StructField("id", LONG), StructField("p", DATE), StructField("at", TIMESTAMP)))


def values(*rows: dict[str, str | None]) -> pa.ChunkedArray:
    kind = pa.map_(pa.string(), pa.string())
    return pa.chunked_array([pa.array([list(row.items()) for row in rows], kind)])


def test_partition_values_have_the_types_of_their_columns() -> None:
    places = config(schema=PLACES, partitioned_by=("p", "at"))
    column = parsed_partition_values(
        values(
            {"p": "2020-01-31", "at": "2020-01-01T10:11:12.123456Z"},
            {"p": None, "at": ""},
            {},
        ),
        places,
    )
    assert column is not None
    none = {"p": None, "at": None}
    at = dt.datetime(2020, 1, 1, 10, 11, 12, 123456, tzinfo=UTC)
    assert column.to_pylist() == [{"p": dt.date(2020, 1, 31), "at": at}, none, none]


@pytest.mark.parametrize("at", ["2020-01-01 10:11:12", "no timestamp"])
def test_a_value_without_a_certain_type_leaves_all_out(at: str) -> None:
    """A NULL there would put rows of the file into another partition."""
    places = config(schema=PLACES, partitioned_by=("at",))
    assert (
        parsed_partition_values(values({"at": "2020-01-01T00:00:00Z"}, {"at": at}), places) is None
    )


def test_a_table_without_partitions_has_no_values() -> None:
    assert parsed_partition_values(values({}), config(schema=PLACES)) is None


# --- checkpoints ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("properties", "layout"),
    [
        ({}, (True, False)),
        ({"writeStatsAsStruct": "true"}, (True, True)),
        ({"writeStatsAsStruct": "false"}, (True, False)),
        ({"writeStatsAsJson": "false"}, (False, True)),
        ({"writeStatsAsJson": "true"}, (True, False)),
        ({"writeStatsAsJson": "false", "writeStatsAsStruct": "true"}, (False, True)),
        ({"writeStatsAsJson": "false", "writeStatsAsStruct": "false"}, (True, False)),
    ],
)
def test_the_properties_of_the_table_decide(
    properties: dict[str, str], layout: tuple[bool, bool]
) -> None:
    asked = mixed(**{f"delta__checkpoint__{key}": value for key, value in properties.items()})
    found = StatisticsLayout.of(asked)
    assert (found.as_json, found.as_struct) == layout


STRUCT_ONLY = {
    "delta__checkpoint__writeStatsAsJson": "false",
    "delta__checkpoint__writeStatsAsStruct": "true",
}


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_a_checkpoint_with_typed_statistics_alone_is_the_same_table(policy: str) -> None:
    store = MemoryStore()
    snapshot = full_table(store, policy, **STRUCT_ONLY).snapshot()
    write_checkpoint(store, snapshot, now_ms=NOW_MS)
    for version in range(3):
        store.delete(log_path(commit_name(version)))
    again = TableLog(store).snapshot()
    assert again.last_checkpoint_version == 2
    same = {name: again.files.rows[name] for name in ("path", "size_bytes")}
    assert same == {name: snapshot.files.rows[name] for name in ("path", "size_bytes")}
    texts = [list(map(json.loads, s.files.rows["stats"].to_pylist())) for s in (snapshot, again)]
    assert texts[0] == texts[1]


def _adds(store: MemoryStore) -> list[dict[str, Any]]:
    content = store.files[log_path(classic_checkpoint_name(2))]
    rows = pq.read_table(io.BytesIO(content), columns=["add"]).to_pylist()
    return [row["add"] for row in rows if row["add"]]


def test_text_goes_only_where_the_columns_say_the_same() -> None:
    store = MemoryStore()
    snapshot = full_table(store, **STRUCT_ONLY).snapshot()
    write_checkpoint(store, snapshot, now_ms=NOW_MS)
    adds = _adds(store)
    assert all((a["stats"] is None) is not (a["stats_parsed"] is None) for a in adds)
    assert [a["partitionValues_parsed"] for a in adds] == [{"part": None}, {"part": 1}]
    assert [dict(a["partitionValues"]) for a in adds] == [{"part": None}, {"part": "1"}]


def test_other_readers_see_the_same_files(tmp_path: Any) -> None:
    deltalake = pytest.importorskip("deltalake")
    store = LocalStore(tmp_path)
    log = create_table(
        store,
        add("a", {"part": "7"}, ids=(1, 5)),
        add("b", {"part": None}, ids=(6, 9)),
        partitioned_by=("part",),
        delta__checkpoint__writeStatsAsStruct="true",
    )
    write_checkpoint(store, log.snapshot(), now_ms=NOW_MS)
    store.delete(log_path(commit_name(0)))
    table = deltalake.DeltaTable(tmp_path)
    found = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    assert {
        (row["path"], row["partition.part"], row["min.id"], row["max.id"]) for row in found
    } == {
        ("a", 7, 1, 5),
        ("b", None, 6, 9),
    }
    assert_same_state(log.snapshot(), TableLog(store).snapshot())
