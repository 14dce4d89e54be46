"""Settings of Parquet writers: those that need Spark's writer, and the codec of the others.

Spark's writer takes settings of Parquet from the session, from Hadoop's configuration of the
context with its XML files, and from the options of one write. Arrow's writers know the codec
alone: if a session sets more, encryption for example, Spark writes every file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from xml.etree import ElementTree as ET

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from puredelta.spark.jvm.gateway import hadoop_parquet_settings
from puredelta.spark.session.session import settings_of

COPY_CODECS: Mapping[str, str] = {
    "snappy": "snappy",
    "gzip": "gzip",
    "zstd": "zstd",
    "none": "none",
    "uncompressed": "none",
}
"""Codecs that Arrow writes as Spark does: Arrow's name for each name of Spark's."""
PARQUET_PREFIX = "parquet."
CODEC = "spark.sql.parquet.compression.codec"
_HADOOP_PREFIX = "spark.hadoop."
_CRYPTO_FACTORY = "parquet.crypto.factory.class"
"""Parquet encrypts and decrypts where this is set, and nowhere else."""
_FOOTER_KEY = "parquet.encryption.footer.key"
_UNIFORM_KEY = "parquet.encryption.uniform.key"
_BY_COLUMN = (_FOOTER_KEY, "parquet.encryption.column.keys")
_OF_FILES = (PARQUET_PREFIX, "spark.sql.files.maxRecordsPerFile")
_OF_COMMITTERS = (
    "spark.sql.parquet.output.committer",
    "spark.sql.sources.commitProtocolClass",
    "spark.sql.sources.outputCommitterClass",
    "mapreduce.",
)
_OF_READERS_ALONE = (
    "parquet.avro.",
    "parquet.decrypt.",
    "parquet.enable.summary-metadata",
    "parquet.filter.",
    "parquet.hadoop.vectored.io.",
    "parquet.metadata.read.",
    "parquet.page.verify-checksum.",
    "parquet.private.",
    "parquet.read.",
    "parquet.split.files",
    "parquet.strict.typing",
    "parquet.strings.signed-min-max.",
    "parquet.summary.metadata.level",
    "parquet.task.side.metadata",
    "parquet.thrift.",
)
"""Settings of Parquet that change no file that is written: Spark's writer writes no summaries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterSettings:
    """How a session, or one write, writes files; the defaults are those of Spark."""

    only_spark: str | None = None
    """The name of a setting of files that only Spark's writer knows, if there is one; it stands in
    reports, and never its value."""
    encrypts: bool = False
    """Whether Parquet has a factory of keys: only Spark reads what it writes, too."""
    codec: str | None = "snappy"
    """Arrow's name for the codec of new rows; ``None``: Spark writes them, as Arrow has not the
    codec, or a setting is there that only Spark's writer or its committers know."""
    copy_codec: str | None = None
    """The codec that the session names, by Spark's name; ``None``: a copy keeps its file's."""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Every setting of Parquet's writer, for the session's and as options of Spark's writer."""

    staged: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The same for hidden files whose columns are not the table's: keys for columns by name, which
    would not be found, give way to the footer's key for the whole file."""

    @classmethod
    def of(cls, spark: SparkSession, settings: Mapping[str, str] | None = None) -> WriterSettings:
        """Read them, Hadoop's configuration included; runs no job.

        ``settings`` are those of the session, and the options of one write among them. Of a
        server of Spark Connect only what its session shows is known: not its XML files.
        """
        own = settings_of(spark) if settings is None else settings
        return cls.parse({**hadoop_parquet_settings(spark), **own})

    @classmethod
    def parse(cls, settings: Mapping[str, str]) -> WriterSettings:
        """Read them from text by key.

        >>> WriterSettings.parse({"spark.hadoop.parquet.block.size": "1"}).only_spark
        'parquet.block.size'
        >>> WriterSettings.parse({"parquet.read.bad.record.threshold": "1"}).only_spark
        """
        bare = {key.removeprefix(_HADOOP_PREFIX): value for key, value in settings.items()}
        found = sorted(
            key
            for key in bare
            if key.startswith(_OF_FILES) and not key.startswith(_OF_READERS_ALONE)
        )
        encrypts = bool(bare.get(_CRYPTO_FACTORY, "").strip())
        named = settings.get(CODEC)
        codec = COPY_CODECS.get("snappy" if named is None else named.strip().lower())
        reason = _CRYPTO_FACTORY if encrypts else next(iter(found), None)
        left = reason is not None or any(key.startswith(_OF_COMMITTERS) for key in bare)
        options = {key: value for key, value in settings.items() if _is_parquets(key)}
        return cls(
            only_spark=reason,
            encrypts=encrypts,
            codec=None if left else codec,
            copy_codec=named,
            options=options,
            staged={**options, **_whole_file(bare)},
        )


_RESOURCES = ("core-site.xml", "hdfs-site.xml")


def parquet_settings_of_server(spark: SparkSession) -> Mapping[str, str]:
    """Return what Hadoop's XML files of a Connect server say of Parquet, as far as it shows them.

    No answer of a server has the values. But its JVM tells where the files are, and Spark reads
    them as text: two small jobs for each file. Nothing is known of files that executors lack.
    """
    found: dict[str, str] = {}
    for name in _RESOURCES:
        with suppress(PySparkException, ET.ParseError):
            [row] = spark.sql(
                f"SELECT java_method('java.lang.ClassLoader', 'getSystemResource', '{name}')"
            ).collect()
            if row[0] is not None:
                [text] = spark.read.text(str(row[0]), wholetext=True).collect()
                found |= dict(_properties(str(text[0])))
    return {key: value for key, value in found.items() if _is_parquets(key)}


def _properties(text: str) -> Iterator[tuple[str, str]]:
    for one in ET.fromstring(text).iter("property"):  # noqa: S314 - the server's own
        name, value = one.findtext("name"), one.findtext("value")
        if name and value is not None:
            yield name.strip(), value.strip()


def _whole_file(settings: Mapping[str, str]) -> dict[str, str]:
    key = settings.get(_FOOTER_KEY, "").strip()
    return {**dict.fromkeys(_BY_COLUMN, ""), _UNIFORM_KEY: key} if key else {}


def _is_parquets(key: str) -> bool:
    return key.startswith(PARQUET_PREFIX) and not key.startswith(_OF_READERS_ALONE)
