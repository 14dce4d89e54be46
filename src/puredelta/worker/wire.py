"""Orders to Spark workers and their answers as plain values, and the limits of a worker.

The classes of orders and answers do not travel. A worker has no puredelta, so nothing that it
unpacks as data may name a class of this package. A `Codec` reads the fields of a dataclass once,
in the driver, and turns its instances into tuples and back.

Limits travel with every order, so that a session, or a test, can have others.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Generic, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from puredelta.worker.expressions import Expression, packed, unpacked

T = TypeVar("T")
Fields: TypeAlias = tuple[Any, ...]
"""The fields of an order or an answer, in the order in which its class declares them."""
_Step: TypeAlias = Callable[[Any], Any]
_Way: TypeAlias = tuple[_Step, _Step]


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """Turns instances of one dataclass into tuples of plain values, and back.

    A field may be a dataclass, or a tuple of dataclasses; each becomes a tuple as well. An array of
    numpy becomes its bytes: how it is pickled depends on the version of numpy. All other values
    travel as they are, those of one type or another, too; an `Expression` becomes a tuple.
    """

    kind: type[T]
    names: tuple[str, ...]
    encoding: Mapping[int, _Step]
    """What is done to some of the fields before they travel, by place."""
    decoding: Mapping[int, _Step]
    """What is done to some of the fields when they have arrived."""

    def encode(self, message: T) -> Fields:
        """Return the fields of an order or an answer.

        >>> from puredelta.worker.wire import Limits
        >>> codec = codec_of(Limits)
        >>> codec.decode(codec.encode(Limits(read_rows=7))).read_rows
        7
        """
        values = [getattr(message, name) for name in self.names]
        for place, step in self.encoding.items():
            values[place] = step(values[place])
        return tuple(values)

    def decode(self, values: Iterable[Any]) -> T:
        """Return what `encode` was given."""
        found = list(values)
        for place, step in self.decoding.items():
            found[place] = step(found[place])
        return self.kind(**dict(zip(self.names, found, strict=True)))


def codec_of(kind: type[T]) -> Codec[T]:
    """Return the codec of a dataclass. Call it at the top of a module.

    A codec travels with the code that uses it; type hints cannot be read in a worker.
    """
    hints, names = get_type_hints(kind), tuple(field.name for field in fields(kind))  # type: ignore[arg-type]
    ways = {place: way for place, name in enumerate(names) if (way := _way(hints[name]))}
    return Codec(
        kind=kind,
        names=names,
        encoding={place: encode for place, (encode, _) in ways.items()},
        decoding={place: decode for place, (_, decode) in ways.items()},
    )


def _way(hint: Any) -> _Way | None:
    """Return how values of a type are encoded and decoded; ``None``: they travel as they are."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        present = [one for one in inner if one is not types.NoneType]
        if present == list(get_args(Expression)):
            way = packed, unpacked
            return way if len(present) == len(inner) else _over(_if_present, way)
        return _over(_if_present, _way(present[0])) if len(present) == 1 else None
    if origin is tuple and inner[-1] is Ellipsis:
        return _over(_each, _way(inner[0]))
    if origin is np.ndarray:
        return _array_bytes, _array_of
    if isinstance(hint, type) and is_dataclass(hint):
        codec = codec_of(hint)
        return codec.encode, codec.decode
    return None


def _over(apply: Callable[[_Step, Any], Any], way: _Way | None) -> _Way | None:
    """Return the way of values that hold others."""
    return way and (functools.partial(apply, way[0]), functools.partial(apply, way[1]))


def _if_present(step: _Step, value: Any) -> Any:
    return None if value is None else step(value)


def _each(step: _Step, values: Sequence[Any]) -> Fields:
    return tuple(map(step, values))


def _array_bytes(array: npt.NDArray[Any]) -> tuple[str, bytes]:
    return array.dtype.str, array.tobytes()


def _array_of(packed: tuple[str, bytes]) -> npt.NDArray[Any]:
    return np.frombuffer(packed[1], packed[0])


_MEGABYTE = 1024 * 1024
INT96 = "int96"
"""Timestamps of 96 bits, which settings of Spark shift."""
OLD_TIMES = "old times"
"""Dates and timestamps of a time in which calendars differ, in files that do not name theirs."""

CHECKSUMS = "checksums"
"""Every column: pages whose checksums Spark verifies, and Arrow does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one order."""

    read_rows: int = 65_536
    """Rows of a batch that is read to be copied."""
    read_bytes: int = 32 * _MEGABYTE
    """Decoded bytes of a batch that is read, unless one row has more."""
    row_group_bytes: int = 128 * _MEGABYTE
    """Decoded bytes after which a row group is closed early: what bounds a task's memory."""
    coalesced_rows: int = 16_384
    coalesced_bytes: int = 16 * _MEGABYTE
    """Batches of fewer rows and bytes are coalesced before they are filtered and written."""
    copy_bytes: int = 1024 * _MEGABYTE
    """Planned for a copy at most: a file with more columns than that is left to Spark."""
    partitioned_bytes: int = 256 * _MEGABYTE
    """Decoded bytes that are distributed over partitions in memory."""
    lookup_rows: int = 131_072
    """Rows that are looked up at a time."""
    lookup_pairs: int = 20_000_000
    """Pairs of one batch of rows: where keys repeat on both sides there could be any number."""
    sorted_keys: int = 1 << 22
    """Keys that are sorted to leave files out; among more there are few gaps."""
    small_file_rows: int = 16_384
    """Files of fewer rows are decoded together (`puredelta.worker.small_files`); 0: none is.
    Opening a larger file is a small part of reading it.
    """

    decoding_threads: int = 1
    """Threads that decode the columns of a file of a disk side by side."""

    bloom_filters: bool = True
    """Whether Bloom filters of files are looked at before their key columns."""

    only_spark: tuple[str, ...] = ()
    """`INT96`, `OLD_TIMES`, `CHECKSUMS`: what Spark reads otherwise than Arrow, by settings of the
    session."""

    filters: tuple[tuple[str, float], ...] = ()
    """Columns that get a Bloom filter in new files, each with the rate of false positives."""

    needs_columns: tuple[str, ...] = ()
    """Partition columns that a file has to hold, or it is not copied."""
    needs_ids: tuple[str, ...] = ()
    """Columns in which each field, element, key and value has to have an id, and timestamps 64
    bits, or the file is not copied."""

    @property
    def row_bytes(self) -> int:
        """What the rows of a copy take: a row group of the new file, and the batch that closes it,
        whose buffers grow by doubling; and what libraries load on first use.
        """
        return self.row_group_bytes + 4 * self.read_bytes + self.coalesced_bytes


LIMITS = Limits()
LIMITS_CODEC = codec_of(Limits)
