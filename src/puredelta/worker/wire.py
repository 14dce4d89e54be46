"""How orders travel to Spark workers and answers travel back: as tuples, or as rows of Arrow.

The classes of orders and answers do not travel. A worker has no puredelta, so nothing that it
unpacks as data may name a class of this package. A `Codec` reads the fields of a dataclass once,
in the driver, and turns its instances into tuples and back. Where rows of Arrow travel instead
(``mapInArrow``), `arrow_schema` makes their schema of the same fields.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Generic, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt
import pyarrow as pa

T = TypeVar("T")
Fields: TypeAlias = tuple[Any, ...]
"""The fields of an order or an answer, in the order in which its class declares them."""
_Step: TypeAlias = Callable[[Any], Any]

_ARROW_TYPES: Mapping[object, pa.DataType] = {
    int: pa.int64(),
    bool: pa.bool_(),
    str: pa.string(),
    bytes: pa.binary(),
}


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """Turns instances of one dataclass into tuples of plain values, and back.

    A field may be a dataclass, or a tuple of dataclasses; each becomes a tuple as well. An array of
    numpy becomes its bytes: how it is pickled depends on the version of numpy. All other values
    travel as they are.
    """

    kind: type[T]
    names: tuple[str, ...]
    encoding: Mapping[int, _Step]
    """What is done to some of the fields before they travel, by place."""
    decoding: Mapping[int, _Step]
    """What is done to some of the fields when they have arrived."""

    def encode(self, message: T) -> Fields:
        """Return the fields of an order or an answer.

        >>> from puredelta.worker.limits import Limits
        >>> codec = codec_of(Limits)
        >>> codec.decode(codec.encode(Limits(read_rows=7))).read_rows
        7
        """
        values = [getattr(message, name) for name in self.names]
        for place, step in self.encoding.items():
            values[place] = step(values[place])
        return tuple(values)

    def decode(self, values: Iterable[Any]) -> T:
        """Return what `encode` was given. Lists, which Arrow makes of tuples, are tuples again."""
        found = list(values)
        for place, step in self.decoding.items():
            found[place] = step(found[place])
        return self.kind(**dict(zip(self.names, found, strict=True)))


def codec_of(kind: type[T]) -> Codec[T]:
    """Return the codec of a dataclass. Call it at the top of a module.

    A codec travels with the code that uses it; type hints cannot be read in a worker.
    """
    steps = [_steps(hint) for _, hint in _hints(kind)]
    return Codec(
        kind=kind,
        names=tuple(name for name, _ in _hints(kind)),
        encoding={n: encode for n, (encode, _) in enumerate(steps) if encode is not None},
        decoding={n: decode for n, (_, decode) in enumerate(steps) if decode is not None},
    )


def arrow_schema(kind: type) -> pa.Schema:
    """Return the schema of rows that hold the fields of a dataclass.

    Fields are whole numbers, flags, texts, bytes, and tuples of them; each may be None.

    >>> from puredelta.worker.write_file import FileAnswer
    >>> arrow_schema(FileAnswer).field("nan_columns").type
    ListType(list<item: list<item: string>>)
    """
    return pa.schema([(name, _arrow_type(hint)) for name, hint in _hints(kind)])


def _hints(kind: type) -> list[tuple[str, Any]]:
    hints = get_type_hints(kind)
    return [(field.name, hints[field.name]) for field in fields(kind)]


def _arrow_type(hint: Any) -> pa.DataType:
    hint = _present(hint)
    if get_origin(hint) is tuple:
        return pa.list_(_arrow_type(get_args(hint)[0]))
    return _ARROW_TYPES[hint]


def _present(hint: Any) -> Any:
    """Return the type of a value that is not None."""
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = (one for one in get_args(hint) if one is not types.NoneType)
    return hint


def _steps(hint: Any) -> tuple[_Step | None, _Step | None]:
    """Return how values of a type are encoded and decoded; ``None``: they are not."""
    present = _present(hint)
    if present is not hint:
        encode, decode = _steps(present)
        return _unless_absent(encode), _unless_absent(decode)
    if isinstance(hint, type) and is_dataclass(hint):
        codec = codec_of(hint)
        return codec.encode, codec.decode
    if get_origin(hint) is np.ndarray:
        return _array_bytes, _array_of
    if get_origin(hint) is tuple:
        elements = [_steps(element) for element in get_args(hint) if element is not Ellipsis]
        encode, decode = elements[0] if len(elements) == 1 else (None, None)
        return None if encode is None else _each(encode), _each(decode)
    return None, None


def _each(step: _Step | None) -> _Step:
    return tuple if step is None else functools.partial(_mapped, step)


def _mapped(step: _Step, values: Sequence[Any]) -> Fields:
    return tuple(map(step, values))


def _unless_absent(step: _Step | None) -> _Step | None:
    return None if step is None else functools.partial(_if_present, step)


def _if_present(step: _Step, value: Any) -> Any:
    return None if value is None else step(value)


def _array_bytes(array: npt.NDArray[Any]) -> tuple[str, bytes]:
    return array.dtype.str, array.tobytes()


def _array_of(packed: tuple[str, bytes]) -> npt.NDArray[Any]:
    return np.frombuffer(packed[1], packed[0])
