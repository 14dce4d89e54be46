"""Target columns of assignments, and the keyword DEFAULT (M-25 to M-29, M-100).

DEFAULT is the keyword only where no column of that name is in scope, as in Spark. So the
keyword is a name that the analyzer could not resolve.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from pyspark.sql import functions as F

from puredelta.errors import InvalidRequestError, Message
from puredelta.protocol.features.generated_columns import Identity
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.types import ArrayType, DataType, MapType, StructField, StructType
from puredelta.spark.resolve.expressions import (
    Request,
    Resolution,
    ResolutionError,
    ResolutionProblem,
    Resolver,
    Scope,
)
from puredelta.spark.session.names import display_name, parse_name, quote, quote_name


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetField:
    """A column of the target, or a field inside it."""

    names: tuple[str, ...]
    """As the schema spells them, the column first."""
    written: tuple[str, ...]
    """As the user spelled them, without qualifier."""
    type: DataType

    @property
    def column(self) -> str:
        """The top level column."""
        return self.names[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetNames:
    """The names that are valid on the left of ``=``."""

    schema: StructType
    qualifier: tuple[str, ...]
    """The target's alias, or the parts of its catalog name; empty if it has none."""
    displayed: Sequence[str]
    """The columns as listed in messages."""
    case_sensitive: bool

    def find(self, text: str, *, clause: str) -> TargetField:
        """Return the meaning of a name; ``clause`` is the name of its clause in messages.

        A qualifier wins over a struct column of the same name, as everywhere in Spark.

        Raises:
            InvalidRequestError: there is no such column, or a step leads into a value that is no
                struct.
        """
        parts = parse_name(text)
        for skipped in self._qualifier_lengths(parts):
            written = parts[skipped:]
            field = self._field(self.schema, written[0])
            if field is not None:
                return self._descend(field, written, parts[:skipped], clause)
        raise InvalidRequestError(
            Message.MERGE_UNRESOLVED_EXPRESSION_COLUMN,
            sql_expr=display_name(parts),
            clause=clause,
            cols=", ".join(self.displayed),
        )

    def _qualifier_lengths(self, parts: Sequence[str]) -> list[int]:
        """Return possible lengths of a qualifier in leading parts, the longest first, then none."""
        lengths = range(min(len(self.qualifier), len(parts) - 1), 0, -1)
        own = [self._cased(q) for q in self.qualifier]
        return [n for n in lengths if own[-n:] == [self._cased(p) for p in parts[:n]]] + [0]

    def _descend(
        self, field: StructField, written: tuple[str, ...], qualifier: Sequence[str], clause: str
    ) -> TargetField:
        names, kind = [field.name], field.type
        for part in written[1:]:
            if not isinstance(kind, StructType):
                raise self._no_struct((*qualifier, *names), kind, part, clause)
            found = self._field(kind, part)
            if found is None:
                raise InvalidRequestError(
                    Message.FIELD_NOT_FOUND_DESCEND,
                    field=quote(part),
                    listed=", ".join(quote(n) for n in kind.names),
                    written=quote_name(names),
                    field_name=part,
                    fields=kind.names,
                )
            names.append(found.name)
            kind = found.type
        return TargetField(names=tuple(names), written=written, type=kind)

    def _no_struct(
        self, path: Sequence[str], kind: DataType, part: str, clause: str
    ) -> InvalidRequestError:
        if isinstance(kind, ArrayType | MapType):
            return InvalidRequestError(
                Message.UNSUPPORTED_NESTED_FIELD_IN_UPDATE,
                value=display_name((*path, part)),
                clause=clause,
                displayed=", ".join(self.displayed),
                column=display_name(path),
                data_type=simple_string(kind),
            )
        return InvalidRequestError(
            Message.INVALID_EXTRACT_BASE_FIELD_TYPE,
            kind=simple_string(kind).upper(),
            base=display_name(path),
            other=simple_string(kind),
        )

    def _field(self, struct: StructType, name: str) -> StructField | None:
        return struct.find(name) if self.case_sensitive else struct.find_ignoring_case(name)

    def _cased(self, name: str) -> str:
        return name if self.case_sensitive else name.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceNames:
    """The names of source columns that become new columns of the target (M-46)."""

    relations: tuple[TargetNames, ...]
    """One per qualifier: a source may join several relations."""

    @classmethod
    def of(
        cls, schema: StructType, *, displayed: Sequence[str], case_sensitive: bool
    ) -> SourceNames:
        """Group the columns by their qualifier in messages."""
        by_qualifier: dict[tuple[str, ...], list[StructField]] = {}
        for field, shown in zip(schema.fields, displayed, strict=True):
            by_qualifier.setdefault(parse_name(shown)[:-1], []).append(field)
        return cls(
            relations=tuple(
                TargetNames(
                    schema=StructType(tuple(fields)),
                    qualifier=qualifier,
                    displayed=displayed,
                    case_sensitive=case_sensitive,
                )
                for qualifier, fields in (by_qualifier or {(): []}).items()
            )
        )

    def find(self, text: str, *, clause: str) -> TargetField:
        """Return the source column or field of a name."""
        for names in self.relations[:-1]:
            with suppress(InvalidRequestError):
                return names.find(text, clause=clause)
        return self.relations[-1].find(text, clause=clause)


