"""One write job: settings, what is left behind, and rows staged for a command."""

from __future__ import annotations

import contextlib
import datetime as dt
import threading
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import InheritableThread
from pyspark.sql import functions as F

from puredelta.errors import DeltaError, ErrorCode, InvalidRequestError
from puredelta.log.maintenance.garbage import STAGING_PREFIX
from puredelta.protocol.table.stats import LeafStatistics
from puredelta.spark.values.row_errors import row_error
from puredelta.spark.write import parquet_job
from puredelta.spark.write.parquet_job import (
    WRITE_SETTINGS,
    ParquetJob,
    named_failures,
    run_parquet_job,
    write_session,
)
from puredelta.spark.write.staging import stage_rows
from puredelta.spark.write.writer import write_rows
from puredelta.store.local import LocalStore
from tests.spark.write.test_writer import config


@pytest.fixture(params=["threads of the driver", "other machines"], autouse=True)
def executors(request, monkeypatch):
    """Where executors are, for all that a job knows: elsewhere its tasks' rows are counted."""
    are_here = request.param == "threads of the driver"
    monkeypatch.setattr(parquet_job, "runs_here", lambda _: are_here)
    return request.param


def job(rows, store, directory="job", **options):
    with write_session(rows) as bound:
        return run_parquet_job(bound, directory, store=store, **options).files


def everything(root) -> list[str]:
    return sorted(str(p.relative_to(root)) for p in root.rglob("*"))


def test_the_files_of_a_job_are_the_listing_of_its_directory(spark, tmp_path):
    store = LocalStore(tmp_path / "a table é")
    files = job(spark.range(0, 10, 1, 2), store)
    assert [f.path.startswith("job/part-0000") for f in files] == [True, True]
    assert all(f.size_bytes == (tmp_path / "a table é" / f.path).stat().st_size for f in files)
    assert not store.exists("job/_SUCCESS")


def test_tasks_elsewhere_say_how_many_rows_they_have_written(spark, tmp_path, executors):
    counts = []
    for number, rows in enumerate(
        (spark.range(0, 10, 1, 3), spark.range(0), spark.range(20).hint("rebalance", "id"))
    ):
        with write_session(rows) as bound:
            done = run_parquet_job(bound, f"job-{number}", store=LocalStore(tmp_path))
        counts.append(done.reported_rows)
    expected = [10, 0, 20] if executors == "other machines" else [None, None, None]
    assert counts == expected
    with write_session(spark.range(9)) as bound:
        done = run_parquet_job(
            bound.selectExpr("id", "string(id % 3) AS `p q`"),
            "parts",
            store=LocalStore(tmp_path),
            partition_columns=["p q"],
            options={"compression": "zstd"},
        )
    assert done.reported_rows in (None, 9)
    assert {file.path.split("/")[1] for file in done.files} == {"p q=0", "p q=1", "p q=2"}
    assert all(file.name.endswith(".zstd.parquet") for file in done.files)


def test_rows_that_executors_have_written_elsewhere_are_missed(spark, tmp_path, monkeypatch):
    """A file that the driver does not see stands for the disk of another machine."""
    monkeypatch.setattr(parquet_job, "runs_here", lambda _: False)
    real = LocalStore.walk

    def half(store, directory):
        yield from list(real(store, directory))[::2]

    monkeypatch.setattr(LocalStore, "walk", half)
    rows = spark.range(0, 10, 1, 4)
    for write in (
        lambda: stage_rows(rows, store=LocalStore(tmp_path)),
        lambda: write_rows(rows, store=LocalStore(tmp_path), config=config(rows)),
    ):
        with pytest.raises(DeltaError, match="executors do not see") as caught:
            write()
        assert caught.value.code is ErrorCode.WRITE_FAILED
        assert not any(path.endswith(".parquet") for path in everything(tmp_path))


def test_a_spark_that_cannot_count_writes_all_the_same(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_job, "runs_here", lambda _: False)
    for name in ("__init__", "num_rows"):

        def unknown(*_, **__):
            raise Py4JError("Constructor does not exist")

        with monkeypatch.context() as patched, write_session(spark.range(3)) as bound:
            patched.setattr(parquet_job.CountedWrite, name, unknown)
            done = run_parquet_job(bound, name, store=LocalStore(tmp_path))
        assert done.reported_rows is None
        assert sum(pq.read_metadata(tmp_path / f.path).num_rows for f in done.files) == 3


def test_a_count_is_compared_only_where_there_is_one():
    ParquetJob(files=(), location="file:/t/job").require_rows(3)
    ParquetJob(files=(), location="file:/t/job", reported_rows=3).require_rows(3)
    for counted in (2, 4):
        with pytest.raises(DeltaError, match="3 rows to file:/t/job, but the driver sees"):
            ParquetJob(files=(), location="file:/t/job", reported_rows=3).require_rows(counted)


