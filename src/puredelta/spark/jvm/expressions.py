"""Expressions of Spark's plans, and the attributes that are a plan's columns.

Outside of this room an expression is opaque: code that needs to know something of one asks a
method, and each method is one call into the JVM or a few. Every attribute of an analyzed plan
has an *expression id*. A ``Column`` taken from a DataFrame (``source["id"]``) finds its attribute
by that id, so frames that take another's place must carry the other's ids.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeAlias

from pyspark.sql import Column, SparkSession
from pyspark.sql import types as T
from pyspark.sql.classic.column import Column as ClassicColumn

from puredelta.spark.jvm.gateway import (
    CATALYST,
    class_name,
    java_class,
    parser_of,
    require_unicode,
    scala_none,
    scala_seq,
    seq_items,
    session_of,
    text_items,
)

_BETWEEN = "\N{UNIT SEPARATOR}\n"
"""In no name of a column that anybody would choose."""
Nodes: TypeAlias = list[dict[str, Any]]
"""An expression as ``TreeNode.toJSON`` writes it."""
_EXPR_ID = re.compile(r"#(\d+)L?$")


class Expression:
    """An expression in the JVM."""

    __slots__ = ("java",)

    def __init__(self, java: Any) -> None:
        self.java = java

    @property
    def kind(self) -> str:
        """The name of its class, such as ``Alias``."""
        return class_name(self.java)

    def sql(self) -> str:
        """Return it as SQL, as Spark writes it."""
        return str(self.java.sql())

    def text(self) -> str:
        """Return what it prints in a plan."""
        return str(self.java.toString())

    def name(self) -> str:
        """Return the name of an attribute or an alias."""
        return str(self.java.name())

    def name_parts(self) -> tuple[str, ...]:
        """Return the parts of the name of an attribute that is not resolved."""
        return text_items(self.java.nameParts())

    def child(self) -> Expression:
        """Return the one expression below."""
        return Expression(self.java.child())

    def children(self) -> tuple[Expression, ...]:
        """Return the expressions below."""
        return tuple(map(Expression, seq_items(self.java.children())))

    def type(self) -> T.DataType:
        """Return the type of its values."""
        return T._parse_datatype_json_string(self.java.dataType().json())

    def has_type_of(self, other: Expression) -> bool:
        """Return whether both have the very same type."""
        return bool(self.java.dataType().equals(other.java.dataType()))

    def is_deterministic(self) -> bool:
        """Return whether it gives the same value each time it is evaluated over a row."""
        return bool(self.java.deterministic())

    def unresolved_names(self) -> tuple[str, ...]:
        """Return the names in it that the analyzer could not resolve, as SQL."""
        names, references = [], self.java.references().iterator()
        while references.hasNext():
            reference = references.next()
            if not reference.resolved():
                names.append(str(reference.sql()))
        return tuple(names)


class Attribute(Expression):
    """A column of a plan."""

    __slots__ = ()

    def expr_id(self) -> int:
        """Return the id by which plans know it."""
        return int(self.java.exprId().id())

    def qualifier(self) -> tuple[str, ...]:
        """Return the names of the relation it belongs to; empty if that has none."""
        return text_items(self.java.qualifier())


class Attributes:
    """The columns of a plan in order; each is fetched when it is first asked for."""

    def __init__(self, java: Any, length: int | None = None) -> None:
        """``java`` is a Scala ``Seq`` of attributes, of this length if it is known."""
        self.java = java
        self._known_length = length
        self._fetched: dict[int, Attribute] = {}

    @classmethod
    def of(cls, jvm: Any, attributes: Sequence[Any]) -> Attributes:
        """Return attributes of a JVM as one sequence."""
        return cls(scala_seq(jvm, attributes), len(attributes))

    @cached_property
    def _length(self) -> int:
        known = self._known_length
        return int(self.java.size()) if known is None else known

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, place: int) -> Attribute:
        if place not in self._fetched:
            self._fetched[place] = Attribute(self.java.apply(place))
        return self._fetched[place]

    def __iter__(self) -> Iterator[Attribute]:
        return (self[place] for place in range(len(self)))

    def expr_ids(self) -> list[int]:
        """Return the ids of all: one call, as a rule."""
        ids = expr_ids(seq_texts(self.java))
        if ids is None or len(ids) != len(self):  # a watermark prints more
            return [attribute.expr_id() for attribute in self]
        return ids

    def with_new_ids(self, places: Collection[int]) -> Attributes:
        """Return the same columns, those at some places with an id of their own."""
        return Attributes.of(
            self.java,
            [a.java.newInstance() if n in places else a.java for n, a in enumerate(self)],
        )


class LazyColumn(ClassicColumn):
    """A Column that the JVM makes when it is first used; most columns of a table never are."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    @cached_property
    def _jc(self) -> Any:
        return self._make()


