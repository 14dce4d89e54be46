"""Names that a server keeps: when they are dropped, and what is read of a function."""

from __future__ import annotations

import gc
import json
from typing import Any

import pytest

from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.statements.names import kept_names
from puredelta.statements.names.kept_names import KeptNames, SqlFunction, find_sql_function
from tests.commands.sessions import FakeSession

NEWER = """\
Function:      spark_catalog.db.f
Type:          TABLE
Input:         x   BIGINT DEFAULT 1 'it's'
               y z STRING
Returns:       q BIGINT 'DEFAULT'
Comment:       Body: none
Deterministic: false
Data Access:   READS SQL DATA
Configs:       spark.sql.ansi.enabled=true
               spark.sql.other=1
Body:          SELECT id FROM t
WHERE id = x"""
PROPERTIES = {
    "sqlFunction.isTableFunc": "false",
    "sqlFunction.expression": "(SELECT max(id) FROM t)",
    "sqlFunction.returnType": "BIGINT",
    "sqlFunction.deterministic": "true",
    "sqlFunction.inputParam": "x INT COMMENT 'it', `y z` STRING",
    "sqlConfig.spark.sql.ansi.enabled": "false",
}
OLDER = [
    "Function: f",
    "Class: sqlFunction.",
    f"Usage: {json.dumps(PROPERTIES)}",
    "Extended Usage:",
]


class Rows:
    """Rows that are given a name."""

    def __init__(self) -> None:
        self.views: list[str] = []

    def createTempView(self, name: str) -> None:  # noqa: N802 - PySpark's name
        self.views.append(name)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    texts: list[str] = []
    monkeypatch.setattr(kept_names, "run_on_server", lambda _, text: texts.append(text))
    return texts


def test_names_are_dropped_some_time_after_they_are_needed(
    sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spark: Any = FakeSession()
    rows: Any = Rows()
    now = 0.0
    monkeypatch.setattr(kept_names.time, "monotonic", lambda: now)
    outer, inner = KeptNames(spark), KeptNames(spark)
    name = inner.add(rows)
    outer.kept.append(inner)
    assert rows.views == [name]
    assert not outer.is_empty
    del inner
    now = 100.0
    KeptNames(spark)
    assert sent == [], "the outer names need it"
    del outer
    gc.collect()
    KeptNames(spark)
    assert sent == [], "a statement of another thread may need it for a moment"
    now = 200.0
    other: Any = FakeSession()
    KeptNames(other)
    assert sent == []
    for _ in range(2):
        KeptNames(spark)
    assert sent == [f"DROP VIEW IF EXISTS {name}"]


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (
            NEWER.split("\n")[:-1],
            (
                "CREATE TEMPORARY FUNCTION n(`x` BIGINT DEFAULT 1, `y z` STRING) "
                "RETURNS TABLE (`q` BIGINT) NOT DETERMINISTIC RETURN 1"
            ),
        ),
        (
            OLDER,
            (
                "CREATE TEMPORARY FUNCTION n(x INT COMMENT 'it', `y z` STRING) "
                "RETURNS BIGINT DETERMINISTIC RETURN 1"
            ),
        ),
    ],
)
def test_a_function_as_a_server_describes_it(
    lines: list[str], wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [{"function_desc": line} for line in lines]  # the rows of SHOW, too
    monkeypatch.setattr(kept_names, "run_on_server", lambda *_: asked)
    monkeypatch.setattr(kept_names, "known_answer", lambda _spark, _key, ask: ask())
    found = find_sql_function(FakeSession(), ("db", "f"))  # type: ignore[arg-type]
    assert found is not None
    assert found.definition("n", "1") == wanted
    assert set(found.settings) == {"spark.sql.ansi.enabled"}
    assert found.body in {"SELECT id FROM t", "(SELECT max(id) FROM t)"}


@pytest.mark.parametrize(
    "lines", [["Function: abs", "Class: org.apache.spark.Abs", "Usage: none"], []]
)
def test_other_functions_are_left_alone(lines: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [{"function_desc": line} for line in lines]  # the rows of SHOW, too
    monkeypatch.setattr(kept_names, "run_on_server", lambda *_: asked)
    monkeypatch.setattr(kept_names, "known_answer", lambda _spark, _key, ask: ask())
    assert find_sql_function(FakeSession(), ("db", "f")) is None  # type: ignore[arg-type]


def test_a_function_that_cannot_be_defined_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_spark: object, text: str) -> None:
        if text.startswith("CREATE"):
            raise kept_names.PySparkException("no")

    monkeypatch.setattr(kept_names, "run_on_server", refuse)
    function = SqlFunction(
        name=("db", "f"),
        parameters="",
        returned="INT",
        is_deterministic=True,
        settings={},
        body="1",
    )
    with pytest.raises(UnsupportedError, match=r"`db`\.`f` reads a Delta table") as caught:
        KeptNames(FakeSession()).add_function(function, "2")  # type: ignore[arg-type]
    assert caught.value.code is ErrorCode.UNSUPPORTED_ON_CONNECT
