"""The conditions that a Connect client's plan puts on the tables that it reads.

Filters are read from the messages, from the table upwards: as long as every operator hands rows on
one by one and keeps the names of columns known, a filter above says what is true of the rows that
the query needs. An operator that is not known to do so ends that. Where conditions above may say
more than was understood, the table is in doubt, and the optimizer may be asked
(`puredelta.spark.connect.pushed_filters`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from puredelta.protocol.schema.predicates import Predicate, Ref, Side, conjuncts
from puredelta.protocol.schema.sql_lexer import keywords
from puredelta.protocol.schema.types import StructType
from puredelta.spark.connect.messages import EXPRESSION, RELATION, Message, kind_of, parts_of
from puredelta.spark.resolve.predicate_from_message import (
    NamesOfPlan,
    is_understood,
    predicate_of_message,
)
from puredelta.spark.resolve.predicate_from_sql import (
    NamedSide,
    Names,
    is_surely_boolean,
    parse_predicate,
)
from puredelta.spark.resolve.select_text import PlainSelect, whole_select
from puredelta.spark.resolve.text_conditions import text_conditions
from puredelta.spark.session.names import parse_name

Column: TypeAlias = tuple[str, Ref, StructType | None]
"""Name, reference, and the type where it is a struct."""


@dataclass(slots=True, eq=False)
class TableRead:
    """A place where a plan reads a table."""

    relation: Message
    conditions: list[Predicate] = field(default_factory=list)
    """Each is true of every row that the plan needs; columns of the table are those of TARGET."""
    in_doubt: bool = False
    """Whether the plan may need fewer rows than the conditions say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Visible:
    """The columns of a table that what is above can name."""

    read: TableRead
    columns: tuple[Column, ...]
    qualifier: tuple[str, ...] = ()
    is_open: bool = True
    """Whether a condition on them holds below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scope:
    """The known part of the output of an operator."""

    tables: tuple[_Visible, ...]
    is_whole: bool = True
    """Whether all columns come from these tables."""
    bound: Mapping[int, tuple[_Visible, ...]] = field(default_factory=dict)
    """The output of the operators below, by the ids that columns may be bound to."""

    def names(self, read: TableRead) -> NamesOfPlan:
        """Return the names of one table's columns, beside those of the others."""
        bound = {number: self._names(read, self._left(some)) for number, some in self.bound.items()}
        return NamesOfPlan(free=self._names(read, self.tables), bound=bound)

    def _left(self, below: Sequence[_Visible]) -> list[_Visible]:
        """Return the columns of an operator below that still have their names here."""
        shown = {(table.read, name, ref) for table in self.tables for name, ref, _ in table.columns}
        return [
            replace(
                table,
                columns=tuple(c for c in table.columns if (table.read, c[0], c[1]) in shown),
            )
            for table in below
        ]

    def _names(self, read: TableRead, tables: Sequence[_Visible]) -> Names:
        sides = []
        for table in tables:
            side = Side.TARGET if table.read is read and table.is_open else Side.SOURCE
            columns = [
                # The first part of a longer name may be the alias of a table that is not known.
                (name, replace(ref, side=side), struct if self.is_whole else None)
                for name, ref, struct in table.columns
            ]
            sides.append(NamedSide(side=side, qualifier=table.qualifier, columns=columns))
        return Names(sides=sides, case_sensitive=False)


Columns: TypeAlias = Callable[[Message], Sequence[Column] | None]
"""Returns the columns of a table that a relation reads; None for any other relation."""


def table_reads(plan: Message, columns: Columns) -> list[TableRead]:
    """Return the places where a plan reads tables, each with the conditions on its rows."""
    walk = _Walk(columns)
    if kind_of(plan) == RELATION:
        walk.scope(plan)
    else:
        walk.every_relation(plan)
    return walk.reads


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsOfTable:
    """A part of a plan whose rows are all rows of a table under conditions."""

    read: TableRead
    names: NamesOfPlan
    """Of the table's columns, as the part shows them."""
    shown: tuple[Column, ...]


def rows_of_table(relation: Message, columns: Columns) -> RowsOfTable | None:
    """Return what a relation shows of a table, if it is nothing but rows under conditions."""
    walk = _Walk(columns)
    return walk.only_table(walk.scope(relation))


def rows_of_select(
    select: PlainSelect, references: Sequence[Message], columns: Columns
) -> RowsOfTable | None:
    """Return what the items of a query in the text of ``references`` can name, if that is so."""
    walk = _Walk(columns)
    return walk.only_table(walk.below_items(select, references))


