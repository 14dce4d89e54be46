"""Methods replaced and put back, and what builders are told, without Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from puredelta.activation import doors
from puredelta.activation.patches import Patches
from puredelta.activation.stream_doors import open_stream_writer
from puredelta.activation.table_doors import open_table_writer
from puredelta.activation.told import Told, record_reader, record_writer
from puredelta.activation.told_stream import ToldStream, record_stream_writer
from puredelta.activation.told_table import ToldTable, record_table_writer
from puredelta.activation.writing import write_options
from puredelta.errors import UnsupportedError


def builder_classes() -> tuple[type, type]:
    """Classes with PySpark's methods, which keep the calls they get."""

    def recorded(name: str) -> Any:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            if args == ("refused",):
                raise ValueError(name)
            self.calls.append((name, args, kwargs))
            return self

        method.__name__ = name
        return method

    def make(*names: str) -> type:
        def init(self: Any) -> None:
            self.calls = []
            self._spark = SimpleNamespace(conf={"spark.sql.sources.default": "parquet"})

        return type("Builder", (), {"__init__": init, **{n: recorded(n) for n in names}})

    reader = make("format", "schema", "option", "options", "load", "table")
    layouts = ("bucketBy", "sortBy", "clusterBy")
    return reader, make("format", "mode", "option", "options", "partitionBy", "save", *layouts)


@pytest.fixture
def patched():
    reader, writer = builder_classes()
    before = {**vars(reader), "w": dict(vars(writer))}
    patches = Patches()
    record_reader(patches, reader)
    record_writer(patches, writer)
    doors.open_load(patches, reader)
    doors.open_save(patches, writer)
    doors.open_table(patches, reader, doors.reader_session)
    yield reader, writer
    patches.undo()
    assert all(vars(reader)[name] is value for name, value in before.items() if name != "w")
    assert all(vars(writer)[name] is value for name, value in before["w"].items())


def test_a_reader_is_written_down_and_forwarded(patched):
    reader = patched[0]()
    reader.format("Delta").option("versionAsOf", 3).option(key="mergeSchema", value=True)
    reader.options(VERSIONASOF=4, told=1, nothing=None)
    told = Told.of(reader)
    assert told.format == "Delta"
    assert told.option("versionasof") == "4"
    assert told.options == {"VERSIONASOF": "4", "mergeSchema": "true", "told": "1"}
    assert reader.calls[0] == ("format", ("Delta",), {})
    assert reader.calls[-1] == ("options", (), {"VERSIONASOF": 4, "told": 1, "nothing": None})


def test_what_a_builder_refuses_was_not_told(patched):
    reader = patched[0]()
    with pytest.raises(ValueError, match="format"):
        reader.format("refused")
    assert Told.of(reader).format is None
    assert not Told.of(reader.schema("a int")).options
    assert Told.of(reader).has_schema


def test_a_writer_is_written_down(patched):
    writer = patched[1]()
    writer.mode("append").mode(None).partitionBy(["a", "b"]).bucketBy(3, "a")
    assert Told.of(writer).mode == "append"
    assert Told.of(writer).partition_by == ("a", "b")
    assert Told.of(writer.partitionBy("c", "d")).partition_by == ("c", "d")
    assert Told.of(writer).layout == "bucketBy"


@pytest.mark.parametrize("told", [["format", "csv"], [], ["option", "k", "v"]])
def test_other_formats_reach_the_original_as_they_were(patched, told):
    reader, writer = patched[0](), patched[1]()
    for builder in (reader, writer):
        if told:
            getattr(builder, told[0])(*told[1:])
    reader.load(["a", "b"], schema="x int", header=True)
    assert reader.calls[-1] == ("load", (["a", "b"], None, "x int"), {"header": True})
    writer.save("a", "orc", mode="append", partitionBy="p", compression="none")
    assert writer.calls[-1] == ("save", ("a", "orc", "append", "p"), {"compression": "none"})


