"""Names that a Connect server keeps for as long as a plan of the client needs them.

The text of an expression (``df.filter("id IN (SELECT id FROM t)")``, ``F.expr``) has no place for
rows that go along with it. So the rows of the tables that it names become temporary views, and a
SQL function that reads a Delta table becomes a temporary function whose body names such views. The
text is sent with these names. The server drops them some time after the client's plan is gone.
"""

from __future__ import annotations

import re
import time
import uuid
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from puredelta.errors import Message, UnsupportedError
from puredelta.protocol.schema.sql_lexer import TokenKind, keywords, tokenize
from puredelta.spark.catalog.known_names import known_answer
from puredelta.spark.connect.messages import settings_for_a_while
from puredelta.spark.jvm.stored_text import (
    body_of,
    function_properties,
    may_call_function,
)
from puredelta.spark.session.names import PREFIX, display_name, parse_name, quote, quote_name
from puredelta.spark.session.server import name_pattern, run_on_server
from puredelta.spark.session.session import settings_of
from puredelta.spark.session.types import quoted_text
from puredelta.statements.names.views import Again, KeptFunctions

_DROPPED_AFTER_SECONDS = 60.0
"""A statement that another thread sends with the names is analyzed by then."""
_Drop = tuple[float, str]
"""The time from which on something may be dropped, and the statement that does it."""
_to_drop: weakref.WeakKeyDictionary[SparkSession, list[_Drop]] = weakref.WeakKeyDictionary()


