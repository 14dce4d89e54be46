"""A DataFrame over an explicit list of Parquet files on Spark Connect: public API only.

``spark.read.parquet(*paths)`` lists the files on the server. Of more than 32 it does so in a job
with a task for each file, so settings are made for the moment of the listing, and what the server
has listed is used again (`_listed`). Partition values and ordinals are constants if all files have
the same, else they arrive by a broadcast join on ``_metadata.file_path``. The server URL-encodes
odd characters of that path in its own way, so it is asked how it spells odd paths. A command also
asks whether the server will read exactly the files that it names.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote
from weakref import WeakKeyDictionary, WeakSet

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.errors import CorruptTableError, Message
from puredelta.protocol.actions.paths import short_uri
from puredelta.spark.connect.messages import local_rows, plan_of, settings_for_a_while
from puredelta.spark.connect.plan_hook import plans_sent
from puredelta.spark.scan.data_file import DataFile, ReadLayout, require_readable
from puredelta.spark.session.data_access import as_glob
from puredelta.spark.session.names import FILE_HASH, FILE_PATH
from puredelta.spark.session.session import seen_files, settings_of
from puredelta.spark.session.types import quoted, struct_as_nullable

_LOCAL = "file:/"
_FILE_SCHEME = f"^{_LOCAL}+"
_NO_PARTITIONS_FROM_PATHS = {"recursiveFileLookup": "true"}
_IGNORES_MISSING = "ignoreMissingFiles"
_NEVER_CACHED = {"puredelta.asked": "true"}
"""An option without a meaning: a plan with it is no other plan that Spark has cached."""


def connect_scan(spark: SparkSession, files: Sequence[DataFile], layout: ReadLayout) -> DataFrame:
    """Return the rows of exactly ``files``: the data columns, then the partition columns.

    The same contract as `puredelta.spark.scan.native_scan.native_scan`, but the files are listed,
    later filters on partition columns read all of them, and nothing is said to be NOT NULL.
    Columns are found by name (`puredelta.spark.scan.field_ids`).

    Raises:
        UnsupportedError: a file Spark cannot read.
        CorruptTableError: the server does not see one of the files.
    """
    require_readable(files)
    schema, partition_schema = struct_as_nullable(layout.data_schema), layout.partition_schema
    options = {**layout.options, **_NO_PARTITIONS_FROM_PATHS}
    if not files:  # also says whose rows these are
        every_field = [*schema.fields, *partition_schema.fields]
        return spark.read.options(**options).schema(T.StructType(every_field)).parquet()
    paths = [as_glob(file.uri) for file in files]
    rows = spark.read.options(**options).schema(schema).parquet(*paths)
    seen, uris = seen_files(spark), {file.uri for file in files}
    if layout.options.get(_IGNORES_MISSING) == "false" and not uris <= seen:
        # Where a user has cached the same rows, Spark would not say what files those come from.
        asked = spark.read.options(**options, **_NEVER_CACHED).schema(schema).parquet(*paths)
        with _few_tasks(spark, paths):
            _uris_of_server(asked, files)
        seen |= uris
    rows = _listed(spark, rows, paths)
    if not partition_schema.fields:
        return rows
    texts = _texts(files, partition_schema)
    if all(len(set(column)) == 1 for column in texts.values()):
        first = {name: F.lit(column[0]) for name, column in texts.items()}
        values = [_typed(first[f.name], f) for f in partition_schema.fields]
        return rows.select(*(F.col(quoted(name)) for name in schema.names), *values)
    keyed = rows.withColumn(FILE_PATH, F.col("_metadata.file_path"))
    values_by_file = _value_rows(spark, files, partition_schema, texts)
    # A join by column name would hide `_metadata`. The key is a number, which is found sooner than
    # a text. Texts that begin with each other are equal, but Spark makes no key of that.
    path, its_path = keyed[FILE_PATH], values_by_file[FILE_PATH]
    is_its_file = F.xxhash64(path) == values_by_file[FILE_HASH]
    is_its_file &= path.startswith(its_path) & its_path.startswith(path)
    return keyed.join(F.broadcast(values_by_file), is_its_file).select(
        *(F.col(quoted(name)) for name in [*schema.names, *partition_schema.names])
    )


def _listed(spark: SparkSession, rows: DataFrame, paths: Sequence[str]) -> DataFrame:
    """Return equal rows of many files, which the server has listed in few tasks or in none.

    The server keeps its newest plans by the bytes of their relations. So the listing is that of one
    request for columns, and the next query that reads the same files finds the plan.
    """
    if not _is_listed_in_tasks(spark, paths):
        return rows
    relation = plan_of(rows)
    relation.ClearField("common")  # the number of the plan
    key = hashlib.sha256(relation.SerializeToString(deterministic=True)).digest()
    known = _known_listings.setdefault(spark, {})
    sent = plans_sent(spark)
    with _lock:
        last = known.pop(key, None)
        if last is not None and sent - last.at <= _KEPT_PLANS_MAX:
            known[key] = _Listing(last.plan, sent)
            frame: Any = type(rows)
            same: DataFrame = frame(last.plan, spark)
            return same
        for old in [k for k, one in known.items() if sent - one.at > _KEPT_PLANS_MAX]:
            del known[old]
    with _few_tasks(spark, paths):
        rows.schema  # noqa: B018 - one request, after which the server knows the files
    with _lock:
        known[key] = _Listing(vars(rows)["_plan"], plans_sent(spark))
    return rows


def _is_listed_in_tasks(spark: SparkSession, paths: Sequence[str]) -> bool:
    """Return whether the server would list each file in a task, and no setting of the user's says
    how it lists files.
    """
    return len(paths) > LISTED_AT_ONCE and _LISTING.isdisjoint(settings_of(spark))


@contextmanager
def _few_tasks(spark: SparkSession, paths: Sequence[str]) -> Iterator[None]:
    """Let the server list files in few tasks or in none; two requests if there are many files.

    Some platforms refuse such settings; the files are listed in many tasks there.
    """
    with ExitStack() as stack:
        if _is_listed_in_tasks(spark, paths) and spark not in _refusing:
            is_local = all(path.startswith(_LOCAL) for path in paths)
            settings = {_AT_ONCE_MAX: str(len(paths))} if is_local else {_TASKS_MAX: str(_TASKS)}
            try:
                stack.enter_context(settings_for_a_while(spark, settings, settings_of(spark)))
            except PySparkException:
                _refusing.add(spark)
        yield


_refusing: WeakSet[SparkSession] = WeakSet()
"""Sessions whose server has refused the settings of a listing."""


@dataclass(frozen=True, slots=True)
class _Listing:
    """The plan of rows whose files the server has listed."""

    plan: Any
    """As a client's frame holds it; a frame would keep its session alive."""
    at: int
    """The number of plans that were sent when this one was last used."""