def test_a_patch_keeps_name_and_documentation():
    class Reader:
        def load(self, path: str) -> str:
            """Load."""
            return path

    original = Reader.__dict__["load"]
    patches = Patches()
    patches.replace(Reader, "load", lambda known: lambda self, path: known(self, path + "!"))
    assert Reader().load("a") == "a!"
    assert (Reader.load.__doc__, Reader.load.__wrapped__) == ("Load.", original)
    patches.undo()
    assert Reader.__dict__["load"] is original


def test_options_of_a_write():
    told = Told().with_options({"MergeSchema": True, "delta.appendOnly": "true", "header": 1})
    assert write_options(told) == {"MergeSchema": "true", "delta.appendOnly": "true"}
    assert write_options(Told().with_options({"dataChange": True, "path": "/a"})) == {}


@pytest.mark.parametrize(
    "told",
    [
        Told().with_options({"dataChange": False}),
        Told().with_options({"replaceOn": "a = b"}),
        Told(layout="bucketBy"),
    ],
)
def test_what_must_not_be_ignored_is_refused(told):
    with pytest.raises(UnsupportedError, match=r"not supported"):
        write_options(told)


class Writer:
    """A table writer or a stream writer that keeps the calls it gets."""

    def __init__(self) -> None:
        self.calls: list[Any] = []


def _recorded(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.calls.append((name, args, kwargs))
        return self

    return method


def writer_class(*names: str) -> type:
    return type("Made", (Writer,), {name: _recorded(name) for name in names})


def test_a_table_writer_is_written_down() -> None:
    class Frame:
        sparkSession = SimpleNamespace()  # noqa: N815 - PySpark's name

        def writeTo(self, table: str) -> Any:  # noqa: ARG002, N802
            return writer()

    endings = ("create", "replace", "createOrReplace", "append", "overwrite")
    told = ("using", "option", "options", "tableProperty", "partitionedBy", "clusterBy")
    writer = writer_class(*told, *endings, "overwritePartitions")
    patches = Patches()
    record_table_writer(patches, Frame, writer)
    open_table_writer(patches, writer)
    made = Frame().writeTo("a.b.c.d.e").using("csv").option("k", True).options(K=1, path="/x")
    made.tableProperty("p", "v").partitionedBy("a", "b").clusterBy("c").overwrite("x")
    words = ToldTable.of(made)
    assert words is not None
    assert (words.name, words.told.format, words.told.options) == (
        "a.b.c.d.e",
        "csv",
        {"K": "1", "path": "/x"},
    )
    assert (words.properties, words.partition_by, words.cluster_by) == (
        {"p": "v"},
        ("a", "b"),
        ("c",),
    )
    patches.undo()


def test_a_stream_writer_is_written_down() -> None:
    calls = "format option options partitionBy clusterBy outputMode queryName trigger foreach"
    writer = writer_class(*calls.split(), "foreachBatch", "start", "toTable")
    patches = Patches()
    record_stream_writer(patches, writer)
    open_stream_writer(patches, writer)
    made = writer().format("delta").option("a", 1).outputMode("append").trigger(availableNow=True)
    words = ToldStream.of(made).with_start(None, "complete", ["p"], "q", {"path": "/x"})
    assert (words.output_mode, words.query_name, words.trigger) == (
        "complete",
        "q",
        {"availableNow": True},
    )
    assert words.told.options == {"a": "1", "path": "/x"}
    assert words.told.partition_by == ("p",)
    made.foreachBatch(print)
    assert ToldStream.of(made).has_own_sink
    assert not ToldStream.of(made).with_start("delta", None, None, None, {}).has_own_sink
    made._spark = SimpleNamespace(conf={})
    made.start("/x", trace="on")
    assert made.calls[-1] == ("start", ("/x", None, None, None, None), {"trace": "on"})
    patches.undo()
