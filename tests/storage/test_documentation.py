"""The snippets of docs/storage.md run, with the addresses of servers that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import puredelta
from tests.servers import hdfs, s3

PAGE = Path(__file__).parents[2] / "docs" / "storage.md"


def _snippet(section: str) -> str:
    text = PAGE.read_text().partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    found = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert found is not None, section
    return "".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))


def _run(code: str, spark: SparkSession) -> None:
    rows = spark.range(3)
    exec(compile(code, str(PAGE), "exec"), {"spark": spark, "rows": rows, "puredelta": puredelta})


def test_s3(spark: SparkSession, s3_endpoint: str) -> None:
    code = _snippet("S3").replace("http://minio:9000", s3_endpoint)
    code = code.replace("s3a://lake", f"s3a://{s3.BUCKET}").replace('"..."', f'"{s3.KEY}"')
    own = spark.newSession()
    _run(code, own)
    assert puredelta.read(own, f"s3a://{s3.BUCKET}/events").count() == 3


def test_hdfs(spark: SparkSession, hdfs_server: hdfs.Hdfs, hdfs_uri: str) -> None:
    own = spark.newSession()
    own.conf.set("dfs.replication", "1")
    own.conf.set("fs.defaultFS", hdfs_uri)
    code = _snippet("HDFS").replace("hdfs://name-node:8020", hdfs_uri)
    _run(code.replace("name-node:9870", hdfs_server.settings[hdfs.WEB_ADDRESS]), own)
    assert puredelta.read(own, f"{hdfs_uri}/data/events").count() == 3


@pytest.mark.parametrize("section", ["Azure", "Google Cloud Storage"])
def test_other_snippets_are_python(section: str) -> None:
    compile(_snippet(section), str(PAGE), "exec")
