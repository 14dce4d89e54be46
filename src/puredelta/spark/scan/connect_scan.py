"""A DataFrame over an explicit list of Parquet files on Spark Connect: public API only.

``spark.read.parquet(*paths)`` lists the files on the server, which is slow for many of them.
Partition values and ordinals are constants if all files have the same, else they arrive by a
broadcast join on ``_metadata.file_path``. The server URL-encodes odd characters of that path in its
own way, so it is asked how it spells odd paths. A command also asks whether the server will read
exactly the files that it names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.errors import CorruptTableError, Message
from puredelta.protocol.actions.paths import short_uri
from puredelta.spark.connect.messages import local_rows
from puredelta.spark.scan.data_file import DataFile, ReadLayout, require_readable
from puredelta.spark.session.data_access import as_glob
from puredelta.spark.session.names import FILE_PATH
from puredelta.spark.session.session import seen_files
from puredelta.spark.session.types import quoted, struct_as_nullable

_FILE_SCHEME = "^file:/+"
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
        _uris_of_server(asked, files)
        seen |= uris
    if not partition_schema.fields:
        return rows
    texts = _texts(files, partition_schema)
    if all(len(set(column)) == 1 for column in texts.values()):
        first = {name: F.lit(column[0]) for name, column in texts.items()}
        values = [_typed(first[f.name], f) for f in partition_schema.fields]
        return rows.select(*(F.col(quoted(name)) for name in schema.names), *values)
    keyed = rows.withColumn(
        FILE_PATH, F.regexp_replace(F.col("_metadata.file_path"), _FILE_SCHEME, "file:/")
    )
    values_by_file = _value_rows(spark, files, partition_schema, texts)
    # A join by column name would hide `_metadata`.
    is_its_file = keyed[FILE_PATH] == values_by_file[FILE_PATH]
    return keyed.join(F.broadcast(values_by_file), is_its_file).select(
        *(F.col(quoted(name)) for name in [*schema.names, *partition_schema.names])
    )


def _encoded_by_server(spark: SparkSession, files: Sequence[DataFile]) -> list[str]:
    """Return how the server spells the URI of every file; asks for odd ones, once for each."""
    odd = [file for file in files if _PLAIN_URI.fullmatch(file.uri) is None]
    new = [file for file in odd if file.uri not in _encoded]
    if new:
        reader = spark.read.options(**_NO_PARTITIONS_FROM_PATHS, **_NEVER_CACHED)
        rows = reader.schema("none int").parquet(*(as_glob(file.uri) for file in new))
        if len(_encoded) > _ENCODED_MAX:
            _encoded.clear()
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
        encoded = re.sub(_FILE_SCHEME, "file:/", path)
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
    """One row per file: its path and its typed partition values."""
    names = [FILE_PATH, *(f"v{n}" for n in range(len(texts)))]
    columns = [_encoded_by_server(spark, files), *texts.values()]
    table = pa.table([pa.array(column, pa.string()) for column in columns], names)
    schema = T.StructType([T.StructField(name, T.StringType()) for name in names])
    return local_rows(spark, table, schema).select(
        FILE_PATH, *(_typed(F.col(f"v{n}"), f) for n, f in enumerate(partition_schema.fields))
    )


def _typed(text: Column, field: T.StructField) -> Column:
    """Cast as Delta itself does: text to the column's type, in the session's time zone."""
    return text.cast(field.dataType).alias(field.name)