class _Walk:
    def __init__(self, columns: Columns) -> None:
        self.reads: list[TableRead] = []
        self._columns = columns

    def every_relation(self, message: Message) -> None:
        """Walk through the relations inside a message, which hand on no scope."""
        for relation in _relations(message):
            self.scope(relation)

    def scope(self, relation: Message) -> _Scope | None:
        """Return what is known of a relation's output."""
        found = self._scope(relation)
        if found is None:
            return None
        number = relation.common.plan_id if relation.common.HasField("plan_id") else None
        if number is None:
            return found
        return replace(found, bound={**found.bound, number: found.tables})

    def _scope(self, relation: Message) -> _Scope | None:  # noqa: PLR0911 - one case for each kind
        columns = self._columns(relation)
        if columns is not None:
            self.reads.append(TableRead(relation))
            return _Scope(tables=(_Visible(read=self.reads[-1], columns=tuple(columns)),))
        kind = relation.WhichOneof("rel_type")
        if kind is None:
            return None
        operator = getattr(relation, kind)
        match kind:
            case "filter":
                return self._filter(operator)
            case "sort" | "hint" | "repartition" | "repartition_by_expression":
                return self._only_input(operator)
            case "subquery_alias":
                return _renamed_table(self._only_input(operator), operator)
            case "project":
                return _projected(self._only_input(operator), operator)
            case "with_columns":
                return _with_columns(self._only_input(operator), operator.aliases)
            case "with_columns_renamed":
                return _with_new_names(self._only_input(operator), operator)
            case "drop":
                return _without(self._only_input(operator), operator)
            case "join":
                return self._join(operator)
            case "with_relations":
                return self._with_relations(operator)
            case _:
                self.every_relation(operator)
                return None

    def _only_input(self, operator: Message) -> _Scope | None:
        """Return the scope of the input; relations in expressions, if any, are in doubt."""
        scope = self.scope(operator.input)
        for part in parts_of(operator):
            if kind_of(part) != RELATION:
                first = len(self.reads)
                self.every_relation(part)
                self._doubt(first)
        return scope

    def _filter(self, operator: Message) -> _Scope | None:
        first = len(self.reads)
        scope = self._only_input(operator)
        if scope is None:
            self._doubt(first)
            return None
        of_all = []
        for table in scope.tables:
            predicate = predicate_of_message(operator.condition, scope.names(table.read))
            of_all.append(is_understood(predicate))
            if table.is_open:
                table.read.conditions += conjuncts(predicate)
        if not (scope.is_whole and any(of_all)):
            self._doubt(first)
        return scope

    def _join(self, operator: Message) -> _Scope | None:
        first = len(self.reads)
        left, right = self.scope(operator.left), self.scope(operator.right)
        self._doubt(first)  # the optimizer infers conditions of one side from those of the other
        kind = type(operator).JoinType.Name(operator.join_type).removeprefix("JOIN_TYPE_")
        keeps_left = kind in {"INNER", "CROSS", "LEFT_OUTER", "LEFT_SEMI", "LEFT_ANTI"}
        keeps_right = kind in {"INNER", "CROSS", "RIGHT_OUTER"}
        shows_right = kind not in {"LEFT_SEMI", "LEFT_ANTI"}
        sides = [_closed(left, is_open=keeps_left)]
        sides += [_closed(right, is_open=keeps_right)] if shows_right else []
        known = [side for side in sides if side is not None]
        if not known:
            return None
        bound: dict[int, tuple[_Visible, ...]] = {}
        for side in known:
            for number, tables in side.bound.items():
                bound[number] = () if number in bound else tables
        return _Scope(
            tables=tuple(table for side in known for table in side.tables),
            is_whole=len(known) == len(sides) and all(side.is_whole for side in known),
            bound=bound,
        )

    def only_table(self, scope: _Scope | None) -> RowsOfTable | None:
        """Return what a scope shows of one table, if its rows are surely known."""
        if scope is None or not scope.is_whole or len(self.reads) != 1 or self.reads[0].in_doubt:
            return None
        (read,), (table,) = self.reads, scope.tables
        if not (table.is_open and all(map(is_surely_boolean, read.conditions))):
            return None
        return RowsOfTable(read=read, names=scope.names(read), shown=table.columns)

    def below_items(self, select: PlainSelect, references: Sequence[Message]) -> _Scope | None:
        """Return what the items of a query can name; None where it is not of one of the tables."""
        if isinstance(select.relation, PlainSelect):
            scope = self._selected(select.relation, references)
        else:
            named = [one for one in references if one.subquery_alias.alias == select.relation]
            scope = self.scope(named[0]) if len(named) == 1 else None
        if scope is None:
            return None
        if select.alias is not None:
            tables = (replace(table, qualifier=(select.alias,)) for table in scope.tables)
            scope = replace(scope, tables=tuple(tables))
        if select.condition is not None:
            for table in scope.tables:
                tree = parse_predicate(select.condition, scope.names(table.read).free)
                if tree is not None and table.is_open:
                    table.read.conditions += conjuncts(tree)
                table.read.in_doubt |= tree is None or not (scope.is_whole and is_understood(tree))
        return replace(scope, bound={})

    def _selected(self, select: PlainSelect, references: Sequence[Message]) -> _Scope | None:
        """Return what a query shows of a relation that goes along with its text."""
        is_plain = all(item.is_star or item.is_pure for item in select.items)
        scope = self.below_items(select, references) if is_plain else None
        if scope is None:
            return None
        tables = []
        for table in scope.tables:
            names = scope.names(table.read).free
            columns: list[Column] = []
            for item in select.items:
                ref = None if item.column is None else names.find(item.column)
                if item.is_star:
                    columns += table.columns
                elif ref is not None and ref.side is Side.TARGET and table.is_open:
                    name = item.alias or (item.column or ("",))[-1]
                    columns.append((name, ref, _struct_of(ref)))
            tables.append(replace(table, columns=tuple(columns), qualifier=()))
        return replace(scope, tables=tuple(tables))

    def _with_relations(self, operator: Message) -> _Scope | None:
        first = len(self.reads)
        text = operator.root.sql.query if operator.root.WhichOneof("rel_type") == "sql" else ""
        select = whole_select(text) if len(operator.references) == 1 else None
        scope = None if select is None else self._selected(select, operator.references)
        if scope is not None:
            return scope
        del self.reads[first:]
        scope = self.scope(operator.root)
        tables = frozenset(one.subquery_alias.alias for one in operator.references)
        for reference in operator.references:
            self._referenced(reference, text, tables)
        return scope

    def _referenced(self, reference: Message, text: str, tables: frozenset[str]) -> None:
        """Walk through a relation that goes along with a text."""
        first = len(self.reads)
        scope = self.scope(reference)
        is_in_doubt = any(read.in_doubt for read in self.reads[first:])
        self._doubt(first)
        if not text or scope is None or not scope.is_whole or len(self.reads) != first + 1:
            return
        read, [table] = self.reads[first], scope.tables

        def names(alias: str) -> Names:
            side = NamedSide(side=Side.TARGET, qualifier=(alias,), columns=table.columns)
            return Names(sides=[side], case_sensitive=True)

        columns = [name for name, _, _ in table.columns]
        alias = reference.subquery_alias.alias
        found = text_conditions(text, alias, columns, names, tables=tables)
        read.in_doubt = is_in_doubt or found.may_be_more
        if table.is_open:
            read.conditions += found.conditions

    def _doubt(self, first: int) -> None:
        for read in self.reads[first:]:
            read.in_doubt = True