def parsed(spark: SparkSession, expression: str | Column) -> Expression:
    """Return SQL text or a Column as an expression that is not yet resolved."""
    if isinstance(expression, str):
        require_unicode(expression)
        return Expression(parser_of(spark).parseExpression(expression))
    column: Any = expression
    return Expression(session_of(spark).expression(column._jc))


def column_of(expression: Expression) -> Column:
    """Return a resolved expression as a Column: it is not resolved again."""
    return ClassicColumn(_java_column(expression))


def lazy_column_of(fetch: Callable[[], Expression]) -> Column:
    """Return the same for an expression that is fetched when the Column is first used."""
    return LazyColumn(lambda: _java_column(fetch()))


def _java_column(expression: Expression) -> Any:
    java = expression.java
    return java_class(java, "org.apache.spark.sql.classic.ExpressionUtils").column(java)


def tried(expression: Expression) -> tuple[Expression, Expression]:
    """Return the value of a resolved expression, NULL where it raises an error, and whether it
    does.
    """
    java = expression.java
    made = {n: java_class(java, f"{CATALYST}.expressions.{n}") for n in _TRIED}
    struct = made["CreateStruct"].create(scala_seq(java, [java]))  # which is never NULL itself
    caught = made["TryEval"](struct)
    value = made["GetStructField"](caught, 0, scala_none(java))
    return Expression(value), Expression(made["IsNull"](caught))


_TRIED = ("CreateStruct", "TryEval", "GetStructField", "IsNull")


def aliased(expression: Expression, name: str, *, like: Attribute | None = None) -> Expression:
    """Return the expression under a name, with the id and qualifiers of ``like``."""
    java = expression.java
    no_names = scala_seq(java, [])
    if like is None:
        named = java_class(java, f"{CATALYST}.expressions.NamedExpression")
        expr_id, qualifier = named.newExprId(), no_names
    else:
        expr_id, qualifier = like.java.exprId(), like.java.qualifier()
    alias = java_class(java, f"{CATALYST}.expressions.Alias")
    return Expression(alias(java, name, expr_id, qualifier, scala_none(java), no_names))


# --- what attributes print ------------------------------------------------------------------


def seq_texts(seq: Any) -> list[str]:
    """Return the text of every element of a Scala ``Seq``, none of which has an empty one.

    A call into the JVM for all of them, not for each.
    """
    text = str(seq.mkString(_BETWEEN))
    return text.split(_BETWEEN) if text else []


def expr_ids(attributes: Iterable[str]) -> list[int] | None:
    """Return the ids at the end of what attributes print; ``None`` if one has none. Pure.

    >>> expr_ids(["id#4L", "a#b#17"])
    [4, 17]
    """
    found = [_EXPR_ID.search(attribute) for attribute in attributes]
    return [int(match[1]) for match in found if match] if all(found) else None


def name_of(attribute: str) -> str:
    """Return what an attribute prints without its id.

    >>> name_of("a#b#17")
    'a#b'
    """
    return _EXPR_ID.sub("", attribute)


# --- expressions as JSON ------------------------------------------------------------------------


def nodes_of(*filters: Any) -> Nodes | None:
    """Return conditions as one tree, whose root stands for all of them; None without any.

    Python gets the values that ``toJSON`` leaves out or prints in some time zone: instants as
    ``micros``, the elements of an ``InSet`` as the texts ``elements``.
    """
    first, *others = filters
    for more in others:
        first = first.concat(more)
    if first.isEmpty():
        return None
    # Any expression that takes a list will do; And takes two.
    every = java_class(first, f"{CATALYST}.expressions.Coalesce")(first)
    nodes: Nodes = json.loads(every.toJSON())
    for n, node in enumerate(nodes):
        if node["class"].endswith(".InSet"):
            node["elements"] = _elements(every.apply(n).hset())
        elif node.get("dataType") == "timestamp" and node.get("value") is not None:
            node["micros"] = every.apply(n).value()
    nodes[0]["class"] = "And"
    return nodes


def _elements(values: Any) -> Sequence[str] | None:
    """Return what each of a set of values prints; None if that cannot be told apart."""
    texts = str(values.mkString(_BETWEEN)).split(_BETWEEN)
    return texts if len(texts) == values.size() else None
