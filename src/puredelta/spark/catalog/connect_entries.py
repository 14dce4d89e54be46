"""The session catalog of a Spark Connect server, by statements of Spark alone.

The functions have the names of those in `puredelta.spark.jvm.catalog`, and the same answers. An
entry is found by SHOW TABLE EXTENDED, the only statement that names provider and location of a
table in a format that the server does not know. Entries are made, altered and dropped by Spark's
own DDL, which asks for a data source called ``delta``: `prepare` sends one by value before the
first of these statements of a session. The server's Python does not run it for an entry.
"""

from __future__ import annotations

import posixpath
import re
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import WeakSet

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from puredelta.errors import CatalogError, Message
from puredelta.spark.connect.shipped_code import importer
from puredelta.spark.jvm.catalog import SESSION_CATALOG, CatalogTable, ViewEntry
from puredelta.spark.session.names import FORMAT, parse_name, quote, quote_name
from puredelta.spark.session.server import current_namespace as current_namespace  # noqa: PLC0414
from puredelta.spark.session.server import (
    database_location,
    is_case_sensitive,
    name_pattern,
    run_on_server,
)
from puredelta.spark.session.session import asked_names, is_connect
from puredelta.spark.session.types import quoted_text

_NO_SUCH_PLACE = frozenset({"SCHEMA_NOT_FOUND", "CATALOG_NOT_FOUND"})
_START = re.compile(r"[\w+.-]+:(?://[^/]*)?")
"""Scheme and authority of a URI."""
_prepared: WeakSet[SparkSession] = WeakSet()
"""Sessions whose server knows the data source."""


def prepare(spark: SparkSession) -> None:
    """Let the server's session make, alter and drop entries of the format; one request, once.

    A server whose Python has this package knows the format already. PySpark 4.0 says so with an
    error, newer ones replace it for the session.
    """
    if spark in _prepared:
        return
    try:
        spark.dataSource.register(entry_source())
    except AnalysisException as refused:
        if refused.getCondition() != _KNOWN_SOURCE:
            raise
    _prepared.add(spark)


def with_source(spark: SparkSession, call: Callable[[], Answer]) -> Answer:
    """Return what a call of Spark answers.

    If a Connect server needs the data source for it, that is sent, once.
    """
    try:
        return call()
    except AnalysisException as refused:
        is_known = spark in _prepared or not is_connect(spark)
        if is_known or refused.getCondition() != _UNKNOWN_SOURCE:
            raise
    prepare(spark)
    return call()


Answer = TypeVar("Answer")
_UNKNOWN_SOURCE = "DATA_SOURCE_NOT_FOUND"
_KNOWN_SOURCE = "DATA_SOURCE_ALREADY_EXISTS"


def entry_source() -> Any:
    """Return a data source called ``delta`` for entries of the catalog, and for streams.

    A class made in a function is pickled by value. The entries need none of its methods, and so no
    Python of the server. The reader of a stream is the one of this package, whose code is sent
    along with the class, and again with the reader to each task.
    """
    import pickle  # noqa: PLC0415 - shipped by value, here and below

    from pyspark.sql.datasource import DataSource  # noqa: PLC0415

    make_importable = importer()

    def restored(pickled: bytes) -> Any:
        make_importable()
        return pickle.loads(pickled)  # noqa: S301 - what the same client has sent

    def shipped(reader: Any) -> Any:
        kind = type(reader)

        def reduce(self: Any) -> Any:
            plain = object.__new__(kind)
            vars(plain).update(getattr(self, "__getstate__", lambda: vars(self))())
            return restored, (pickle.dumps(plain),)

        reader.__class__ = type(kind.__name__, (kind,), {"__reduce__": reduce})
        return reader

    class DeltaEntries(DataSource):
        @classmethod
        def name(cls) -> str:
            return "delta"

        def _source(self) -> Any:
            import importlib  # noqa: PLC0415

            make_importable()
            package = importlib.import_module("puredelta.activation.data_source")
            return package.DeltaSource(self.options)

        def schema(self) -> Any:
            return self._source().schema()

        def reader(self, schema: Any) -> Any:
            return shipped(self._source().reader(schema))

        def streamReader(self, schema: Any) -> Any:  # noqa: N802 - PySpark's name
            return shipped(self._source().streamReader(schema))

    return DeltaEntries


