"""A row per file with the file's partition values: conditions over these columns need no scan.

Spark evaluates the rows on the driver, so a condition means there what it means in a query,
with any function that it calls.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from puredelta.log.files.file_table import FileTable
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.helper_columns import FILE_ORDINAL
from puredelta.spark.session.types import to_spark
from puredelta.spark.values.char_varchar import padded, read_limits


def partition_rows(spark: SparkSession, files: FileTable, config: TableConfig) -> DataFrame:
    """Return one row per file: `FILE_ORDINAL` and the table's partition columns, typed.

    Text becomes a value as Delta itself does it: by a cast in the session's time zone.
    """
    fields = to_spark(config.partition_schema).fields
    texts = {
        f"v{n}": _texts(files, name) for n, name in enumerate(config.physical_partition_columns)
    }
    limits = read_limits(spark, config)
    table = pa.table({FILE_ORDINAL: pa.array(range(len(files)), pa.int32()), **texts})
    return spark.createDataFrame(table).select(
        FILE_ORDINAL,
        *(
            padded(limits.get(f.name), F.col(f"v{n}").cast(f.dataType), f.dataType).alias(f.name)
            for n, f in enumerate(fields)
        ),
    )


def _texts(files: FileTable, name: str) -> pa.ChunkedArray:
    """Return the values of a partition column as the log spells them; empty text is NULL."""
    texts = files.partition_texts(name)
    return pc.if_else(pc.equal(texts, ""), None, texts)
