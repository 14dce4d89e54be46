"""Methods replaced and put back, and what builders are given, without Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from puredelta.activation.captured_options import CapturedOptions
from puredelta.activation.patched_methods import PATCHED_METHODS, Owner, patched
from puredelta.activation.patches import Patches
from puredelta.activation.writing import write_options
from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.spark.session.session import CLASSIC, CONNECT


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
    writes = ("format", "mode", "option", "options", "partitionBy", *layouts)
    return reader, make(*writes, "save", "saveAsTable", "insertInto")


@pytest.fixture
def builders():
    reader, writer = builder_classes()
    before = {**vars(reader), "w": dict(vars(writer))}
    patches = patched({Owner.READER: reader, Owner.WRITER: writer}, CLASSIC)
    yield reader, writer
    patches.undo()
    assert all(vars(reader)[name] is value for name, value in before.items() if name != "w")
    assert all(vars(writer)[name] is value for name, value in before["w"].items())


def test_a_reader_is_captured_and_forwarded(builders):
    reader = builders[0]()
    reader.format("Delta").option("versionAsOf", 3).option(key="mergeSchema", value=True)
    reader.options(VERSIONASOF=4, header=1, nothing=None)
    captured = CapturedOptions.of(reader)
    assert captured.format == "Delta"
    assert captured.option("versionasof") == "4"
    assert captured.options == {"VERSIONASOF": "4", "mergeSchema": "true", "header": "1"}
    assert reader.calls[0] == ("format", ("Delta",), {})
    assert reader.calls[-1] == ("options", (), {"VERSIONASOF": 4, "header": 1, "nothing": None})


def test_what_a_builder_refuses_is_not_captured(builders):
    reader = builders[0]()
    with pytest.raises(ValueError, match="format"):
        reader.format("refused")
    assert CapturedOptions.of(reader).format is None
    assert not CapturedOptions.of(reader.schema("a int")).options
    assert CapturedOptions.of(reader).has_schema


NOT_FOUND = AnalysisException("x", errorClass="SQL_CONF_NOT_FOUND", messageParameters={})
NO_NUMBER = ValueError("invalid literal for int() with base 10: '3221225472b'")


class Session:
    """A session of a client whose rows PySpark refuses."""

    def __init__(self, version: str) -> None:
        self.version = version

    def createDataFrame(self, failed: Exception) -> None:  # noqa: N802 - PySpark's name
        raise failed

    table = sql = createDataFrame


@pytest.mark.parametrize("failed", [NOT_FOUND, NO_NUMBER])
def test_a_client_that_is_newer_than_its_server_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, failed: Exception
) -> None:
    monkeypatch.setattr("pyspark.__version__", "4.3.0")
    patches = patched({Owner.SESSION: Session}, CONNECT)
    try:
        with pytest.raises(UnsupportedError, match=r"pyspark\[connect\]==4.0.1") as caught:
            Session("4.0.1").createDataFrame(failed)
        assert caught.value.code is ErrorCode.UNSUPPORTED_ON_CONNECT
        for server, other in (("4.3.1", failed), ("4.10.0", failed), ("4.0.1", ValueError("x"))):
            with pytest.raises(type(other)) as raised:
                Session(server).createDataFrame(other)
            assert raised.value is other
    finally:
        patches.undo()


def test_a_classic_session_makes_rows_as_before() -> None:
    kind = type("SparkSession", (Session,), dict(vars(Session)))
    patches = patched({Owner.SESSION: kind}, CLASSIC)
    assert vars(kind)["createDataFrame"] is vars(Session)["createDataFrame"]
    patches.undo()


def test_a_writer_is_captured(builders):
    writer = builders[1]()
    writer.mode("append").mode(None).partitionBy(["a", "b"]).bucketBy(3, "a")
    assert CapturedOptions.of(writer).mode == "append"
    assert CapturedOptions.of(writer).partition_by == ("a", "b")
    assert CapturedOptions.of(writer.partitionBy("c", "d")).partition_by == ("c", "d")
    assert CapturedOptions.of(writer).layout == "bucketBy"


@pytest.mark.parametrize("given", [["format", "csv"], [], ["option", "k", "v"]])
def test_other_formats_reach_the_original_as_they_were(builders, given):
    reader, writer = builders[0](), builders[1]()
    for builder in (reader, writer):
        if given:
            getattr(builder, given[0])(*given[1:])
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
    given = CapturedOptions().with_options(
        {"MergeSchema": True, "delta.appendOnly": "true", "header": 1}
    )
    assert write_options(given) == {"MergeSchema": "true", "delta.appendOnly": "true"}
    given = CapturedOptions().with_options({"dataChange": False, "path": "/a", "fs.s3a.k": "v"})
    assert write_options(given) == {"dataChange": "false"}


def test_an_option_that_does_nothing_is_said_once(caplog):
    given = CapturedOptions().with_options({"maxRecordPerFile": 1, "checkpointLocation": "/c"})
    for _ in range(2):
        assert write_options(given) == {}
    (said,) = caplog.messages
    assert "maxRecordPerFile" in said
    assert "maxRecordsPerFile" in said


@pytest.mark.parametrize(
    "given",
    [
        CapturedOptions().with_options({"targetTable": "a"}),
        CapturedOptions(layout="bucketBy"),
    ],
)
def test_what_must_not_be_ignored_is_refused(given):
    with pytest.raises(UnsupportedError, match=r"not supported"):
        write_options(given)


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


def test_a_table_writer_is_captured() -> None:
    class Frame:
        sparkSession = SimpleNamespace()  # noqa: N815 - PySpark's name

        def writeTo(self, table: str) -> Any:  # noqa: ARG002, N802
            return writer()

        def mergeInto(self, table: str, condition: Any) -> None:  # noqa: N802
            raise AssertionError((table, condition))

    for action in (
        "collect",
        "count",
        "explain",
        "filter",
        "isEmpty",
        "selectExpr",
        "show",
        "toArrow",
        "toLocalIterator",
        "toPandas",
    ):
        setattr(Frame, action, Frame.mergeInto)
    endings = ("create", "replace", "createOrReplace", "append", "overwrite")
    given = ("using", "option", "options", "tableProperty", "partitionedBy", "clusterBy")
    writer = writer_class(*given, *endings, "overwritePartitions")
    patches = patched({Owner.FRAME: Frame, Owner.TABLE_WRITER: writer}, CLASSIC)
    made = Frame().writeTo("a.b.c.d.e").using("csv").option("k", True).options(K=1, path="/x")
    made.tableProperty("p", "v").partitionedBy("a", "b").clusterBy("c").overwrite("x")
    captured = CapturedOptions.of(made)
    assert captured.table is not None
    assert (captured.table.name, captured.format, captured.options) == (
        "a.b.c.d.e",
        "csv",
        {"K": "1", "path": "/x"},
    )
    assert (captured.table.properties, captured.table.partition_by, captured.table.cluster_by) == (
        {"p": "v"},
        ("a", "b"),
        ("c",),
    )
    patches.undo()


def test_a_stream_writer_is_captured() -> None:
    calls = "format option options partitionBy clusterBy outputMode queryName trigger foreach"
    writer = writer_class(*calls.split(), "foreachBatch", "start", "toTable")
    patches = patched({Owner.STREAM_WRITER: writer}, CLASSIC)
    made = writer().format("delta").option("a", 1).outputMode("append").trigger(availableNow=True)
    captured = CapturedOptions.of(made).with_start(None, "complete", ["p"], "q", {"path": "/x"})
    assert (captured.output_mode, captured.query_name, captured.trigger) == (
        "complete",
        "q",
        {"availableNow": True},
    )
    assert captured.options == {"a": "1", "path": "/x"}
    assert captured.partition_by == ("p",)
    made._spark = SimpleNamespace(conf={})
    made.foreachBatch(print)
    assert CapturedOptions.of(made).has_own_sink
    assert not CapturedOptions.of(made).with_start("delta", None, None, None, {}).has_own_sink
    made.start("/x", trace="on")
    assert made.calls[-1] == ("start", ("/x", None, None, None, None), {"trace": "on"})
    patches.undo()


def test_every_method_is_replaced_once() -> None:
    places = [(method.owner, method.name) for method in PATCHED_METHODS]
    assert len(places) == len(set(places))
    assert {owner for owner, _ in places} == set(Owner)


def test_nothing_stays_replaced_where_a_method_is_missing() -> None:
    reader, _ = builder_classes()
    original = vars(reader)["format"]
    with pytest.raises(KeyError):
        patched({Owner.READER: reader, Owner.SESSION: type("Session", (), {})}, CLASSIC)
    assert vars(reader)["format"] is original


class Target:
    """A class that two libraries patch."""

    def greet(self) -> str:
        return "hello"


def test_a_patch_of_another_library_stays_and_ours_does_not_come_back() -> None:
    original = Target.greet
    ours = Patches()
    ours.replace(Target, "greet", lambda known: lambda self: known(self) + ", ours")
    below = Target.greet

    def theirs(self: Target) -> str:
        return below(self) + ", theirs"

    Target.greet = theirs  # type: ignore[method-assign]
    try:
        assert Target().greet() == "hello, ours, theirs"
        ours.undo()
        assert vars(Target)["greet"] is theirs
        assert Target().greet() == "hello, theirs"
        again = Patches()
        again.replace(Target, "greet", lambda known: lambda self: known(self) + ", again")
        assert Target().greet() == "hello, theirs, again"
        again.undo()
        Target.greet = below  # type: ignore[method-assign] # their undo
        assert Target().greet() == "hello"
    finally:
        Target.greet = original  # type: ignore[method-assign]
