"""What ``df.writeStream`` has been told; as in `puredelta.activation.told`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from puredelta.activation.patches import Method, Patches
from puredelta.activation.told import Told

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
    _record(patches, writer, "option", _option)
    _record(patches, writer, "options", _options)
    _record(patches, writer, "partitionBy", _partition_by)
    _record(patches, writer, "clusterBy", _cluster_by)
    _record(patches, writer, "outputMode", _output_mode)
    _record(patches, writer, "queryName", _query_name)
    _record(patches, writer, "trigger", _trigger)
    _record(patches, writer, "foreach", _own_sink)
    _record(patches, writer, "foreachBatch", _own_sink)


def _record(patches: Patches, owner: type, name: str, note: Callable[..., ToldStream]) -> None:
    def make(original: Method) -> Method:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            answer = original(self, *args, **kwargs)  # first: what it refuses was not told
            self.__dict__[_ATTRIBUTE] = note(ToldStream.of(self), *args, **kwargs)
            return answer

        return call

    patches.replace(owner, name, make)


def _format(words: ToldStream, source: str) -> ToldStream:
    return replace(words, told=replace(words.told, format=source), has_own_sink=False)


def _option(words: ToldStream, key: str, value: Any) -> ToldStream:
    return replace(words, told=words.told.with_options({key: value}))


def _options(words: ToldStream, /, **options: Any) -> ToldStream:
    return replace(words, told=words.told.with_options(options))


def _partition_by(words: ToldStream, *cols: Any) -> ToldStream:
    one_list = len(cols) == 1 and isinstance(cols[0], list | tuple)
    return replace(words, told=words.told.with_partitions(cols[0] if one_list else cols))


def _cluster_by(words: ToldStream, *_: Any) -> ToldStream:
    return replace(words, told=replace(words.told, layout="clusterBy"))


def _output_mode(words: ToldStream, outputMode: str) -> ToldStream:  # noqa: N803
    return replace(words, output_mode=outputMode)


def _query_name(words: ToldStream, queryName: str) -> ToldStream:  # noqa: N803
    return replace(words, query_name=queryName)


def _trigger(words: ToldStream, **trigger: Any) -> ToldStream:
    return replace(words, trigger=trigger)


def _own_sink(words: ToldStream, *_: Any, **__: Any) -> ToldStream:
    return replace(words, has_own_sink=True)