def test_timestamps_are_microseconds_and_the_session_is_untouched(spark, tmp_path):
    before = {key: spark.conf.get(key, None) for key in WRITE_SETTINGS}
    (file,) = job(spark.sql("select timestamp'1500-01-01 00:00:00' t"), LocalStore(tmp_path))
    schema = pq.read_schema(tmp_path / file.path)
    assert str(schema.field("t").type) == "timestamp[us, tz=UTC]"
    assert {key: spark.conf.get(key, None) for key in WRITE_SETTINGS} == before


@pytest.mark.smoke
def test_the_rows_keep_their_own_session(spark, tmp_path):
    """Caches, views, functions, time zone and job tags are those of the caller."""
    spark.range(3).createOrReplaceTempView("three")
    spark.udf.register("twice", lambda x: 2 * x, "long")
    cached = spark.sql("select twice(id) v, rand() r from three").cache()
    kept = {r.r for r in cached.collect()}
    spark.addTag("mine")
    try:
        files = job(cached, LocalStore(tmp_path))
    finally:
        spark.removeTag("mine")
        cached.unpersist()
    written = [r for f in files for r in pq.read_table(tmp_path / f.path).to_pylist()]
    assert sorted(r["v"] for r in written) == [0, 2, 4]
    assert {r["r"] for r in written} == kept


@pytest.mark.smoke
def test_an_observation_on_the_rows_still_reports(spark, tmp_path):
    from pyspark.sql import Observation  # noqa: PLC0415

    seen = Observation()
    job(spark.range(7).observe(seen, F.count(F.lit(1)).alias("n")), LocalStore(tmp_path))
    got = []
    waiting = threading.Thread(target=lambda: got.append(seen.get), daemon=True)
    waiting.start()
    waiting.join(60)
    assert got == [{"n": 7}]


def test_long_text_keeps_bounds_and_null_counts(spark, tmp_path):
    (file,) = job(spark.range(0, 1, 1, 1).selectExpr("repeat('é', 3000) s"), LocalStore(tmp_path))
    statistics = pq.read_metadata(tmp_path / file.path).row_group(0).column(0).statistics
    assert statistics.has_min_max
    assert len(statistics.max_raw) <= 1024


@pytest.mark.smoke
def test_a_failed_job_leaves_nothing_and_raises_the_rows_own_error(spark, tmp_path):
    def fail(rows):
        with pytest.raises(Exception) as caught:  # noqa: PT011
            job(rows, LocalStore(tmp_path), directory="job")
        assert everything(tmp_path) == []
        return caught.value

    bad = F.when(
        F.col("id") > 5,
        row_error(ErrorCode.SCHEMA_MISMATCH, F.concat(F.lit("id "), "id"), {"id": F.col("id")}),
    ).otherwise(F.col("id"))
    error = fail(spark.range(0, 10, 1, 2).select(bad.alias("id")))
    assert isinstance(error, InvalidRequestError)
    assert (error.code, error.message[:3]) == (ErrorCode.SCHEMA_MISMATCH, "id ")
    assert int(error.details["id"]) > 5
    assert "DIVIDE_BY_ZERO" in str(fail(spark.range(3).selectExpr("1 / id x")))


@pytest.mark.sampled(7)
def test_a_task_that_stops_late_leaves_nothing(spark, tmp_path):
    """One task fails while another is about to open its first file."""

    # One row of it takes a while, in which nobody asks whether the task was killed.
    slow = "aggregate(sequence(1, id * 0 + {}), 0D, (sum, x) -> sum + sqrt(x))"
    rows = spark.range(0, 2, 1, 2).selectExpr(
        "id",
        f"if(id = 0, {slow.format(8_000_000)}, {slow.format(400_000)}) AS x",
        "if(id = 1 AND x > 0, raise_error('a task fails'), id) AS p",
    )
    with pytest.raises(Exception, match="a task fails"):
        job(rows, LocalStore(tmp_path), directory="job", partition_columns=["p"])
    assert everything(tmp_path) == []
    time.sleep(2)
    assert everything(tmp_path) == []


def test_storage_that_refuses_is_named(spark, tmp_path):
    (tmp_path / "file").write_text("no directory")
    with pytest.raises(DeltaError) as caught:
        job(spark.range(3), LocalStore(tmp_path / "file"))
    assert caught.value.code is ErrorCode.WRITE_FAILED
    assert "not a directory" in caught.value.message
    assert caught.value.__cause__ is not None


def test_an_existing_directory_is_never_written_to(spark, tmp_path):
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "precious").write_text("x")
    with pytest.raises(ValueError, match="a directory of its own"):
        job(spark.range(3), LocalStore(tmp_path))
    assert (tmp_path / "job" / "precious").exists()