def _relations(message: Message) -> Iterator[Message]:
    """Yield the outermost relations inside a message."""
    for part in parts_of(message):
        if kind_of(part) == RELATION:
            yield part
        else:
            yield from _relations(part)


def _closed(scope: _Scope | None, *, is_open: bool) -> _Scope | None:
    """Return the scope of a join's side; if it may show NULLs, conditions do not hold below."""
    if scope is None or is_open:
        return scope

    def closed(tables: tuple[_Visible, ...]) -> tuple[_Visible, ...]:
        return tuple(replace(table, is_open=False) for table in tables)

    bound = {number: closed(tables) for number, tables in scope.bound.items()}
    return replace(scope, tables=closed(scope.tables), bound=bound)


def _renamed_table(scope: _Scope | None, operator: Message) -> _Scope | None:
    if scope is None:
        return None
    name = (*operator.qualifier, str(operator.alias))
    tables = tuple(replace(table, qualifier=name) for table in scope.tables)
    return replace(scope, tables=tables)


_OPERATORS = frozenset({"+", "-", "*", "/", "%", "==", "=", "!=", "<=>", "<", "<=", ">", ">="})
_PURE = keywords(
    "AND OR NOT WHEN COALESCE ISNULL ISNOTNULL IN NEGATIVE CONCAT UPPER LOWER TRIM SUBSTRING "
    "LENGTH ABS ROUND YEAR MONTH DAY TO_DATE DATE_TRUNC"
)
"""Functions of one row that give the same every time."""
_VALUES = frozenset({"literal", "unresolved_attribute", "cast", "unresolved_extract_value"})


