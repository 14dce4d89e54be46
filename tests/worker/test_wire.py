"""Orders and answers are the same after the way to a worker, in all their fields."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from puredelta.worker.expressions import ALWAYS, Expression
from puredelta.worker.wire import codec_of
from tests.worker.expressions import expression


@dataclass(frozen=True, kw_only=True)
class Inner:
    number: int
    text: str | None = None


@dataclass(frozen=True, kw_only=True)
class Outer:
    inner: Inner
    several: tuple[Inner, ...]
    perhaps: Inner | None
    some: tuple[Inner | None, ...]
    column: tuple[tuple[str, pa.DataType], ...]
    named: Mapping[int, tuple[bytes, bytes]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Numbers:
    values: npt.NDArray[np.int32]


@pytest.mark.parametrize("perhaps", [None, Inner(number=4)])
def test_dataclasses_travel_as_tuples(perhaps: Inner | None) -> None:
    outer = Outer(
        inner=Inner(number=1),
        several=(Inner(number=2, text="a"), Inner(number=3)),
        perhaps=perhaps,
        some=(None, Inner(number=5)),
        column=(("v", pa.int64()),),
        named={7: (b"", b"x")},
    )
    codec = codec_of(Outer)
    assert codec.encode(outer) == (
        (1, None),
        ((2, "a"), (3, None)),
        perhaps and (4, None),
        (None, (5, None)),
        (("v", pa.int64()),),
        {7: (b"", b"x")},
    )
    assert codec.decode(codec.encode(outer)) == outer


def test_arrays_travel_as_bytes() -> None:
    """A pickled array names modules that other versions of numpy do not have."""
    codec = codec_of(Numbers)
    fields = codec.encode(Numbers(values=np.array([1, -2], np.int32)))
    assert fields == (("<i4", b"\1\0\0\0\xfe\xff\xff\xff"),)
    found = codec.decode(fields).values
    assert (found.dtype, found.tolist()) == (np.int32, [1, -2])


def test_a_field_more_or_less_is_an_error() -> None:
    codec = codec_of(Inner)
    for fields in ((1,), (1, "a", 2)):
        with pytest.raises(ValueError, match="zip"):
            codec.decode(fields)


@dataclass(frozen=True, kw_only=True)
class Asked:
    value: Expression
    perhaps: Expression | None
    clauses: tuple[tuple[Expression, ...], ...]


def test_expressions_travel_as_tuples() -> None:
    """A worker has no class of this package before its code is there."""
    value = expression(
        ("text_part", ("coalesce", ("target", "a"), ("value", "x", pa.string())), 0, None)
    )
    codec = codec_of(Asked)
    for perhaps in (None, value):
        asked = Asked(value=value, perhaps=perhaps, clauses=((value, ALWAYS), ()))
        fields = codec.encode(asked)
        assert b"puredelta" not in pickle.dumps(fields)
        assert codec.decode(fields) == asked
