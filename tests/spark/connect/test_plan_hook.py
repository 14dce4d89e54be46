"""Requests as they are given to the hook, and as they are sent."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T

from puredelta.errors import UnsupportedError
from puredelta.spark.connect.messages import local_relation
from puredelta.spark.connect.plan_hook import (
    Use,
    is_query,
    planned_request,
    watch_plans,
    watch_settings,
)
from puredelta.spark.scan.late_scan import late_scan_of

proto: Any = pytest.importorskip("pyspark.sql.connect.proto", exc_type=ImportError)

MARK = b"the mark"


def marked() -> Any:
    relation = proto.Relation()
    relation.read.data_source.options["the mark"] = "1"
    return relation


def planned(request: Any) -> tuple[Any, list[Use]]:
    uses: list[Use] = []

    def planner(plan: Any, use: Use) -> None:
        uses.append(use)
        root = plan.root if hasattr(plan, "root") else plan
        for relation in (root, root.filter.input):
            if relation.WhichOneof("rel_type") == "read":
                relation.Clear()
                relation.range.end = 7

    return planned_request(request, MARK, planner), uses


def test_a_request_without_the_mark_is_sent_as_it_is() -> None:
    request = proto.ExecutePlanRequest()
    request.plan.root.range.end = 3
    sent, uses = planned(request)
    assert sent is request
    assert uses == []


def test_a_request_stays_as_it_is_and_can_be_sent_again() -> None:
    request = proto.ExecutePlanRequest(operation_id="o")
    request.plan.root.filter.input.CopyFrom(marked())
    before = request.SerializeToString(deterministic=True)
    first, uses = planned(request)
    second, _ = planned(request)
    assert request.SerializeToString(deterministic=True) == before
    assert first.plan.root.filter.input.range.end == 7
    assert first == second
    assert first.operation_id == "o"
    assert uses == [Use.ROWS]


@pytest.mark.parametrize(
    ("kind", "use"),
    [
        ("schema", Use.COLUMNS),
        ("explain", Use.FILES),
        ("input_files", Use.FILES),
        ("is_streaming", Use.COLUMNS),
        ("tree_string", Use.COLUMNS),
        ("semantic_hash", Use.MEANING),
    ],
)
def test_uses_of_questions(kind: str, use: Use) -> None:
    request = proto.AnalyzePlanRequest()
    getattr(request, kind).plan.root.CopyFrom(marked())
    sent, uses = planned(request)
    assert uses == [use]
    assert getattr(sent, kind).plan.root.range.end == 7


def test_uses_of_caches_and_views() -> None:
    found = []
    for kind in ("persist", "unpersist", "get_storage_level"):
        request = proto.AnalyzePlanRequest()
        getattr(request, kind).relation.CopyFrom(marked())
        found += planned(request)[1]
    execution = proto.ExecutePlanRequest()
    execution.plan.command.create_dataframe_view.input.CopyFrom(marked())
    found += planned(execution)[1]
    assert found == [Use.CACHED, Use.UNCACHED, Use.WHOLE, Use.WHOLE]


def test_both_plans_of_a_comparison() -> None:
    request = proto.AnalyzePlanRequest()
    request.same_semantics.target_plan.root.CopyFrom(marked())
    request.same_semantics.other_plan.root.CopyFrom(marked())
    sent, uses = planned(request)
    assert uses == [Use.MEANING] * 2
    assert sent.same_semantics.other_plan.root.range.end == 7


def test_a_compressed_plan_is_unpacked() -> None:
    zstandard = pytest.importorskip("zstandard", reason="clients compress by it")
    request = proto.ExecutePlanRequest()
    operation = request.plan.compressed_operation
    operation.data = zstandard.compress(marked().SerializeToString())
    operation.op_type = proto.Plan.CompressedOperation.OP_TYPE_RELATION
    operation.compression_codec = proto.COMPRESSION_CODEC_ZSTD
    sent, _ = planned(request)
    assert sent.plan.root.range.end == 7
    assert request.plan.WhichOneof("op_type") == "compressed_operation"


class Stub:
    """Methods as a gRPC stub has them."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.ExecutePlan = self.AnalyzePlan = self.Config = self._send

    def _send(self, request: Any, *, metadata: object = None) -> object:
        self.sent.append(request)
        return metadata


