"""Options set so far on a PySpark reader or writer; PySpark keeps them only in the JVM.

The calls themselves are forwarded unchanged. The captured options are read when a call turns out
to mean Delta. A builder that was made before the activation has captured nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame

from puredelta.errors import InvalidRequestError, Message
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.table.clustering import ColumnPath, clustering_columns
from puredelta.spark.session.names import parse_name

_ATTRIBUTE = "_puredelta_captured"


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedOptions:
    """The format, options and layout given to one builder."""

    format: str | None = None
    mode: str | None = None
    options: Mapping[str, str] | None = None
    """In the last spelling; names that differ in case are one option."""
    partition_by: tuple[str, ...] = ()
    has_schema: bool = False
    cluster_by: tuple[str, ...] = ()
    layout: str | None = None
    """``bucketBy`` or ``sortBy`` of a writer, if one was called."""
    output_mode: str | None = None
    query_name: str | None = None
    trigger: Mapping[str, Any] | None = None
    has_own_sink: bool = False
    """``foreach`` or ``foreachBatch`` was called, so the format has no effect."""
    table: TableOptions | None = None
    """Arguments of ``df.writeTo(name)`` only."""

    @classmethod
    def of(cls, builder: Any) -> CapturedOptions:
        """Return the captured options of this reader or writer."""
        found = vars(builder).get(_ATTRIBUTE)
        return found if isinstance(found, CapturedOptions) else cls()

    def keep(self, builder: Any) -> None:
        """Make this the options of a builder."""
        vars(builder)[_ATTRIBUTE] = self

    def with_options(self, options: Mapping[str, Any]) -> CapturedOptions:
        """Add options as PySpark does: None has no effect, true and false in lower case.

        >>> first = CapturedOptions().with_options({"mergeSchema": True})
        >>> first.with_options({"MERGESCHEMA": 1}).options
        {'MERGESCHEMA': '1'}
        """
        known = dict(self.options or {})
        for name, value in options.items():
            if value is None:
                continue
            for same in [key for key in known if key.lower() == name.lower()]:
                del known[same]
            known[name] = str(value).lower() if isinstance(value, bool) else str(value)
        return replace(self, options=known)

    def with_partitions(self, columns: str | Sequence[str]) -> CapturedOptions:
        """Set the partition columns."""
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        return replace(self, partition_by=names)

    def with_table(self, **changes: Any) -> CapturedOptions:
        """Change the options of a table writer; a writer made before the activation has none."""
        return self if self.table is None else replace(self, table=replace(self.table, **changes))

    def with_property(self, property: str, value: str) -> CapturedOptions:
        """Add a table property to those of a table writer."""
        known = {} if self.table is None else self.table.properties
        return self.with_table(properties={**known, property: value})

    def with_last_call(
        self,
        options: Mapping[str, Any],
        *,
        mode: str | None = None,
        format: str | None = None,
        partition_by: Any = None,
    ) -> CapturedOptions:
        """Add the arguments of the call that does the work."""
        given = replace(self, mode=mode or self.mode, format=format or self.format)
        given = given.with_options(options)
        return given if partition_by is None else given.with_partitions(partition_by)

    def with_start(
        self,
        format: str | None,
        output_mode: str | None,
        partition_by: Any,
        query_name: str | None,
        options: Mapping[str, Any],
    ) -> CapturedOptions:
        """Add the arguments of the call that starts a query."""
        given = self.with_last_call(options, format=format, partition_by=partition_by)
        return replace(
            given,
            output_mode=output_mode or self.output_mode,
            query_name=query_name or self.query_name,
            has_own_sink=self.has_own_sink and format is None,
        )

    def without_option(self, name: str) -> CapturedOptions:
        """Remove an option."""
        kept = {k: v for k, v in (self.options or {}).items() if k.lower() != name.lower()}
        return replace(self, options=kept)

    def option(self, name: str) -> str | None:
        """Return an option, with its name in any case."""
        found = (v for k, v in (self.options or {}).items() if k.lower() == name.lower())
        return next(found, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """The arguments of one ``df.writeTo(name)`` beside the format and options."""

    rows: DataFrame
    name: str
    properties: Mapping[str, str]
    partition_by: tuple[str | Column, ...] = ()
    cluster_by: tuple[str, ...] | None = None


def find_path(captured: CapturedOptions, argument: Any) -> str | None:
    """Return the path, or None if there is none.

    Raises:
        InvalidRequestError: there are several.
    """
    paths = list(argument) if isinstance(argument, list | tuple) else [argument]
    given = [str(path) for path in paths if path is not None]
    option = captured.option("path")
    if len(given) > 1 or (given and option is not None):
        raise InvalidRequestError(
            Message.OPERATION_NOT_ALLOWED_ONE_PATH, listed=[*given, option], paths=tuple(given)
        )
    return given[0] if given else option


def require_path(captured: CapturedOptions, argument: Any) -> str:
    """Return the path.

    Raises:
        InvalidRequestError: there is none, or several.
    """
    path = find_path(captured, argument)
    if path is None:
        raise InvalidRequestError(Message.OPERATION_NOT_ALLOWED_NO_PATH)
    return path


def clustering_paths(captured: CapturedOptions) -> tuple[ColumnPath, ...]:
    """Return the clustering columns of a writer, each as the parts of its name."""
    return tuple(map(parse_name, captured.cluster_by))


def is_clustered_otherwise(log: TableLog, captured: CapturedOptions) -> bool:
    """Return whether the table is missing, or clustered by other columns than the writer's."""
    return _known(log) != _folded(clustering_paths(captured))


def clustered_otherwise(log: TableLog, captured: CapturedOptions) -> InvalidRequestError:
    """Return the error for a writer with other clustering columns than the table's."""
    known = [".".join(path) for path in _known(log) or ()]
    return InvalidRequestError(
        Message.CLUSTERING_COLUMNS_MISMATCH,
        cluster_by=", ".join(captured.cluster_by),
        known=", ".join(known),
        provided=captured.cluster_by,
        existing=tuple(known),
    )


def _known(log: TableLog) -> tuple[ColumnPath, ...] | None:
    snapshot = log.find_snapshot()
    if snapshot is None:
        return None
    return _folded(clustering_columns(snapshot.config, snapshot.domain_metadata))


def _folded(paths: tuple[ColumnPath, ...]) -> tuple[ColumnPath, ...]:
    """Return column names in lower case, since they ignore case."""
    return tuple(tuple(part.lower() for part in path) for path in paths)
