"""What ``df.writeTo(name)`` has been told; as in `puredelta.activation.told`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import Column, DataFrame

from puredelta.activation.patches import Method, Patches
from puredelta.activation.told import Told, inside, note_option, note_options, record

_ATTRIBUTE = "_puredelta_told_table"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldTable:
    """The words of one writer so far."""

    rows: DataFrame
    name: str
    told: Told = field(default_factory=Told)
    """Format and options."""
    properties: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str | Column, ...] = ()
    cluster_by: tuple[str, ...] | None = None

    @classmethod
    def of(cls, writer: Any) -> ToldTable | None:
        """Return what a writer was told; None if it was made before the activation."""
        found = vars(writer).get(_ATTRIBUTE)
        return found if isinstance(found, ToldTable) else None


def record_table_writer(patches: Patches, frame: type, writer: type) -> None:
    """Write down what ``df.writeTo(name)`` makes, and what that is told."""

    def make(original: Method) -> Method:
        def call(self: Any, table: str) -> Any:
            made = original(self, table)
            made.__dict__[_ATTRIBUTE] = ToldTable(rows=self, name=table)
            return made

        return call

    patches.replace(frame, "writeTo", make)
    _record(patches, writer, "using", _using)
    _record(patches, writer, "option", inside(note_option))
    _record(patches, writer, "options", inside(note_options))
    _record(patches, writer, "tableProperty", _property)
    _record(patches, writer, "partitionedBy", _partitioned_by)
    _record(patches, writer, "clusterBy", _cluster_by)


def _record(patches: Patches, owner: type, name: str, note: Callable[..., ToldTable]) -> None:
    record(patches, owner, name, note, attribute=_ATTRIBUTE, words_of=ToldTable.of)


def _using(words: ToldTable, provider: str) -> ToldTable:
    return replace(words, told=replace(words.told, format=provider))


def _property(words: ToldTable, property: str, value: str) -> ToldTable:  # noqa: A002
    return replace(words, properties={**words.properties, property: value})


def _partitioned_by(words: ToldTable, col: str | Column, *cols: str | Column) -> ToldTable:
    return replace(words, partition_by=(col, *cols))


def _cluster_by(words: ToldTable, col: str, *cols: str) -> ToldTable:
    return replace(words, cluster_by=(col, *cols))
