"""What ``df.writeStream`` has been told; as in `puredelta.activation.told`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from puredelta.activation.patches import Patches
from puredelta.activation.told import (
    Told,
    inside,
    note_layout,
    note_option,
    note_options,
    note_partitions,
    record,
)

_ATTRIBUTE = "_puredelta_told_stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldStream:
    """The words of one writer so far."""

    told: Told = field(default_factory=Told)
    """Format, options and partition columns."""
    output_mode: str | None = None
    query_name: str | None = None
    trigger: Mapping[str, Any] = field(default_factory=dict)
    has_own_sink: bool = False
    """``foreach`` or ``foreachBatch`` was called, so the format means nothing."""

    @classmethod
    def of(cls, writer: Any) -> ToldStream:
        """Return what a writer was told."""
        found = vars(writer).get(_ATTRIBUTE)
        return found if isinstance(found, ToldStream) else cls()

    def with_start(
        self,
        format: str | None,  # noqa: A002 - PySpark's name
        output_mode: str | None,
        partition_by: Any,
        query_name: str | None,
        options: Mapping[str, Any],
    ) -> ToldStream:
        """Add what the call that starts the query says."""
        told = self.told.with_options(options)
        if partition_by is not None:
            told = told.with_partitions(partition_by)
        return replace(
            self,
            told=replace(told, format=format or told.format),
            output_mode=output_mode or self.output_mode,
            query_name=query_name or self.query_name,
            has_own_sink=self.has_own_sink and format is None,
        )


def record_stream_writer(patches: Patches, writer: type) -> None:
    """Write down what ``df.writeStream`` is told."""
    _record(patches, writer, "format", _format)
    _record(patches, writer, "option", inside(note_option))
    _record(patches, writer, "options", inside(note_options))
    _record(patches, writer, "partitionBy", inside(note_partitions))
    _record(patches, writer, "clusterBy", inside(note_layout("clusterBy")))
    _record(patches, writer, "outputMode", _output_mode)
    _record(patches, writer, "queryName", _query_name)
    _record(patches, writer, "trigger", _trigger)
    _record(patches, writer, "foreach", _own_sink)
    _record(patches, writer, "foreachBatch", _own_sink)


def _record(patches: Patches, owner: type, name: str, note: Callable[..., ToldStream]) -> None:
    record(patches, owner, name, note, attribute=_ATTRIBUTE, words_of=ToldStream.of)


def _format(words: ToldStream, source: str) -> ToldStream:
    return replace(words, told=replace(words.told, format=source), has_own_sink=False)


def _output_mode(words: ToldStream, outputMode: str) -> ToldStream:  # noqa: N803
    return replace(words, output_mode=outputMode)


def _query_name(words: ToldStream, queryName: str) -> ToldStream:  # noqa: N803
    return replace(words, query_name=queryName)


def _trigger(words: ToldStream, **trigger: Any) -> ToldStream:
    return replace(words, trigger=trigger)


def _own_sink(words: ToldStream, *_: Any, **__: Any) -> ToldStream:
    return replace(words, has_own_sink=True)