def require_no_conflict(paths: Sequence[TargetField]) -> None:
    """Refuse two assignments to one column, or to a column and a field inside it (M-26).

    Raises:
        InvalidRequestError: names the two.
    """
    by_column: dict[str, list[TargetField]] = {}
    for path in paths:
        known = by_column.setdefault(path.column, [])
        for other in known:
            shared = min(len(path.names), len(other.names))
            if path.names[:shared] == other.names[:shared]:
                both = ", ".join(quote(".".join(p.written)) for p in (other, path))
                raise InvalidRequestError(Message.CONFLICT_SET_COLUMN, column_list=both)
        known.append(path)


def require_insertable(paths: Sequence[TargetField], *, two_spellings: bool = True) -> None:
    """Refuse nested fields and repeated columns in an INSERT list (M-27).

    ``two_spellings`` of one column are tolerated, the first value counts (M-29).

    Raises:
        InvalidRequestError: names the column.
    """
    for path in paths:
        if len(path.names) > 1:
            raise InvalidRequestError(
                Message.UNSUPPORTED_NESTED_FIELD_IN_OPERATION,
                operation="INSERT clause of MERGE operation",
                field_name=quote_name(path.names),
            )
    written = [path.written[0] if two_spellings else path.column for path in paths]
    repeated = sorted(name for name, number in Counter(written).items() if number > 1)
    if repeated:
        raise InvalidRequestError(
            Message.DUPLICATE_COLUMNS_ON_INSERT, repeated=", ".join(repeated), columns=repeated
        )


def require_no_identity_update(
    paths: Sequence[TargetField], identities: Mapping[str, Identity]
) -> None:
    """Refuse to assign an identity column of an existing row (M-102).

    Raises:
        InvalidRequestError: names the column.
    """
    for path in paths:
        if path.column in identities:
            raise InvalidRequestError(
                Message.IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED,
                written=path.written[0],
                col_name=path.column,
            )


def require_no_explicit_identity(
    paths: Sequence[TargetField], identities: Mapping[str, Identity]
) -> None:
    """Refuse values for a column that is GENERATED ALWAYS AS IDENTITY (M-102).

    Raises:
        InvalidRequestError: names the column.
    """
    for path in paths:
        identity = identities.get(path.column)
        if identity is not None and not identity.allows_explicit_insert:
            raise InvalidRequestError(
                Message.IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED_CLAUSE,
                written=path.written[0],
                col_name=path.column,
            )


def find_set_column(
    written: str, schema: StructType, resolver: Resolver, *, case_sensitive: bool
) -> TargetField:
    """Return the target of an assignment of UPDATE; it may have a qualifier.

    The analyzer resolves the name like any expression, so an unresolved name is Spark's own
    error; a resolved one that cannot be written, such as a value of a map, is Delta's.

    Raises:
        InvalidRequestError: it is inside an array or a map.
        pyspark.errors.AnalysisException: there is no such column or field.
    """
    frames = resolver.frames
    names = TargetNames(
        schema=schema,
        qualifier=frames.target_qualifier,
        displayed=frames.displayed(Scope.TARGET),
        case_sensitive=case_sensitive,
    )
    try:
        return names.find(written, clause="UPDATE clause")
    except InvalidRequestError:
        resolver.check([F.col(written)], Scope.TARGET)
        raise


_KEYWORD = "default"
_NOTHING = "NULL"


def resolve_with_defaults(
    resolver: Resolver, requests: Sequence[Request], values: Collection[int]
) -> tuple[Resolution, frozenset[int]]:
    """Resolve all requests; also return the ``values`` that are the keyword.

    ``values`` are the positions of whole assigned values, the only place for the keyword.
    """
    resolution = resolver.resolve(requests)
    keywords = frozenset(
        error.position
        for error in resolution.errors
        if error.position in values and _is_keyword(requests[error.position], error)
    )
    if keywords:
        plain = [
            replace(r, expression=_NOTHING) if n in keywords else r for n, r in enumerate(requests)
        ]
        resolution = resolver.resolve(plain)
    return resolution, keywords


def _is_keyword(request: Request, error: ResolutionError) -> bool:
    given = request.expression
    return (
        error.problem is ResolutionProblem.UNRESOLVED
        and isinstance(given, str)
        and given.strip().lower() == _KEYWORD
    )
