"""Builders of table definitions, with the methods and argument checks of ``delta.tables``.

As in delta-spark, methods change the builder and return it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NoReturn, TypeVar

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from puredelta.commands.create.as_select import NewTable
from puredelta.commands.create.create_table import CreateMode, create_table
from puredelta.commands.create.definition import TableDefinition
from puredelta.commands.create.registered import define_registered
from puredelta.commands.defined_columns import column, require_valid_columns, stored_columns
from puredelta.errors import InvalidRequestError, Message, UnsupportedError
from puredelta.protocol.features.generated_columns import IdentitySpec
from puredelta.protocol.schema.types import StructField, StructType
from puredelta.spark.catalog.unity_entries import creation_name
from puredelta.spark.jvm.catalog import SESSION_CATALOG
from puredelta.spark.session.names import parse_name
from puredelta.spark.session.pyspark_errors import methods_like_pyspark
from puredelta.spark.session.storage import open_log
from puredelta.spark.session.types import without_table_metadata
from puredelta.statements.names.names import require_table
from puredelta.statements.parse.table_name import TableName

Table = TypeVar("Table")

__all__ = ["DeltaTableBuilder", "IdentityGenerator"]


@dataclass
class IdentityGenerator:
    """Values of an identity column: the first one, and the step to the next."""

    start: int = 1
    step: int = 1


@methods_like_pyspark
class DeltaTableBuilder(Generic[Table]):
    """Builder of a table: `execute` creates or replaces it.

    Use ``DeltaTable.create``, ``createIfNotExists``, ``replace`` or ``createOrReplace`` to
    get one. It needs a name in the session catalog, a location, or both.

    Examples:
        >>> events = (
        ...     DeltaTable.create(spark)
        ...     .location("/data/events")
        ...     .addColumn("id", "BIGINT", nullable=False)
        ...     .addColumn("at", "TIMESTAMP")
        ...     .addColumn("day", "DATE", generatedAlwaysAs="CAST(at AS DATE)")
        ...     .partitionedBy("day")
        ...     .execute()
        ... )  # doctest: +SKIP
    """

    def __init__(
        self,
        spark: SparkSession,
        mode: CreateMode,
        open_table: Callable[[str, TableName | None], Table],
    ) -> None:
        self._spark = spark
        self._mode = mode
        self._open_table = open_table
        self._name: TableName | None = None
        self._location: str | None = None
        self._comment: str | None = None
        self._columns: list[StructField] = []
        self._properties: dict[str, str] = {}
        self._partition_columns: tuple[str, ...] = ()
        self._clustering_columns: tuple[str, ...] | None = None

    def tableName(self, identifier: str) -> DeltaTableBuilder[Table]:
        """Set the name in the session catalog; ``delta.`/path` `` is a location."""
        _require_type(str, "Identifier must be str.", identifier)
        self._name = TableName(parse_name(identifier))
        return self

    def location(self, location: str) -> DeltaTableBuilder[Table]:
        """Set the directory of the table."""
        _require_type(str, "Location must be str.", location)
        self._location = location
        return self

    def comment(self, comment: str) -> DeltaTableBuilder[Table]:
        """Set the description of the table."""
        _require_type(str, "Table comment must be str.", comment)
        self._comment = comment
        return self

    def addColumn(
        self,
        colName: str,
        dataType: str | T.DataType,
        nullable: bool = True,
        generatedAlwaysAs: str | IdentityGenerator | None = None,
        generatedByDefaultAs: IdentityGenerator | None = None,
        comment: str | None = None,
    ) -> DeltaTableBuilder[Table]:
        """Add a column.

        ``generatedAlwaysAs`` is SQL over other columns, or an `IdentityGenerator`;
        ``generatedByDefaultAs`` is an `IdentityGenerator` whose values a user may override.

        Raises:
            TypeError, ValueError: an argument is of the wrong type or excludes another.
            InvalidRequestError: an identity column is no BIGINT.
            pyspark.errors.ParseException: the type is invalid.
        """
        _require_type(str, "Column name must be str.", colName)
        if type(dataType) is not str and not isinstance(dataType, T.DataType):
            _raise_type_error("Column data type must be str or DataType.", dataType)
        kind = T.DataType.fromDDL(dataType) if isinstance(dataType, str) else dataType
        _require_type(bool, "Column nullable must be bool.", nullable)
        generated_as = _generation(generatedAlwaysAs, generatedByDefaultAs)
        if comment is not None:
            _require_type(str, "Column comment must be str.", comment)
        added = column(colName, kind, nullable=nullable, generated_as=generated_as, comment=comment)
        if isinstance(generated_as, IdentitySpec):
            require_valid_columns(StructType((added,)), ())
        self._columns.append(added)
        return self

    def addColumns(self, cols: T.StructType | list[T.StructField]) -> DeltaTableBuilder[Table]:
        """Add the columns of a schema with their metadata, except that of another table.

        Ids, defaults and expressions are left out; `addColumn` sets those of a column.
        """
        if isinstance(cols, list):
            for col in cols:
                _require_type(T.StructField, "Column in existing schema must be StructField.", col)
            cols = T.StructType(cols)
        _require_type(T.StructType, "Schema must be StructType or a list of StructField.", cols)
        self._columns += stored_columns(without_table_metadata(cols)).fields
        return self

    def partitionedBy(self, *cols: str | list[str] | tuple[str, ...]) -> DeltaTableBuilder[Table]:
        """Set the partition columns, as several arguments or one list."""
        self._partition_columns = _names(cols, "Partitioning column must be str.")
        return self

    def clusterBy(self, *cols: str | list[str] | tuple[str, ...]) -> DeltaTableBuilder[Table]:
        """Set the clustering columns; fields of structs are dotted."""
        self._clustering_columns = _names(cols, "Clustering column must be str.")
        return self

    def property(self, key: str, value: str) -> DeltaTableBuilder[Table]:
        """Set a table property."""
        _require_type(str, "Key and value of property must be string.", key, value)
        self._properties[key] = value
        return self

    def execute(self) -> Table:
        """Create or replace the table and return it.

        With a name and no location the catalog owns the directory, and dropping the table
        deletes it.

        Raises:
            InvalidRequestError: the table exists, or the definition is invalid; the code names
                the broken rule.
            TableNotFoundError: there is nothing to replace, or the name belongs to another format.
            UnsupportedError: a name in another catalog, or a feature that is not implemented.
            ConflictError: another writer created or changed the table meanwhile.
        """
        definition = TableDefinition(
            columns=StructType(tuple(self._columns)),
            partition_columns=self._partition_columns,
            clustering_columns=None
            if self._clustering_columns is None
            else tuple(parse_name(name) for name in self._clustering_columns),
            properties=self._properties,
            description=self._comment,
        )
        if self._name is not None and self._name.path is None:
            location = self._defined_by_name(self._name, definition)
            return self._open_table(location, self._name)
        location = self._path()
        log = open_log(self._spark, location)
        create_table(self._spark, log, definition, mode=self._mode)
        return self._open_table(location, None)

    def _defined_by_name(self, name: TableName, definition: TableDefinition) -> str:
        """Create or replace the table in the session catalog and return its location."""
        entry = creation_name(self._spark, name.parts)
        if entry is None:
            raise UnsupportedError(
                Message.OPERATION_NOT_ALLOWED_BUILDER_CATALOG,
                session_catalog=SESSION_CATALOG,
                name=str(name),
            )
        table = NewTable(name=entry, location=self._location, definition=definition)
        location = define_registered(self._spark, table, mode=self._mode)
        return require_table(self._spark, location, name).address

    def _path(self) -> str:
        path = None if self._name is None else self._name.path
        if path is None:
            if self._location is None:
                raise InvalidRequestError(Message.CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION)
            return self._location
        if self._location is not None and not open_log(self._spark, path).is_at(self._location):
            raise InvalidRequestError(
                Message.CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH,
                name=self._name,
                location=self._location,
            )
        return path


def _generation(
    always: str | IdentityGenerator | None, by_default: IdentityGenerator | None
) -> str | IdentitySpec | None:
    if always is not None and by_default is not None:
        raise ValueError(
            "generatedByDefaultAs and generatedAlwaysAs cannot both be set.", [by_default, always]
        )
    if isinstance(always, IdentityGenerator):
        return _identity(always, allows_explicit_insert=False)
    if always is not None:
        what = "Generated always as expression must be str or IdentityGenerator."
        _require_type(str, what, always)
        return always
    if by_default is not None:
        if not isinstance(by_default, IdentityGenerator):
            _raise_type_error(
                "Generated by default expression must be IdentityGenerator.", by_default
            )
        return _identity(by_default, allows_explicit_insert=True)
    return None


def _identity(generator: IdentityGenerator, *, allows_explicit_insert: bool) -> IdentitySpec:
    if generator.step == 0:
        raise ValueError("Column identity generation requires step to be non-zero.")
    return IdentitySpec(
        start=generator.start, step=generator.step, allows_explicit_insert=allows_explicit_insert
    )


def _names(cols: Sequence[str | list[str] | tuple[str, ...]], message: str) -> tuple[str, ...]:
    given: Sequence[object] = cols
    if len(cols) == 1 and isinstance(cols[0], (list, tuple)):
        given = cols[0]
    names = []
    for name in given:
        if type(name) is not str:
            _raise_type_error(message, name)
        names.append(name)
    return tuple(names)


def _require_type(kind: type, message: str, *values: object) -> None:
    """Refuse values of another type, or of a subclass, as delta-spark does."""
    if any(type(value) is not kind for value in values):
        _raise_type_error(message, *values)


def _raise_type_error(message: str, *values: object) -> NoReturn:
    found = "".join(f" Found {value} with type {type(value)}" for value in values)
    raise TypeError(message + found)