@pytest.mark.smoke
def test_staged_rows_know_their_columns(spark, tmp_path):
    store = LocalStore(tmp_path)
    rows = spark.range(0, 100, 1, 4).selectExpr(
        "id",
        "if(id < 50, null, id) half",
        "named_struct('t', timestamp_micros(id)) s",
        "array(id) a",
    )
    staged = stage_rows(rows, store=store)
    assert staged.directory.startswith(STAGING_PREFIX)
    assert staged.num_rows == 100
    assert len(staged.files) == 4
    assert staged.size_bytes == sum(
        Path(f.uri.removeprefix("file:")).stat().st_size for f in staged.files
    )
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
    assert staged.columns == {
        ("id",): LeafStatistics(0, 99, 0),
        ("half",): LeafStatistics(50, 99, 50),
        ("s", "t"): LeafStatistics(epoch, epoch + dt.timedelta(microseconds=99), 0),
        ("a",): LeafStatistics(None, None, 0),
    }
    paths = [f.uri for f in staged.files]
    assert spark.read.parquet(*paths).count() == 100
    staged.remove(store)
    assert everything(tmp_path) == []


def test_no_rows_are_staged_as_no_files(spark, tmp_path):
    staged = stage_rows(spark.range(0), store=LocalStore(tmp_path))
    assert (staged.files, staged.num_rows, staged.columns) == ((), 0, {})


@pytest.mark.parametrize(
    "text",
    [
        "java.io.IOException: No space left on device",
        "java.io.FileNotFoundException: /t/job/part-0.parquet (Permission denied)",
        "java.io.IOException: Disk quota exceeded",
        "java.io.FileNotFoundException: /t/job/x (Read-only file system)",
        "java.io.IOException: Mkdirs failed to create file:/t/job (exists=false)",
        "java.io.FileNotFoundException: /t/job/p=xxx (File name too long)",
        "ModuleNotFoundError: No module named 'pyarrow.lib'",
    ],
)
def test_what_storage_says_is_what_the_user_reads(text):
    failure = RuntimeError(f"Job aborted due to stage failure: Task 1 failed: {text}\n\tat x.y")
    with pytest.raises(DeltaError) as caught, named_failures("file:/t/job"):
        raise failure
    assert caught.value.code is ErrorCode.WRITE_FAILED
    assert caught.value.details["reason"] in text
    assert "file:/t/job" in caught.value.message
    assert caught.value.__cause__ is failure


def test_other_failures_pass_unchanged():
    failure = RuntimeError("the user's own")
    with pytest.raises(RuntimeError) as caught, named_failures("file:/t/job"):
        raise failure
    assert caught.value is failure


def test_an_interrupt_ends_the_job_before_its_files_are_removed(spark, tmp_path, monkeypatch):
    """Else its tasks write on, into the directory that was removed."""
    status, active = spark.sparkContext.statusTracker(), []
    endless = spark.sparkContext.parallelize(range(2), 2).map(_never_return)

    def wait_for_ever():
        with contextlib.suppress(Py4JJavaError):
            endless.count()

    def interrupted(*_):
        InheritableThread(target=wait_for_ever, session=spark).start()
        until = time.monotonic() + 30
        while not status.getActiveJobsIds() and time.monotonic() < until:
            time.sleep(0.01)
        (tmp_path / "job").mkdir()
        raise KeyboardInterrupt

    def delete_tree(store, path):
        until = time.monotonic() + 5
        while status.getActiveJobsIds() and time.monotonic() < until:
            time.sleep(0.01)
        active.append(status.getActiveJobsIds())
        original(store, path)

    original = LocalStore.delete_tree
    monkeypatch.setattr(LocalStore, "delete_tree", delete_tree)
    monkeypatch.setattr(parquet_job, "_write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        job(spark.range(3), LocalStore(tmp_path))
    spark.sparkContext.cancelAllJobs()
    assert active == [[]]
    assert everything(tmp_path) == []


def _never_return(number):
    time.sleep(600)
    return number


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("x" * 300, r"makes the name of a directory 302 bytes long"),
        ("é" * 130, r"makes the name of a directory 262 bytes long"),
        ("a\0b", r"'a\\x00b' of the column 'k' has the character NUL"),
    ],
)
def test_a_value_that_makes_no_directory_is_named(value: str, words: str) -> None:
    made = f"file:/t/job/_temporary/0/attempt/k={value}"
    with pytest.raises(DeltaError, match=words) as caught, named_failures("file:/t/job"):
        raise RuntimeError(f"Mkdirs failed to create {made} (exists=false, cwd=file:/)")
    assert "Shorten the value" in caught.value.message
    assert caught.value.code is ErrorCode.WRITE_FAILED