def find_entry(
    spark: SparkSession, parts: Sequence[str], *, provider: str
) -> CatalogTable | ViewEntry | None:
    """Return the entry of a table of this provider, or of a view; None for anything else.

    The name has one part, two or three. Without a database it is the current one, after
    temporary views. A call of this package asks once for each name.
    """
    named, *parents = reversed(parts)
    if len(parents) > 1 and parents[1].lower() != SESSION_CATALOG:
        return None
    if parents and "/" in named:  # a path, parquet.`/data`: the server would log an error
        return None
    asked = asked_names(spark)
    if tuple(parts) not in asked:
        asked[tuple(parts)] = _find(spark, tuple(reversed(parents)), named)
    found: _ShownEntry | None = asked[tuple(parts)]
    if found is None:
        return None
    if found.is_view:
        return found.view()
    return found.table() if found.provider == provider else None


def external_tables(spark: SparkSession, database: str, name: str = "*") -> frozenset[str]:
    """Return the names of the external tables of the format, all or one; one request.

    With a data source of Python, ``spark.catalog`` of a client says of each table that it is
    managed. In a classic session it is right, so nothing is asked, and the answer is empty.
    """
    if not is_connect(spark):
        return frozenset()
    pattern = "*" if name == "*" else name_pattern(name)
    place = quote_name((SESSION_CATALOG, database))
    rows = run_on_server(spark, f"SHOW TABLE EXTENDED IN {place} LIKE {quoted_text(pattern)}")
    shown = [_ShownEntry.of(row) for row in rows if not row["isTemporary"]]
    return frozenset(
        one.name for one in shown if one.provider == FORMAT and one.head.get("Type") == "EXTERNAL"
    )


def has_entry(spark: SparkSession, database: str, name: str) -> bool:
    """Return whether there is a table or a view of the name."""
    found = _find(spark, (SESSION_CATALOG, database), name)
    return found is not None and not found.is_temporary


def has_database(spark: SparkSession, database: str) -> bool:
    """Return whether there is a database of the name."""
    try:
        database_location(spark, database)
    except AnalysisException as refused:
        if refused.getCondition() in _NO_SUCH_PLACE:
            return False
        raise
    return True


def default_location(spark: SparkSession, database: str, name: str) -> str:
    """Return where a table that names no location belongs, as a decoded URI."""
    last = name if is_case_sensitive(spark) else name.lower()
    return f"{database_location(spark, database)}/{last}"


def below_database(spark: SparkSession, database: str, location: str) -> str:
    """Return a relative location as one below that of a database, as a decoded URI."""
    whole = f"{database_location(spark, database)}/{location}"
    start = _START.match(whole)
    authority = "" if start is None else start[0]
    return authority + posixpath.normpath(whole[len(authority) :])


def update_entry_columns(
    spark: SparkSession, database: str, name: str, columns: T.StructType
) -> None:
    """List other columns for an entry."""
    table = quote_name((SESSION_CATALOG, database, name))
    prepare(spark)
    if columns.fields:
        run_on_server(spark, f"ALTER TABLE {table} REPLACE COLUMNS ({columns.toDDL()})")
        return
    listed = []
    for row in run_on_server(spark, f"DESCRIBE TABLE {table}"):
        if not row["col_name"] or row["col_name"].startswith("#"):
            break
        listed.append(quote(row["col_name"]))
    if listed:
        run_on_server(spark, f"ALTER TABLE {table} DROP COLUMNS ({', '.join(listed)})")


def entry_mark(spark: SparkSession, database: str, name: str) -> str:
    """Return what another entry of the same name would have otherwise: when it was made."""
    found = _find(spark, (SESSION_CATALOG, database), name)
    return "" if found is None else f"{found.head.get('Created Time')} {found.location}"


