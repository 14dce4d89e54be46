"""Recipes beside naive models, on random streams with late, repeated and deleted keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import puredelta
from puredelta.recipes.plan import ChangeResult
from tests.recipes import streams as model
from tests.recipes.streams import Event, Key, Streams, Values, Version

STREAMS = 30
BATCHES = 2
KEYS = ["stream", "k"]
Apply = Callable[[DataFrame], ChangeResult]


@pytest.fixture(scope="module")
def sample() -> Streams:
    return model.random_streams(7, streams=range(STREAMS), batches=BATCHES)


def frame(spark: SparkSession, events: Iterable[Event]) -> DataFrame:
    return spark.createDataFrame(list(events), model.SCHEMA)


def replay(spark: SparkSession, given: Streams, apply: Apply) -> None:
    """Apply the batches, then all events again, which must change nothing."""
    for events in given.batches:
        apply(frame(spark, events))
    again = apply(frame(spark, set(given.upto(len(given.batches)))))
    assert again.version is None
    assert again.num_affected_rows == 0


def rows(spark: SparkSession, table: str, where: str) -> dict[Key, Values]:
    found = puredelta.read(spark, table).where(where).collect()
    assert len(found) == len({(row.stream, row.k) for row in found})
    return {(row.stream, row.k): (row.v, row.w) for row in found}


def history(spark: SparkSession, table: str, start: str, end: str) -> set[Version]:
    found = puredelta.read(spark, table).where("__ROLE IS NULL").collect()
    made = [Version((r.stream, r.k), (r.v, r.w), r[start], r[end]) for r in found]
    assert len(made) == len(set(made))
    return set(made)


def check_apply_changes(spark: SparkSession, table: str, given: Streams, **options: Any) -> None:
    def apply(source: DataFrame) -> ChangeResult:
        return puredelta.apply_changes(
            table,
            source,
            KEYS,
            "seq",
            apply_as_deletes="op = 'D'",
            except_column_list=["op", "seq"],
            create=True,
            **options,
        )

    replay(spark, given, apply)
    events = model.after_truncates(given.upto(len(given.batches)))
    null_keeps = options.get("ignore_null_updates", False)
    if options.get("stored_as_scd_type") == 2:
        tracks_w = "track_history_column_list" not in options
        expected = model.versions(events, tracks_w=tracks_w, null_keeps=null_keeps)
        assert history(spark, table, "__START_AT", "__END_AT") == expected
    else:
        live = rows(spark, table, "NOT __DELETED")
        assert live == model.newest(events, null_keeps=null_keeps)


def check_scd2(spark: SparkSession, table: str, given: Streams) -> None:
    def apply(source: DataFrame) -> ChangeResult:
        return puredelta.scd2(
            table,
            source,
            KEYS,
            "seq",
            tracked_columns="v",
            except_columns="op",
            delete_when="op = 'D'",
            create=True,
        )

    replay(spark, given, apply)
    found = history(spark, table, "valid_from", "valid_to")
    assert found == model.versions(given.upto(len(given.batches)), tracks_w=False)
    current = rows(spark, table, "is_current")
    assert current == {v.key: v.values for v in found if v.end is None}


def check_upsert(spark: SparkSession, table: str, given: Streams) -> None:
    for events in given.batches:
        puredelta.upsert(
            table,
            frame(spark, events),
            KEYS,
            order_by="seq",
            delete_when="op = 'D'",
            create=True,
        )
    found = {(r.stream, r.k): ((r.v, r.w), r.seq) for r in puredelta.read(spark, table).collect()}
    assert found == model.upserted(given.batches)


def check_sync(spark: SparkSession, table: str, given: Streams, limit: int) -> None:
    """Every batch is a snapshot of the lower half of the streams."""
    first = model.newest(given.upto(0))
    outside = {key: values for key, values in first.items() if key[0] >= limit}
    puredelta.upsert(table, snapshot(spark, first), KEYS, create=True)
    for n in range(len(given.batches)):
        state = model.newest(given.upto(n))
        inside = {key: values for key, values in state.items() if key[0] < limit}
        puredelta.sync(table, snapshot(spark, inside), KEYS, scope=f"stream < {limit}")
        assert rows(spark, table, "true") == {**outside, **inside}
        assert (
            puredelta.sync(table, snapshot(spark, inside), KEYS, scope=f"stream < {limit}").version
            is None
        )


def snapshot(spark: SparkSession, state: dict[Key, Values]) -> DataFrame:
    return spark.createDataFrame(
        [(*key, *values) for key, values in state.items()], "stream INT, k INT, v STRING, w INT"
    )


@pytest.mark.thorough
def test_scd2(spark: SparkSession, tmp_path: Path, sample: Streams) -> None:
    check_scd2(spark, str(tmp_path / "t"), sample)


@pytest.mark.upserts
def test_apply_changes(spark: SparkSession, tmp_path: Path, sample: Streams) -> None:
    given = model.with_truncates(sample, 7)
    check_apply_changes(spark, str(tmp_path / "t"), given, apply_as_truncates="op = 'T'")


@pytest.mark.thorough
def test_apply_changes_that_ignores_nulls(
    spark: SparkSession, tmp_path: Path, sample: Streams
) -> None:
    given = model.with_truncates(sample, 7)
    options = {"ignore_null_updates": True, "apply_as_truncates": "op = 'T'"}
    check_apply_changes(spark, str(tmp_path / "t"), given, **options)


def test_apply_changes_of_type_2(spark: SparkSession, tmp_path: Path, sample: Streams) -> None:
    check_apply_changes(
        spark,
        str(tmp_path / "t"),
        sample,
        stored_as_scd_type=2,
        ignore_null_updates=True,
        track_history_column_list="v",
    )


@pytest.mark.upserts
def test_upsert(spark: SparkSession, tmp_path: Path, sample: Streams) -> None:
    check_upsert(spark, str(tmp_path / "t"), sample)


@pytest.mark.upserts
def test_sync(spark: SparkSession, tmp_path: Path, sample: Streams) -> None:
    short = Streams(batches=sample.batches)
    check_sync(spark, str(tmp_path / "t"), short, STREAMS // 2)


@pytest.mark.upserts
@pytest.mark.parametrize("seed", [1, 2])
def test_two_hundred_streams(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    given = model.random_streams(seed, streams=range(200), batches=5)
    check_upsert(spark, str(tmp_path / "upsert"), given)
    check_sync(spark, str(tmp_path / "sync"), given, 100)
    check_scd2(spark, str(tmp_path / "scd2"), given)
    truncated = model.with_truncates(given, seed)
    one, two = {"apply_as_truncates": "op = 'T'"}, {"stored_as_scd_type": 2}
    every: list[tuple[Streams, dict[str, Any]]] = [
        (truncated, one),
        (truncated, {**one, "ignore_null_updates": True}),
        (given, two),
        (given, {**two, "track_history_column_list": "v"}),
        (given, {**two, "ignore_null_updates": True}),
        (given, {**two, "ignore_null_updates": True, "track_history_column_list": "v"}),
    ]
    for n, (events, options) in enumerate(every):
        check_apply_changes(spark, str(tmp_path / f"changes{n}"), events, **options)