class KeptNames:
    """Names of rows and functions, which the server keeps as long as this object is there."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.kept: list[KeptFunctions] = []
        """Names that those in a function need."""
        self.functions: Mapping[str, str] = {}
        """The functions that others take the place of, by the names of these."""
        self._made: list[str] = []
        drops = _to_drop.setdefault(spark, [])
        weakref.finalize(self, _leave, drops, self._made, self.kept).atexit = False
        for drop in [drop for drop in drops if drop[0] < time.monotonic()]:
            drops.remove(drop)
            with suppress(PySparkException):
                run_on_server(spark, drop[1])

    @property
    def is_empty(self) -> bool:
        """Whether nothing has got a name."""
        return not (self._made or self.kept)

    def add(self, rows: DataFrame, again: Again | None = None) -> str:  # noqa: ARG002
        """Return the name of a temporary view of these rows."""
        name = f"{PREFIX}view_{uuid.uuid4().hex}"
        rows.createTempView(name)
        self._made.append(f"DROP VIEW IF EXISTS {name}")
        return name

    def add_function(self, function: SqlFunction, body: str) -> str:
        """Return the name of a temporary function that is another one with another body.

        Raises:
            UnsupportedError: the server does not say enough of the function.
        """
        name = f"{PREFIX}function_{uuid.uuid4().hex}"
        try:
            made = settings_of(self._spark)
            with settings_for_a_while(self._spark, function.settings, made):
                run_on_server(self._spark, function.definition(name, body))
        except PySparkException as refused:
            raise UnsupportedError(
                Message.UNSUPPORTED_ON_CONNECT_FUNCTION, function=quote_name(function.name)
            ) from refused
        self.functions = {**self.functions, name: display_name(function.name)}
        self._made.append(f"DROP TEMPORARY FUNCTION IF EXISTS {name}")
        return name


def _leave(drops: list[_Drop], made: list[str], kept: list[KeptFunctions]) -> None:
    kept.clear()
    drops.extend((time.monotonic() + _DROPPED_AFTER_SECONDS, one) for one in made)


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlFunction:
    """What ``DESCRIBE FUNCTION EXTENDED`` says of a SQL function."""

    name: tuple[str, ...]
    parameters: str
    """As a definition has them."""
    returned: str
    is_deterministic: bool
    settings: Mapping[str, str]
    body: str

    def definition(self, name: str, body: str) -> str:
        """Return the statement that makes a temporary function of another name and body."""
        kind = "DETERMINISTIC" if self.is_deterministic else "NOT DETERMINISTIC"
        head = f"CREATE TEMPORARY FUNCTION {name}({self.parameters}) RETURNS {self.returned}"
        return f"{head} {kind} RETURN {body}"


def find_sql_function(
    spark: SparkSession, name: Sequence[str], namespace: Sequence[str] = ()
) -> SqlFunction | None:
    """Return the SQL function of a name; None for any other one. At most three requests, kept.

    ``namespace`` is that of a name of one part, if it is not the session's.
    """
    if len(name) == 1 and is_built_in(spark, name[0]):
        return None
    whole = (*namespace, *name) if len(name) == 1 else tuple(name)
    found: SqlFunction | None = known_answer(
        spark, (_FUNCTION, *map(str.lower, whole)), lambda: _described(spark, whole)
    )
    return found


_FUNCTION = " function"
"""The first part of a key that is no name of a relation, and of another one."""


def is_built_in(spark: SparkSession, name: str) -> bool:
    """Return whether Spark itself has a function of the name; a request, once."""
    if not may_call_function(f"{name}("):
        return True
    known = _built_in.get(spark)
    if known is None:
        rows = run_on_server(spark, "SHOW SYSTEM FUNCTIONS")
        known = _built_in[spark] = frozenset(str(row["function"]).lower() for row in rows)
    return name.lower() in known


_built_in: weakref.WeakKeyDictionary[SparkSession, frozenset[str]] = weakref.WeakKeyDictionary()
_LABEL = re.compile(r"(\w[\w ]*):\s*(.*)", re.DOTALL)
_SQL_KINDS = frozenset({"SCALAR", "TABLE"})


def _described(spark: SparkSession, name: Sequence[str]) -> SqlFunction | None:
    """Ask for a function; the server logs an error if one is described that is not there."""
    *place, last = name
    where = f" IN {quote_name(place)}" if place else ""
    try:
        if not run_on_server(
            spark, f"SHOW USER FUNCTIONS{where} LIKE {quoted_text(name_pattern(last))}"
        ):
            return None
        rows = run_on_server(spark, f"DESCRIBE FUNCTION EXTENDED {quote_name(name)}")
    except PySparkException:
        return None  # there is none: Spark says what is wrong with the text
    lines = [str(row["function_desc"]) for row in rows]
    return _of_properties(lines) or _of_lines(lines)


def _of_properties(lines: Sequence[str]) -> SqlFunction | None:
    """Return a function of PySpark 4.0, which shows the properties of its entry."""
    stored = function_properties(lines)
    if not stored:
        return None
    config = {key.removeprefix(_CONFIG): value for key, value in stored.items()}
    returned = stored[f"{_STORED}returnType"]
    is_table = stored[f"{_STORED}isTableFunc"] == "true"
    return SqlFunction(
        name=parse_name(lines[0].partition(": ")[2]),
        parameters=stored.get(f"{_STORED}inputParam", ""),
        returned=f"TABLE ({returned})" if is_table else returned,
        is_deterministic=stored.get(f"{_STORED}deterministic") != "false",
        settings={key: value for key, value in config.items() if key in _SETTINGS},
        body=body_of(stored),
    )


_STORED = "sqlFunction."
_CONFIG = "sqlConfig."


def _of_lines(lines: Sequence[str]) -> SqlFunction | None:
    """Return a function of newer releases, which show a line for each part."""
    parts: dict[str, list[str]] = {}
    label = ""
    for line in lines:
        found = None if line.startswith(" ") else _LABEL.fullmatch(line)
        if found is not None and found[1] not in parts:
            label = found[1]
        parts.setdefault(label, []).append((line if found is None else found[2]).strip())
    kind = "".join(parts.get("Type", ()))
    if kind not in _SQL_KINDS or "Body" not in parts:
        return None
    settings = [line.partition("=") for line in parts.get("Configs", ())]
    returned = parts.get("Returns", [])
    return SqlFunction(
        name=parse_name(parts["Function"][0]),
        parameters=_columns([one for one in parts.get("Input", ()) if one != "()"]),
        returned=f"TABLE ({_columns(returned)})" if kind == "TABLE" else "".join(returned),
        is_deterministic=parts.get("Deterministic") != ["false"],
        settings={key: value for key, _, value in settings if key in _SETTINGS},
        body="\n".join(parts["Body"]),
    )


_SETTINGS = frozenset({"spark.sql.ansi.enabled", "spark.sql.session.timeZone"})
"""Those of a definition that change what a body means."""


def _columns(shown: Sequence[str]) -> str:
    """Return lines of a description, of which the names have one width, as a definition has them.

    >>> _columns(["q   BIGINT 'it's'", "b c STRING"])
    '`q` BIGINT, `b c` STRING'
    """
    width = next(
        (
            at
            for at in range(1, min(map(len, shown), default=0))
            if all(line[at - 1] == " " != line[at] for line in shown)
        ),
        0,
    )
    return ", ".join(f"{quote(line[:width].rstrip())} {_typed(line[width:])}" for line in shown)


def _typed(rest: str) -> str:
    """Return a type and its default without the comment, whose quotes are not doubled.

    >>> _typed("BIGINT DEFAULT 'it' 'it's'"), _typed("DECIMAL(1,0) 'it's'")
    ("BIGINT DEFAULT 'it'", 'DECIMAL(1,0)')
    """
    tokens = tokenize(rest)
    start = next((at for at, token in enumerate(tokens) if token.means("DEFAULT")), None)
    if start is None:
        return rest.partition(_COMMENT)[0].strip()
    comment = next(
        (
            token.start
            for before, token in pairwise(tokens[start:])
            if token.kind is TokenKind.STRING
            and (before.kind in _VALUES or before.text.upper() in _WHOLE)
        ),
        len(rest),
    )
    return rest[:comment].strip()


_COMMENT = " '"
_VALUES = frozenset({TokenKind.STRING, TokenKind.NUMBER})
_WHOLE = keywords("NULL TRUE FALSE )")
"""What ends a value, too."""