def _is_pure(expression: Message) -> bool:
    """Return whether an expression computes a value of each row, with nothing else in mind."""
    kind = expression.WhichOneof("expr_type")
    if kind == "unresolved_function":
        call = expression.unresolved_function
        is_known = call.function_name in _OPERATORS or call.function_name.upper() in _PURE
        if call.is_user_defined_function or not is_known:
            return False
    elif kind == "alias":
        if len(expression.alias.name) != 1:
            return False
    elif kind not in _VALUES:
        return False
    return all(_is_pure(part) for part in _operands(getattr(expression, kind)))


def _operands(message: Message) -> Iterator[Message]:
    for part in parts_of(message):
        if kind_of(part) == EXPRESSION:
            yield part


def _is_star(expression: Message) -> bool:
    if expression.WhichOneof("expr_type") != "unresolved_star":
        return False
    return not expression.unresolved_star.ListFields()


def _projected(scope: _Scope | None, operator: Message) -> _Scope | None:
    """Return the columns that a projection shows as they are, perhaps under another name."""
    expressions = operator.expressions
    if scope is None or not all(_is_star(one) or _is_pure(one) for one in expressions):
        return None
    tables = []
    for table in scope.tables:
        names = scope.names(table.read)
        columns: list[Column] = []
        for one in expressions:
            if _is_star(one):
                columns += table.columns
            elif (column := _shown(one, names)) is not None and table.is_open:
                columns.append(column)
        tables.append(replace(table, columns=tuple(columns)))
    return replace(scope, tables=tuple(tables))


def _shown(expression: Message, names: NamesOfPlan) -> Column | None:
    """Return a column that is shown as it is; None for a computed one, or another table's."""
    name = None
    while expression.WhichOneof("expr_type") == "alias":
        name = name or expression.alias.name[0]
        expression = expression.alias.expr
    if expression.WhichOneof("expr_type") != "unresolved_attribute":
        return None
    ref = names.find(expression.unresolved_attribute)
    if ref is None or ref.side is not Side.TARGET:
        return None
    name = name or parse_name(expression.unresolved_attribute.unparsed_identifier)[-1]
    return name, ref, _struct_of(ref)


def _struct_of(ref: Ref) -> StructType | None:
    return ref.type if isinstance(ref.type, StructType) else None


def _with_columns(scope: _Scope | None, aliases: Sequence[Message]) -> _Scope | None:
    if scope is None or not all(_is_pure(alias.expr) for alias in aliases):
        return None
    tables = []
    for table in scope.tables:
        names = scope.names(table.read)
        new = [alias.name[0].lower() for alias in aliases]
        columns = [column for column in table.columns if column[0].lower() not in new]
        for alias in aliases:
            shown = _shown(alias.expr, names)
            if shown is not None and table.is_open:
                columns.append((alias.name[0], *shown[1:]))
        tables.append(replace(table, columns=tuple(columns)))
    return replace(scope, tables=tuple(tables))


def _with_new_names(scope: _Scope | None, operator: Message) -> _Scope | None:
    if scope is None:
        return None
    new = dict(operator.rename_columns_map)
    if hasattr(operator, "renames"):
        new |= {one.col_name: one.new_col_name for one in operator.renames}
    by_name = {name.lower(): other for name, other in new.items()}
    added = {other.lower() for other in new.values()}
    tables = []
    for table in scope.tables:
        columns = []
        for name, ref, struct in table.columns:
            other = by_name.get(name.lower())
            if other is not None:
                columns.append((other, ref, struct))
            elif name.lower() not in added:  # else two columns have the name
                columns.append((name, ref, struct))
        tables.append(replace(table, columns=tuple(columns)))
    return replace(scope, tables=tuple(tables))


def _without(scope: _Scope | None, operator: Message) -> _Scope | None:
    if scope is None:
        return None
    gone = {name.lower() for name in operator.column_names}
    for column in operator.columns:
        if column.WhichOneof("expr_type") != "unresolved_attribute":
            return None
        gone.add(parse_name(column.unresolved_attribute.unparsed_identifier)[-1].lower())
    tables = tuple(
        replace(table, columns=tuple(c for c in table.columns if c[0].lower() not in gone))
        for table in scope.tables
    )
    return replace(scope, tables=tables)