LISTED_AT_ONCE = 32
"""The server lists more files than these in a job."""
_AT_ONCE_MAX = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_TASKS_MAX = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_LISTING = {_AT_ONCE_MAX, _TASKS_MAX}
_TASKS = 64
"""Of a listing in a store, where a request takes longer than a task."""
_KEPT_PLANS_MAX = 8
"""A server keeps 16 plans, those of other requests among them."""
_known_listings: WeakKeyDictionary[SparkSession, dict[bytes, _Listing]] = WeakKeyDictionary()
_lock = threading.Lock()


def _encoded_by_server(spark: SparkSession, files: Sequence[DataFile]) -> list[str]:
    """Return how the server spells the URI of every file; asks for odd ones, once for each."""
    odd = [file for file in files if _PLAIN_URI.fullmatch(file.uri) is None]
    new = [file for file in odd if file.uri not in _encoded]
    if new:
        reader = spark.read.options(**_NO_PARTITIONS_FROM_PATHS, **_NEVER_CACHED)
        paths = [as_glob(file.uri) for file in new]
        rows = reader.schema("none int").parquet(*paths)
        if len(_encoded) > _ENCODED_MAX:
            _encoded.clear()
        with _few_tasks(spark, paths):
            _encoded.update(_uris_of_server(rows, new))
    return [_encoded.get(file.uri, file.uri) for file in files]


_PLAIN_URI = re.compile(r"file:/[A-Za-z0-9_./=-]+|[a-z][a-z0-9+]*://[A-Za-z0-9_./=-]+")
"""URIs without a character that a server encodes."""
_encoded: dict[str, str] = {}
"""How servers spell odd URIs: as Hadoop does, which is the same everywhere."""
_ENCODED_MAX = 100_000


def _uris_of_server(rows: DataFrame, files: Sequence[DataFile]) -> Mapping[str, str]:
    """Return how the server spells the URI of every file; one request, no job."""
    uris = {}
    for path in _input_files(rows):
        encoded = re.sub(_FILE_SCHEME, _LOCAL, path)
        uris[short_uri(unquote(encoded))] = encoded
    for file in files:
        if file.uri not in uris:
            raise _not_listed(file.uri)
    return uris


def _input_files(rows: DataFrame) -> list[str]:
    try:
        return list(rows.inputFiles())
    except AnalysisException as failure:
        if failure.getCondition() != "PATH_NOT_FOUND":
            raise
        raise _not_listed((failure.getMessageParameters() or {}).get("path", "")) from failure


def _not_listed(uri: str) -> CorruptTableError:
    return CorruptTableError(Message.FILE_NOT_FOUND_ON_SERVER, path=uri)


def _texts(
    files: Sequence[DataFile], partition_schema: T.StructType
) -> Mapping[str, list[str | None]]:
    """Return the partition values of each file, by column; empty text is NULL."""
    return {
        f.name: [file.partition_values.get(f.name) or None for file in files]
        for f in partition_schema.fields
    }


def _value_rows(
    spark: SparkSession,
    files: Sequence[DataFile],
    partition_schema: T.StructType,
    texts: Mapping[str, list[str | None]],
) -> DataFrame:
    """One row per spelling of a file's path: the path and the file's typed partition values.

    A path of the local file system has two spellings, which depend on the server. To turn one into
    the other would cost more for each row of the files than the join does.
    """
    names = [FILE_PATH, *(f"v{n}" for n in range(len(texts)))]
    uris = _encoded_by_server(spark, files)
    local = [n for n, uri in enumerate(uris) if uri.startswith(_LOCAL)]
    paths = [*uris, *(f"file:///{uris[n].removeprefix(_LOCAL)}" for n in local)]
    columns = [paths, *([*values, *(values[n] for n in local)] for values in texts.values())]
    table = pa.table([pa.array(column, pa.string()) for column in columns], names)
    schema = T.StructType([T.StructField(name, T.StringType()) for name in names])
    values = (_typed(F.col(f"v{n}"), f) for n, f in enumerate(partition_schema.fields))
    return local_rows(spark, table, schema).select(
        FILE_PATH, F.xxhash64(FILE_PATH).alias(FILE_HASH), *values
    )


def _typed(text: Column, field: T.StructField) -> Column:
    """Cast as Delta itself does: text to the column's type, in the session's time zone."""
    return text.cast(field.dataType).alias(field.name)
