"""``df.writeTo(name)`` and ``df.mergeInto(name, condition)``: ours when they mean Delta."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import Column

from puredelta.activation import table_writing
from puredelta.activation.merge_into import DeltaMergeInto, find_target
from puredelta.activation.patches import Method, Patches
from puredelta.activation.told_table import ToldTable
from puredelta.commands.create.create_table import CreateMode
from puredelta.spark.session.formats import is_delta
from puredelta.sql.relations.names import find_name
from puredelta.sql.text.table_name import TableName

_DEFINITIONS = {
    "create": CreateMode.CREATE,
    "replace": CreateMode.REPLACE,
    "createOrReplace": CreateMode.CREATE_OR_REPLACE,
}


def open_table_writer(patches: Patches, writer: type) -> None:
    """``df.writeTo(name)``: what ends the call and does the work."""
    _ending(patches, writer, "append", table_writing.append)
    _ending(patches, writer, "overwritePartitions", table_writing.overwrite_partitions)
    _ending(patches, writer, "overwrite", table_writing.overwrite)
    for method, mode in _DEFINITIONS.items():
        _ending(patches, writer, method, _definition(mode))


def open_merge_into(patches: Patches, frame: type) -> None:
    """``df.mergeInto(name, condition)``."""

    def make(original: Method) -> Method:
        def ours(self: Any, table: Any, condition: Column) -> Any:
            name = find_name(table) if isinstance(table, str) else None
            target = None if name is None else find_target(self.sparkSession, name)
            if target is None:
                return original(self, table, condition)
            return DeltaMergeInto(self, target, condition)

        return ours

    patches.replace(frame, "mergeInto", make)


def _ending(patches: Patches, writer: type, name: str, run: Callable[..., bool]) -> None:
    def make(original: Method) -> Method:
        def ours(self: Any, *args: Any, **kwargs: Any) -> Any:
            words = ToldTable.of(self)
            table = None if words is None else find_name(words.name)
            if words is None or table is None or not run(words, table, *args, **kwargs):
                return original(self, *args, **kwargs)
            return None

        return ours

    patches.replace(writer, name, make)


def _definition(mode: CreateMode) -> Callable[..., bool]:
    def run(words: ToldTable, name: TableName) -> bool:
        if not is_delta(words.rows.sparkSession, words.told.format):
            return False
        return table_writing.define(words, name, mode=mode)

    return run