class Session:
    """A session with a client that has a stub."""

    def __init__(self) -> None:
        self.client = self
        self._stub = Stub()


def test_a_session_is_watched_once() -> None:
    session: Any = Session()
    calls: list[Use] = []
    for _ in range(2):
        watch_plans(session, MARK, lambda _, use: calls.append(use))
    request = proto.ExecutePlanRequest()
    request.plan.root.CopyFrom(marked())
    assert session._stub.ExecutePlan(request, metadata="m") == "m"
    assert calls == [Use.ROWS]
    assert len(session._stub.sent) == 1
    other: Any = Session()
    other._stub.ExecutePlan(request)
    assert calls == [Use.ROWS], "another session has a stub of its own"


def executed(text: str) -> Any:
    request = proto.ExecutePlanRequest()
    request.plan.command.sql_command.input.sql.query = text
    return request


def configured(kind: str) -> Any:
    request = proto.ConfigRequest()
    getattr(request.operation, kind).SetInParent()
    return request


def test_settings_may_change_by_commands_and_requests() -> None:
    session: Any = Session()
    changes: list[str] = []
    watch_settings(session, lambda: changes.append("changed"))
    view, rows = proto.ExecutePlanRequest(), proto.ExecutePlanRequest()
    view.plan.command.create_dataframe_view.name = "v"
    rows.plan.root.range.end = 3
    for kept in (view, rows, executed("SELECT 1"), executed("SHOW TABLES")):
        session._stub.ExecutePlan(kept)
    session._stub.Config(configured("get_all"))
    assert changes == []
    session._stub.ExecutePlan(executed("SET a = 1"))
    assert len(changes) == 1
    session._stub.Config(configured("set"))
    session._stub.Config(configured("unset"))
    assert len(changes) == 5, "before and after each"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT t.set AS update, delete FROM t", True),
        ("WITH a AS (SELECT 1) TABLE a", True),
        ("WITH a AS (SELECT insert FROM t) FROM a SELECT merge", True),
        ("FROM t |> WHERE a", True),
        ("((SELECT 1))", True),
        ("WITH a AS (SELECT 1) INSERT INTO t SELECT 1", False),
        ("WITH a AS (SELECT 1) MERGE INTO t USING a ON 1 = 1 WHEN MATCHED THEN DELETE", False),
        ("WITH RECURSIVE a (n) AS (SELECT 1) UPDATE t SET a = 1", False),
        ("WITH a AS (SELECT 1) FROM a INSERT INTO t SELECT 1", False),
        ("FROM VALUES (1) INSERT INTO t SELECT 1", False),
        ("FROM TABLE(f()) INSERT OVERWRITE t SELECT 1", False),
        ("DROP TABLE t", False),
        ("", False),
    ],
)
def test_texts_that_change_nothing(text: str, expected: bool) -> None:
    assert is_query(text) is expected


def test_a_plan_with_a_frame_that_is_gone() -> None:
    relation = proto.Relation()
    relation.read.data_source.options["puredelta.scan"] = "of a frame that is gone"
    with pytest.raises(UnsupportedError, match="Read the table again"):
        late_scan_of(relation)


@pytest.mark.parametrize("kind", [T.LongType(), T.DateType()])
def test_a_table_without_rows_is_a_schema_and_no_stream(kind: T.DataType) -> None:
    """A server of PySpark 4.0 reads no schema from a stream without rows."""
    schema = T.StructType([T.StructField("a", kind)])
    arrow = pa.date32() if isinstance(kind, T.DateType) else pa.int64()
    none = local_relation(pa.table({"a": pa.array([], arrow)}), schema).local_relation
    assert not none.data
    assert none.schema == schema.json()
    some = local_relation(pa.table({"a": pa.array([None], arrow)}), schema).local_relation
    assert some.data
    assert bool(some.schema) == isinstance(kind, T.DateType)
