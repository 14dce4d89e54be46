"""Views and SQL functions of the catalog and scripts (``BEGIN ... END``), by Spark's machinery.

Control flow, variables, scopes and handlers of a script are Spark's. A statement for this library
is replaced by a command on a catalog that is a Python object: Spark runs the command when the
script reaches it, and the catalog receives the statement's text.

Spark keeps the text of a view as the user wrote it, and resolves it in the namespace and with the
settings of its definition. Here Spark gets the same entry with another text: temporary views
replace the tables that Spark does not know.

The body of a SQL function is asked for by ``DESCRIBE FUNCTION EXTENDED``, so that the tables that
it names are known before Spark analyzes it. Classic sessions only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaObject
from pyspark.errors import ParseException, PySparkException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from puredelta.protocol.schema.sql_lexer import keywords
from puredelta.spark.jvm.catalog import catalog_of, stored_entry, with_fields
from puredelta.spark.jvm.frames import analyzed_plan, frame_of
from puredelta.spark.jvm.gateway import (
    CATALYST,
    JVM_ERRORS,
    class_name,
    gateway_of,
    java_class,
    jvm_of,
    scala_map,
    scala_object,
    scala_seq,
    scala_some,
    seq_items,
    session_of,
    text_items,
    text_map,
)
from puredelta.spark.jvm.plans import Plan, RelationName, parsed_plan, relation_names

_LOGICAL = f"{CATALYST}.plans.logical"
_SCRIPT, _STATEMENT = "CompoundBody", "SingleStatement"
_BLOCKS = ("Statement", "ExceptionHandler")
"""What the names of all other classes that hold statements end in."""


class Script:
    """A script that Spark has parsed."""

    def __init__(self, spark: SparkSession, text: str) -> None:
        """Raises `pyspark.errors.ParseException` where the parser refuses the text."""
        self._spark = spark
        self._body = parsed_plan(spark, text).java

    @property
    def is_script(self) -> bool:
        """Whether it is one, and no other statement."""
        return class_name(self._body) == _SCRIPT

    def relation_names(self) -> tuple[RelationName, ...]:
        """Return every name of a table or view in it, those in handlers, too."""
        plans = (Plan(at.parsedPlan()) for at in _statements(self._body))
        return tuple(dict.fromkeys(name for plan in plans for name in relation_names(plan)))

    def has(self, is_ours: Callable[[str], bool]) -> bool:
        """Tell whether one of its statements is for Python, by its text."""
        return any(is_ours(str(at.getText())) for at in _statements(self._body))

    def run(self, is_ours: Callable[[str], bool], execute: Callable[[str], object]) -> DataFrame:
        """Run it; ``execute`` gets the text of each statement that is for Python.

        It is called in the thread that runs the script, inside of the scopes of its variables.
        What it raises ends the script; handlers of the script do not see it.
        """
        start_callbacks: Any = ensure_callback_server_started
        start_callbacks(gateway_of(self._spark))
        catalog = _Statements(execute)
        plan = _rewritten(self._body, lambda at: self._command(at, catalog, is_ours))
        runner = scala_object(jvm_of(self._spark), "org.apache.spark.sql.scripting."
                              "SqlScriptingExecution")  # fmt: skip
        nothing = scala_map(jvm_of(self._spark), {})
        try:
            result = runner.executeSqlScript(session_of(self._spark), plan, nothing)
            return frame_of(self._spark, Plan(result))
        except JVM_ERRORS:
            if catalog.failure is not None:
                raise catalog.failure from None
            raise

    def _command(self, statement: Any, catalog: _Statements, is_ours: Callable[[str], bool]) -> Any:
        """Return the command for a statement that is for Python, in its place in the text."""
        text = str(statement.getText())
        if not is_ours(text):
            return statement
        jvm = jvm_of(self._spark)
        place = java_class(jvm, f"{CATALYST}.analysis.ResolvedNamespace")(
            catalog, scala_seq(jvm, ["script"]), scala_map(jvm, {})
        )
        command = java_class(jvm, f"{_LOGICAL}.CommentOnNamespace")(place, text)
        origins = scala_object(jvm, f"{CATALYST}.trees.CurrentOrigin")
        origins.set(statement.origin())
        try:
            return statement.copy(command)
        finally:
            origins.reset()


class _Statements:
    """Spark's ``SupportsNamespaces``: a comment on a namespace is a statement to execute."""

    def __init__(self, execute: Callable[[str], object]) -> None:
        self._execute = execute
        self._id = f"puredelta-script-{id(self)}"
        self.failure: BaseException | None = None

    def name(self) -> str:
        """Return the name of the catalog."""
        return "puredelta"

    def alterNamespace(self, _: Any, changes: Any) -> None:  # noqa: N802 - Spark's name
        """Execute the text of the comment."""
        try:
            self._execute(str(changes[0].value()))
        except BaseException as failure:
            self.failure = failure
            raise

    def hashCode(self) -> int:  # noqa: N802 - Java's name
        """Return a number that stays the same."""
        return hash(self._id) % (1 << 31)

    def equals(self, other: Any) -> bool:
        """Tell whether it is this one: another one comes as a Java object that prints its id."""
        return isinstance(other, JavaObject) and bool(other.toString() == self._id)

    def toString(self) -> str:  # noqa: N802 - Java's name
        """Return what a plan prints of it."""
        return self._id

    class Java:
        """For Py4J."""

        implements: ClassVar[list[str]] = [
            "org.apache.spark.sql.connector.catalog.SupportsNamespaces"
        ]


