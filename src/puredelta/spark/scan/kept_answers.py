"""What a Connect server has said of queries, kept for the next query that is the same.

A text is sent under new names each time, so equal queries are found by what their names mean: the
same tables with the same columns, the same parameters and settings. Only a text that names nothing
but Delta tables and Spark's own functions is known so well. All is forgotten when this client
sends anything that may change what a text means, and after a few seconds, because another client
of the same session may do so.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from puredelta.spark.connect.messages import Message, copy_of
from puredelta.spark.connect.plan_hook import watch_changes
from puredelta.spark.connect.pushed_filters import Needed
from puredelta.spark.session.names import PREFIX

KEPT_SECONDS = 10.0
_QUERIES_MAX = 200
_OWN_NAME = re.compile(rf"{PREFIX}rows_[0-9a-f]{{32}}")

_Key: TypeAlias = tuple[object, ...]
Identity: TypeAlias = Callable[[Message], _Key | None]
"""Returns what a relation reads of a table, whichever version; None for any other relation."""


@dataclass(slots=True, eq=False)
class QueryAnswers:
    """The answers to one query."""

    at: float
    columns: T.StructType | None = None
    needed: dict[int, Needed] = field(default_factory=dict)
    """What the optimizer would read, by the place of a table in the query."""

    @property
    def is_recent(self) -> bool:
        """Whether they still count."""
        return time.monotonic() - self.at <= KEPT_SECONDS


@dataclass(slots=True)
class _Kept:
    by_key: dict[_Key, QueryAnswers] = field(default_factory=dict)
    by_text: dict[str, QueryAnswers] = field(default_factory=dict)

    def clear(self) -> None:
        self.by_key.clear()
        self.by_text.clear()


_kept: WeakKeyDictionary[SparkSession, _Kept] = WeakKeyDictionary()


def keep_answers(spark: SparkSession, query: Message, identity: Identity) -> QueryAnswers | None:
    """Return the answers to a query that names nothing of the server's, to read and to add to.

    None if its tables are not read as they are.
    """
    key = _key(query, identity)
    if key is None:
        return None
    kept = _kept.get(spark)
    if kept is None:
        kept = _kept.setdefault(spark, _Kept())
        watch_changes(spark, kept.clear)
    if len(kept.by_text) >= _QUERIES_MAX:
        kept.clear()
    known = kept.by_key.get(key)
    if known is None or not known.is_recent:
        known = kept.by_key[key] = QueryAnswers(time.monotonic())
    kept.by_text[query.with_relations.root.sql.query] = known
    return known


def kept_answers(spark: SparkSession | None, relation: Message) -> QueryAnswers | None:
    """Return the answers to the very query that `keep_answers` was called with, if they count."""
    if spark is None or relation.WhichOneof("rel_type") != "with_relations":
        return None
    kept, root = _kept.get(spark), relation.with_relations.root
    if kept is None or root.WhichOneof("rel_type") != "sql":
        return None
    found = kept.by_text.get(root.sql.query)
    return found if found is not None and found.is_recent else None


def _key(query: Message, identity: Identity) -> _Key | None:
    if query.WhichOneof("rel_type") != "with_relations":
        return None
    numbers: dict[str, str] = {}
    text = _OWN_NAME.sub(
        lambda name: numbers.setdefault(name[0], f"{PREFIX}rows_{len(numbers)}"),
        query.with_relations.root.sql.query,
    )
    arguments = copy_of(query.with_relations.root.sql)
    arguments.query = ""
    parts: list[object] = [text, arguments.SerializeToString(deterministic=True)]
    for reference in query.with_relations.references:
        alias = reference.subquery_alias
        table = identity(alias.input)
        if table is None or alias.alias not in numbers:
            return None
        parts += [numbers[alias.alias], table]
    return tuple(parts)