def disown_directory(spark: SparkSession, database: str, name: str) -> None:
    """Let the catalog own a directory that does not exist, so that Spark drops the entry alone."""
    found = _find(spark, (SESSION_CATALOG, database), name)
    if found is None or found.head.get("Type") != "MANAGED":
        return
    table = quote_name((SESSION_CATALOG, found.database, found.name))
    nowhere = quoted_text(f"{found.location.rstrip('/')}-{uuid.uuid4()}")
    prepare(spark)
    run_on_server(spark, f"ALTER TABLE {table} SET LOCATION {nowhere}")


def run_command(spark: SparkSession, text: str) -> None:
    """Run a statement about entries."""
    prepare(spark)
    run_on_server(spark, text)


# --- SHOW TABLE EXTENDED --------------------------------------------------------------------

_PLAIN = re.compile(r"\w+", re.ASCII)
_LINE = re.compile(r"(\w[\w ]*): (.*)")
_LAST_OF_HEAD = "Type"
_LOCATION = re.compile(
    r"^Location: (?P<location>.*)\n(?=Serde Library: |InputFormat: |OutputFormat: "
    r"|Storage Properties: |Partition Provider: |Partition Columns: |Schema: root\n)",
    re.MULTILINE,
)
_LAST_LOCATION = re.compile(r"^Location: (?P<location>.*)\n*\Z", re.MULTILINE)
"""Of a table without columns, in a session that lists the files of partitions itself."""
_VIEW = re.compile(
    r"^View Text: (?P<text>.*?)\n(?:View Original Text: (?P<original>.*?)\n)?"
    r"View Schema Mode: \w+\nView Catalog and Namespace: (?P<namespace>.*?)\n"
    r"(?:View SQL Path: .*?\n)?View Query Output Columns: (?:\[(?P<columns>.*?)\])?",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ShownEntry:
    """A row of SHOW TABLE EXTENDED: lines of ``Key: value``, of which some values have lines.

    Comments, properties and texts of views are the user's, and may look like lines of Spark. Spark
    writes the lines up to Type and Provider before any of these.
    """

    database: str
    """Empty for a temporary view of the session."""
    name: str
    is_temporary: bool
    information: str
    head: dict[str, str]
    """The lines up to Type."""
    provider: str
    """In lower case; empty for a view."""

    @classmethod
    def of(cls, row: Any) -> _ShownEntry:
        head: dict[str, str] = {}
        lines = iter(str(row["information"]).split("\n"))
        for line in lines:
            if (found := _LINE.fullmatch(line)) is not None:
                head[found[1]] = found[2]
            if _LAST_OF_HEAD in head:
                break
        key, _, provider = next(lines, "").partition(": ")
        return cls(
            database=row["namespace"],
            name=row["tableName"],
            is_temporary=row["isTemporary"],
            information=row["information"],
            head=head,
            provider=provider.lower() if key == "Provider" else "",
        )

    @property
    def is_of_session_catalog(self) -> bool:
        return self.head.get("Catalog", SESSION_CATALOG) == SESSION_CATALOG

    @property
    def is_view(self) -> bool:
        return self.is_temporary or self.head.get("Type") == "VIEW"

    @property
    def location(self) -> str:
        """An absolute, decoded URI.

        Raises:
            CatalogError: a text of the user's looks like the line of the location.
        """
        found = [match["location"] for match in _LOCATION.finditer(self.information)]
        if not found and (last := _LAST_LOCATION.search(self.information)) is not None:
            found = [last["location"]]
        if len(found) != 1:
            raise CatalogError(
                Message.OPERATION_NOT_ALLOWED_TWO_LOCATIONS,
                table=quote_name((self.database, self.name)),
                number=len(found),
                name=self.name,
            )
        return found[0]

    def table(self) -> CatalogTable:
        return CatalogTable(
            database=self.database,
            name=self.name,
            location=self.location,
            is_managed=self.head.get("Type") == "MANAGED",
            owner=self.head.get("Owner", ""),
        )

    def view(self) -> ViewEntry | None:
        """Return the view; None for a temporary one of a frame, which has no text."""
        found = _VIEW.search(self.information)
        if found is None:
            return None
        return ViewEntry(
            text=_kept_query(found["text"]) if self.is_temporary else found["text"],
            namespace=parse_name(found["namespace"]) if found["namespace"] else (),
            database=self.database,
            name=self.name,
            queried=_names_of(found["columns"] or ""),
        )


def _names_of(text: str) -> tuple[str, ...]:
    """Return the names in a list, which Spark 4.3 quotes and older releases do not.

    >>> _names_of("`a`, `b, ``c`"), _names_of("a, b")
    (('a', 'b, `c'), ('a', 'b'))
    """
    if not text.startswith("`"):
        return tuple(text.split(", ")) if text else ()
    return tuple(name.replace("``", "`") for name in re.findall("`((?:``|[^`])*)`", text))


def kept_view_query(view: str, query: str, columns: T.StructType) -> str:
    """Return the query of a view that the server keeps, for one that it cannot analyze.

    It has the same columns, keeps the text of ``query``, and is an error where the server executes
    it. A client that finds the view takes the text in its place.
    """
    shown = ", ".join(f"CAST(NULL AS {_ddl(f)}) AS {quote(f.name)}" for f in columns.fields)
    refusal = quoted_text(
        f"View {view} shows tables of a catalog that this server does not know. Name it in a query "
        "of the session in which it was made, after puredelta.activate()."
    )
    text = query.encode().hex()
    kept = f"(SELECT {_KEPT}'{text}' AS query)"
    return f"SELECT {shown} FROM {kept} WHERE raise_error({refusal}) IS NULL"  # noqa: S608


def _ddl(field: T.StructField) -> str:
    text = field.dataType.simpleString()
    if "struct<" not in text:
        return text
    one = T.StructType([T.StructField("c", field.dataType)])
    return one.toDDL().partition(" ")[2]  # quotes the names of fields


def _kept_query(text: str) -> str:
    """Return the query that a temporary view keeps, or its own text."""
    found = _KEPT_QUERY.search(text)
    return text if found is None else bytes.fromhex(found[1]).decode()


_KEPT = "/* query of puredelta */ X"
_KEPT_QUERY = re.compile(re.escape(_KEPT) + "'([0-9a-f]*)'")


def _find(spark: SparkSession, place: Sequence[str], name: str) -> _ShownEntry | None:
    """Return the table or view that a name means in the session catalog.

    Without a place it is the current database, after temporary views.
    """
    return _meant(spark, _shown(spark, place, name_pattern(name)), place, name)


def _shown(spark: SparkSession, place: Sequence[str], pattern: str) -> Sequence[Mapping[str, Any]]:
    where = f" IN {quote_name(place)}" if place else ""
    try:
        return run_on_server(spark, f"SHOW TABLE EXTENDED{where} LIKE {quoted_text(pattern)}")
    except AnalysisException as refused:
        if refused.getCondition() in _NO_SUCH_PLACE:
            return []
        raise


def look_up_together(spark: SparkSession, names: Collection[tuple[str, ...]]) -> None:
    """Ask for several names of a database in one request; `find_entry` answers by it in this call.

    The database is the current one for names of one part.
    """
    asked = asked_names(spark)
    by_place: dict[tuple[str, ...], list[str]] = {}
    for *place, name in sorted(names):
        is_of_session = len(place) < len((SESSION_CATALOG, "")) or place[0] == SESSION_CATALOG
        if (*place, name) not in asked and is_of_session and _PLAIN.fullmatch(name):
            by_place.setdefault(tuple(place), []).append(name)
    for where, new in by_place.items():
        if len(new) > 1:
            rows = _shown(spark, where, "|".join(new))
            asked.update({(*where, name): _meant(spark, rows, where, name) for name in new})


def _meant(
    spark: SparkSession, rows: Sequence[Mapping[str, Any]], place: Sequence[str], name: str
) -> _ShownEntry | None:
    """Return the one among the tables and views shown that a name means."""
    named = [row for row in rows if row["tableName"] == name] or [
        row
        for row in rows
        if row["tableName"].lower() == name.lower() and not is_case_sensitive(spark)
    ]
    shown = [one for row in named if (one := _ShownEntry.of(row)).is_of_session_catalog]
    if not place and (hiding := [one for one in shown if not one.database]):
        return hiding[0]
    return next((one for one in shown if one.database), None)