def _statements(part: Any) -> Iterator[Any]:
    """Yield the statements of a script in their order: conditions, queries, those of handlers."""
    kind = _kind(part)
    if kind is _Part.STATEMENT:
        yield part
    elif kind is _Part.OTHER:
        return
    else:
        for inner in _inner(part, kind):
            yield from _statements(inner)


def _rewritten(part: Any, change: Callable[[Any], Any]) -> Any:
    """Return a script with other statements; the parts of it are Scala's case classes."""
    kind = _kind(part)
    if kind is _Part.STATEMENT:
        return change(part)
    if kind is _Part.OTHER:
        return part
    inner = [_rewritten(one, change) for one in _inner(part, kind)]
    if kind is _Part.SEQ:
        return scala_seq(part, inner)
    if kind is _Part.SOME:
        return scala_some(part, inner[0])
    names = map(part.productElementName, range(part.productArity()))
    return with_fields(part, **dict(zip(names, inner, strict=True)))


class _Part(Enum):
    """What a part of a script is."""

    STATEMENT = "a statement"
    BLOCK = "a case class that may hold statements"
    SEQ = "a Scala Seq"
    SOME = "a Scala Option with something in it"
    OTHER = "text, a flag or the like"


def _kind(part: Any) -> _Part:
    if not isinstance(part, JavaObject):
        return _Part.OTHER
    name = str(part.getClass().getName())
    if name == f"{_LOGICAL}.{_STATEMENT}":
        return _Part.STATEMENT
    if name == f"{_LOGICAL}.{_SCRIPT}" or (name.startswith(_LOGICAL) and name.endswith(_BLOCKS)):
        return _Part.BLOCK
    if name == "scala.Some":
        return _Part.SOME
    is_seq = java_class(part, "java.lang.Class").forName("scala.collection.Seq").isInstance(part)
    return _Part.SEQ if is_seq else _Part.OTHER


def _inner(part: Any, kind: _Part) -> list[Any]:
    if kind is _Part.SEQ:
        return list(seq_items(part))
    return [part.productElement(n) for n in range(part.productArity())]


