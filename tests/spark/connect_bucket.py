"""A table in a bucket through an activated Spark Connect session, run as a program of its own.

The credentials are the environment's: Spark tells a client no secrets. The answers are one JSON
object on the last line.
"""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import puredelta
from puredelta.spark.session.storage import open_log
from tests.servers import s3


def main(directory: Path) -> None:
    with s3.s3_server("moto", directory) as endpoint:
        os.environ |= {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": s3.KEY,
            "AWS_SECRET_ACCESS_KEY": s3.SECRET,
        }
        spark = SparkSession.builder.remote("local[2]").getOrCreate()
        puredelta.activate(spark)
        answers = {"table": table(spark), "conversion": conversion(spark)}
        spark.stop()
    print(json.dumps(answers))  # noqa: T201 - the answer


def table(spark: SparkSession) -> Any:
    """Rows are written, changed as text, cached, and read again; an older version, too."""
    path = f"s3a://{s3.BUCKET}/t"
    name = f"delta.`{path}`"
    rows = spark.sql("SELECT id, id % 2 AS p, 'old' AS s FROM range(20)")
    rows.write.format("delta").partitionBy("p").save(path)
    merged = spark.sql(
        f"MERGE INTO {name} t USING (SELECT 1L id, 1L p, 'new' s UNION ALL SELECT 77, 0, 'new') s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    deleted = spark.sql(f"DELETE FROM {name} WHERE id = 3")
    cached = spark.read.format("delta").load(path).cache()
    return [
        list(merged.collect()[0]),
        deleted.collect()[0][0],
        cached.count(),
        spark.table(name).where("s = 'new' AND p = 1").count(),
        spark.sql(f"SELECT count(*) FROM {name} VERSION AS OF 0").collect()[0][0],
    ]


def conversion(spark: SparkSession) -> Any:
    path = f"s3a://{s3.BUCKET}/files"
    content = io.BytesIO()
    pq.write_table(pa.table({"id": [7]}), content)
    open_log(spark, path).store.put("day=2024-01-02/a.parquet", content.getvalue())
    spark.sql(f"CONVERT TO DELTA parquet.`{path}` PARTITIONED BY (day DATE)")
    return [list(map(str, row)) for row in spark.sql(f"SELECT * FROM delta.`{path}`").collect()]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
