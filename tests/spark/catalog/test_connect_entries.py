"""Entries of the session catalog over Spark Connect: those of a classic session."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import types as T

from puredelta.errors import CatalogError
from puredelta.spark.catalog.connect_entries import _ShownEntry, kept_view_query, prepare
from puredelta.spark.jvm.catalog import ViewEntry
from tests.connect_session import ask

IN_EVERY = [
    pytest.param((kind, "every"), id=f"{kind}-every", marks=pytest.mark.thorough)
    for kind in ("in-memory", "hive")
]
of_every = pytest.mark.parametrize("answers", IN_EVERY, indirect=True)


@pytest.fixture(
    scope="module", params=[pytest.param(("in-memory", "sample"), id="in-memory"), *IN_EVERY]
)
def answers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Ask a server with each kind of session catalog."""
    kind, amount = request.param
    directory = tmp_path_factory.mktemp(f"connect-{kind}")
    return ask("tests.spark.catalog.connect_entry_checks", directory, kind, amount)


@pytest.mark.spark
def test_entries_are_those_of_a_classic_session(answers: Any) -> None:
    assert answers["same_entries"] == [[True] * 4, [{}] * 4]


@pytest.mark.spark
def test_names(answers: Any) -> None:
    table = "spark_catalog.db.n"
    view = "db.v: ['SELECT', '1', 'AS', 'a', '--', 'Location:', 'x', 'WHERE', 'true']"
    temporary = ".tv: ['SELECT', '2', 'AS', 'a']"
    found, cased, taken = answers["names"]
    assert found == [
        *[table] * 3, *[""] * 8, temporary, view, "", "",
        "", view, "`spark_catalog`.`db`.`x`", temporary,
        table,
    ]  # fmt: skip
    assert cased == [table, ""]
    assert taken == [True, False, True]


@pytest.mark.spark
@of_every
def test_places(answers: Any) -> None:
    assert answers["places"] == [
        True,
        [True] * 4,
        "INVALID_SCHEMA_OR_RELATION_NAME",
        "SCHEMA_NOT_FOUND",
        "SCHEMA_NOT_FOUND",
    ]


@pytest.mark.spark
def test_an_entry_is_taken_back_without_its_directory(answers: Any) -> None:
    assert answers["taken_back"] == [True, False, ["back"], ["kept"]]


@pytest.mark.spark
@of_every
def test_no_session_reads_the_files_of_an_entry(answers: Any) -> None:
    unknown, known = answers["unreadable"]
    assert "not refused" not in unknown
    assert "not refused" not in known


@pytest.mark.spark
@of_every
def test_convert_makes_the_entry_of_a_table_at_a_location(answers: Any) -> None:
    """The first commit is that of a classic session; a managed table and an undo are refused."""
    refused = "DELTA_UNSUPPORTED_ON_CONNECT"
    assert answers["converted"] == [refused, True, True, True, refused, 0]


@pytest.mark.spark
def test_requests(answers: Any) -> None:
    """The data source is sent once, and a look is one request."""
    assert [sent["ExecutePlan"] for sent in answers["requests"]] == [2, 1, 1, 1]
    assert answers["requests"][1:] == [{"ExecutePlan": 1}] * 3


LINES = """\
Catalog: spark_catalog
Database: db
Table: t
Type: EXTERNAL
Provider: delta
{comment}Location: s3a://bucket/t
Partition Provider: Catalog
Schema: root
 |-- id{column}: long (nullable = true)

"""


def shown(*, comment: str = "", column: str = "") -> _ShownEntry:
    text = LINES.format(comment=f"Comment: {comment}\n" if comment else "", column=column)
    row = {"namespace": "db", "tableName": "t", "isTemporary": False, "information": text}
    return _ShownEntry.of(row)


@pytest.mark.parametrize(
    ("comment", "column"),
    [
        ("", ""),
        ("x\nType: VIEW\nProvider: parquet\nLocation: Berlin", ""),
        ("", "\nLocation: Berlin"),
    ],
)
def test_texts_of_the_user_are_no_lines(comment: str, column: str) -> None:
    table = shown(comment=comment, column=column).table()
    assert (table.location, table.is_managed) == ("s3a://bucket/t", False)


@pytest.mark.parametrize(
    "comment", ["x\nLocation: Berlin\nPartition Columns: []", "x\nLocation: Berlin\nSchema: root\n"]
)
def test_a_text_that_looks_like_another_location_is_refused(comment: str) -> None:
    with pytest.raises(CatalogError, match="2 locations"):
        shown(comment=comment).table()


class _RefusedError(AnalysisException):
    def __init__(self, condition: str) -> None:
        super().__init__(condition)
        self.condition = condition

    def getCondition(self) -> str:  # noqa: N802 - PySpark's name
        return self.condition


class _Server:
    """A session whose server answers the registration of a data source with an error."""

    def __init__(self, condition: str) -> None:
        self.condition, self.asked = condition, 0
        self.dataSource = self

    def register(self, _: Any) -> None:
        self.asked += 1
        raise _RefusedError(self.condition)


def test_a_server_that_has_the_package_knows_the_format() -> None:
    """PySpark 4.0 refuses to replace a data source that its own Python has."""
    server = _Server("DATA_SOURCE_ALREADY_EXISTS")
    for _ in range(2):
        prepare(server)  # type: ignore[arg-type]
    assert server.asked == 1
    with pytest.raises(AnalysisException, match="PYTHON_DATA_SOURCE_ERROR"):
        prepare(_Server("PYTHON_DATA_SOURCE_ERROR"))  # type: ignore[arg-type]


def test_a_view_keeps_a_query_that_its_server_cannot_analyze() -> None:
    query = "SELECT id, 'ä*/' || note AS `odd ``name` FROM main.sales.orders -- '\n"
    columns = T.StructType().add("id", T.LongType()).add("odd `name", T.StringType())
    text = kept_view_query("v", query, columns)
    assert text.startswith("SELECT CAST(NULL AS bigint) AS `id`, CAST(NULL AS string) AS `odd ``n")
    assert "\n" not in text
    assert _shown(f"View Text: {text}").view() == ViewEntry(
        text=query,
        namespace=("spark_catalog", "default"),
        database="",
        name="v",
        queried=("id",),
    )
    stored = _shown(f"View Text: {text}", database="db").view()
    assert stored is not None
    assert stored.text == text, "only temporary views of the session are taken for such ones"


def _shown(line: str, database: str = "") -> _ShownEntry:
    rest = "View Catalog and Namespace: spark_catalog.default\nView Query Output Columns: [id]"
    kind = f"Type: {'VIEW' if database else 'TEMPORARY'}"
    return _ShownEntry.of(
        {
            "namespace": database,
            "tableName": "v",
            "isTemporary": not database,
            "information": f"{kind}\n{line}\nView Schema Mode: COMPENSATION\n{rest}",
        }
    )