_TEMPORARY_NAMES = "view.referredTempViewNames"
"""The property in which Spark keeps the temporary views that a view may name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationPlace:
    """A name of a table or view in a text."""

    name: RelationName
    start: int
    """Where it begins."""


def relation_places(spark: SparkSession, text: str) -> tuple[RelationPlace, ...]:
    """Return every name of a relation in a statement that is no common table expression's, in
    their order.
    """
    plan = parsed_plan(spark, text).java
    ctes = {name.lower() for name in _cte_names(plan)}
    found = set(_places(plan))  # a plan may be in a subquery, and below it
    return tuple(
        place
        for place in sorted(found, key=lambda place: place.start)
        if len(place.name) > 1 or place.name[0].lower() not in ctes
    )


def _places(node: Any) -> Iterator[RelationPlace]:
    start = node.origin().startIndex()
    if class_name(node) == "UnresolvedRelation" and start.isDefined():
        yield RelationPlace(name=text_items(node.multipartIdentifier()), start=int(start.get()))
    for inner in _below(node):
        yield from _places(inner)


def _cte_names(node: Any) -> Iterator[str]:
    if class_name(node) == "UnresolvedWith":
        yield from (str(relation._1()) for relation in seq_items(node.cteRelations()))
    for inner in _below(node):
        yield from _cte_names(inner)


def _below(node: Any) -> Iterator[Any]:
    kind = class_name(node)
    if kind == "ExplainCommand":
        yield node.logicalPlan()
    elif kind == "RelationTimeTravel":
        yield node.relation()
    for plans in (node.children(), node.innerChildren(), node.subqueries()):
        yield from seq_items(plans)


def view_rows(
    spark: SparkSession, database: str, name: str, text: str, temporary: Sequence[str]
) -> DataFrame:
    """Return the rows of a view of the catalog as if its text were this one.

    ``temporary`` are the temporary views that the text names; they may go when this returns.
    """
    jvm = jvm_of(spark)
    stored = stored_entry(spark, database, name)
    allowed = json.dumps([[view] for view in temporary])
    properties = {**text_map(stored.properties()), _TEMPORARY_NAMES: allowed}
    changed = with_fields(
        stored, viewText=scala_some(jvm, text), properties=scala_map(jvm, properties)
    )
    options = java_class(jvm, "org.apache.spark.sql.util.CaseInsensitiveStringMap").empty()
    return frame_of(spark, Plan(catalog_of(spark).getRelation(changed, options)))


def view_query(spark: SparkSession, text: str) -> str:
    """Return the query in the definition of a view (``CREATE VIEW``, ``ALTER VIEW ... AS``)."""
    written = parsed_plan(spark, text).java.originalText()
    return str(written.get() if hasattr(written, "get") else written)


def define_view(spark: SparkSession, text: str, rows: DataFrame) -> DataFrame:
    """Execute the definition of a view with these rows for its query; its text stays.

    Temporary views below the rows are taken for what they show.
    """
    plan = analyzed_plan(rows)
    shown = [(view, view.child()) for view in _temporary_views(plan)]
    query = plan.with_replaced(shown) if shown else plan
    return frame_of(spark, Plan(with_fields(parsed_plan(spark, text).java, query=query.java)))


def _temporary_views(plan: Plan) -> Iterator[Plan]:
    if plan.kind == "View" and plan.java.isTempView():
        yield plan
    for inner in (*plan.children(), *plan.subqueries()):
        yield from _temporary_views(inner)


_NO_FUNCTIONS = keywords(
    "all and any array as between by case char columns cube decimal distinct else except "
    "exists filter for from grouping having identifier if in insert intersect into is "
    "join lateral like limit map not numeric on or over overwrite partition partitioned "
    "pivot properties replace rollup select set sets similar struct table tblproperties "
    "then to union unpivot using values varchar when where window with within "
)
"""Words before a bracket that are no functions, and names of types."""
_BODY = "Body:"
_ANALYSIS = "org.apache.spark.sql.catalyst.analysis"
_builtin: WeakKeyDictionary[Any, frozenset[str]] = WeakKeyDictionary()


def bodies_of_functions(spark: SparkSession, text: str) -> Iterator[Plan]:
    """Yield the parsed bodies of the SQL functions that a text calls, and that these call.

    Spark is asked for names alone that no function of its own has.
    """
    pending, seen = [text], set[str]()
    while pending:
        for name in user_functions(spark, pending.pop()):
            if name in seen:
                continue
            seen.add(name)
            body = _body(spark, name)
            plan = None if body is None else _parsed(spark, body)
            if body is not None and plan is not None:
                pending.append(body)
                yield plan


def user_functions(spark: SparkSession, text: str) -> Iterator[str]:
    """Yield the functions that a text may call and that somebody has made, of any kind."""
    for name in sorted(called_names(text) - _NO_FUNCTIONS):
        if name not in _builtin_names(spark) and _is_function(spark, name):
            yield name


def _is_function(spark: SparkSession, name: str) -> bool:
    state = session_of(spark).sessionState()
    try:
        known = state.sqlParser().parseFunctionIdentifier(name)
        return bool(state.catalog().functionExists(known))
    except (*JVM_ERRORS, PySparkException):
        return False  # Spark says what is wrong with the text


_of_pyspark = frozenset({*map(str.lower, dir(F)), "table_changes"})
"""Functions that every session has."""


def may_call_function(text: str) -> bool:
    """Return whether a text may call a function of which PySpark does not know.

    >>> may_call_function("abs(count(x)) IN (1)"), may_call_function("abs(f(x))")
    (False, True)
    """
    return not called_names(text) <= _NO_FUNCTIONS | _of_pyspark


def called_names(text: str) -> set[str]:
    """Return what may be the name of a function in a text, in lower case.

    Texts and comments are not told apart, so there may be others.

    >>> sorted(called_names("SELECT a.`F`(1), abs (2) FROM t WHERE ((x))"))
    ['a.`f`', 'abs', 'where']
    """
    found = set()
    for before in text.split("(")[:-1]:
        known = before.rstrip()
        start = end = len(known)
        while start and (known[start - 1].isalnum() or known[start - 1] in "_.`"):
            start -= 1
        if start < end:
            found.add(known[start:end].lower())
    return found


def _builtin_names(spark: SparkSession) -> frozenset[str]:
    jvm = jvm_of(spark)
    known = _builtin.get(jvm)
    if known is None:
        registries = (
            scala_object(jvm, f"{_ANALYSIS}.{name}").builtin()
            for name in ("FunctionRegistry", "TableFunctionRegistry")
        )
        names = (str(registry.listFunction().mkString(" ")) for registry in registries)
        known = frozenset(name.rsplit(".")[-1] for name in " ".join(names).lower().split())
        _builtin[jvm] = known
    return known


def _body(spark: SparkSession, name: str) -> str | None:
    """Return the text of a SQL function; None: it is one of other code."""
    try:
        described = session_of(spark).sql(f"DESCRIBE FUNCTION EXTENDED {name}").collectAsList()
    except (*JVM_ERRORS, PySparkException):
        return None
    lines = [str(row.getString(0)) for row in described]
    if stored := function_properties(lines):
        return body_of(stored)
    bodies = [line.removeprefix(_BODY).strip() for line in lines if line.startswith(_BODY)]
    return bodies[0] if bodies else None


def function_properties(lines: Sequence[str]) -> Mapping[str, str]:
    """Return the properties of a SQL function that PySpark 4.0 describes; none of others."""
    if not "".join(lines[1:2]).startswith(_SQL_CLASS):
        return {}
    try:
        found: dict[str, str] = json.loads(lines[2].partition(": ")[2])
    except (IndexError, ValueError):
        return {}
    return found


def body_of(stored: Mapping[str, str]) -> str:
    """Return the text of a function by its properties."""
    return stored.get("sqlFunction.query") or stored["sqlFunction.expression"]


_SQL_CLASS = "Class: sqlFunction."


def _parsed(spark: SparkSession, body: str) -> Plan | None:
    """Parse a body, which is a query or an expression."""
    try:
        return parsed_plan(spark, body)
    except ParseException:
        pass
    try:
        return parsed_plan(spark, f"SELECT {body}")
    except ParseException:
        return None
