"""Deletion vectors as bytes (M-135 to M-138)."""

from __future__ import annotations

import dataclasses
import uuid

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from puredelta.errors import CorruptTableError, ErrorCode
from puredelta.protocol.actions.action_json import parse_action
from puredelta.protocol.actions.actions import Add, DeletionVectorDescriptor
from puredelta.protocol.actions.deletion_vector import (
    RowIndexes,
    decode_bitmap,
    decode_block,
    decode_inline,
    encode_vector,
    vector_path,
    vector_range,
    z85_decode,
    z85_encode,
)
from puredelta.protocol.actions.paths import absolute_uri
from tests.data_dir import require_data
from tests.deletion_vectors import decode_file, encode_file, encode_inline

FILE_ID = uuid.UUID("ab2f2f6c-3c5b-4b60-9c2b-5c0c6ef6b5a1")


def positions_of(*values: int) -> RowIndexes:
    return np.array(values, np.uint64)


POSITIONS = st.one_of(
    st.lists(st.integers(0, 2**63 - 1), unique=True, max_size=30),
    st.lists(st.integers(0, 200_000), unique=True, max_size=300),
    st.tuples(st.integers(0, 2**34), st.integers(0, 70_000)).map(
        lambda run: list(range(run[0], sum(run)))
    ),
).map(lambda values: np.array(sorted(values), np.uint64))


@given(POSITIONS)
def test_positions_survive_the_bitmap(positions: RowIndexes) -> None:
    assert list(decode_bitmap(encode_vector(positions).data)) == positions.tolist()


@given(POSITIONS)
def test_positions_survive_an_inline_descriptor(positions: RowIndexes) -> None:
    descriptor = encode_inline(positions)
    assert vector_path(descriptor) is None
    assert np.array_equal(decode_inline(descriptor), positions)


@given(st.lists(POSITIONS, max_size=3))
def test_many_vectors_share_a_file(vectors: list[RowIndexes]) -> None:
    content, descriptors = encode_file(vectors, FILE_ID, prefix="ab")
    for positions, descriptor in zip(vectors, descriptors, strict=True):
        assert vector_path(descriptor) == f"ab/deletion_vector_{FILE_ID}.bin"
        assert np.array_equal(decode_file(content, descriptor), positions)
        start, length = vector_range(descriptor)
        assert np.array_equal(decode_block(content[start : start + length], descriptor), positions)


def test_a_run_costs_a_few_bytes() -> None:
    assert len(encode_vector(np.arange(1_000_000, dtype=np.uint64)).data) < 1000


def test_repeated_positions_count_once() -> None:
    _, (descriptor,) = encode_file([positions_of(3, 1, 3)], FILE_ID)
    assert descriptor.cardinality == 2


@given(st.binary().map(lambda raw: raw + bytes(-len(raw) % 4)))
def test_bytes_survive_z85(data: bytes) -> None:
    assert z85_decode(z85_encode(data)) == data


@pytest.mark.parametrize("text", ["abcd", "abcd~", "abc\n "])
def test_other_text_is_no_z85(text: str) -> None:
    with pytest.raises(ValueError, match="no Z85"):
        z85_decode(text)


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        # The examples of the protocol document.
        ({"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^"},
         "s3://mytable/ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"),
        ({"storageType": "u", "pathOrInlineDv": "^-aqEH.-t@S}K{vb[*k^"},
         "s3://mytable/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"),
        ({"storageType": "p", "pathOrInlineDv":
          "s3://mytable/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"},
         "s3://mytable/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"),
    ],
)  # fmt: skip
def test_paths_of_the_protocol_s_examples(stored: dict[str, str], expected: str) -> None:
    descriptor = DeletionVectorDescriptor(
        storage_type=stored["storageType"],
        path_or_inline=stored["pathOrInlineDv"],
        offset=4,
        size_bytes=40,
        cardinality=6,
    )
    path = vector_path(descriptor)
    assert path is not None
    assert absolute_uri("s3://mytable", path) == expected


def test_an_inline_vector_of_another_writer() -> None:
    """The protocol document's own inline example, in the format the document demands.

    As printed there it starts with the magic number of an older format.
    """
    printed = DeletionVectorDescriptor(
        storage_type="i",
        path_or_inline="wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        offset=None,
        size_bytes=40,
        cardinality=6,
    )
    with pytest.raises(CorruptTableError, match="no known format"):
        decode_inline(printed)
    corrected = dataclasses.replace(
        printed,
        path_or_inline="^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        size_bytes=44,
    )
    assert decode_inline(corrected).tolist() == [3, 4, 7, 11, 18, 29]


# --- damage ---------------------------------------------------------------------------------


def framed() -> tuple[bytes, DeletionVectorDescriptor]:
    content, (descriptor,) = encode_file([positions_of(1, 70_000, 2**33)], FILE_ID)
    return content, descriptor


@pytest.mark.parametrize("length", range(0, 60, 7))
def test_a_torn_file_is_never_read(length: int) -> None:
    content, descriptor = framed()
    with pytest.raises(CorruptTableError):
        decode_file(content[:length], descriptor)


def test_every_flipped_byte_is_found() -> None:  # M-136
    content, descriptor = framed()
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 0x41
        with pytest.raises(CorruptTableError):
            decode_file(bytes(damaged), descriptor)


@pytest.mark.parametrize(
    ("change", "code", "problem"),
    [
        ({"size_bytes": 30}, ErrorCode.DELETION_VECTOR_SIZE_MISMATCH, "the log says 30"),
        ({"size_bytes": 9999}, ErrorCode.DELETION_VECTOR_SIZE_MISMATCH, "the log says 9999"),
        ({"cardinality": 4}, ErrorCode.DELETION_VECTOR_CARDINALITY_MISMATCH, "3 positions"),
    ],
)
def test_a_descriptor_that_does_not_fit_is_named(
    change: dict[str, int], code: ErrorCode, problem: str
) -> None:
    content, descriptor = framed()
    with pytest.raises(CorruptTableError, match=problem) as caught:
        decode_file(content, dataclasses.replace(descriptor, **change))
    assert caught.value.code is code


def test_a_wrong_checksum_is_named() -> None:
    content, descriptor = framed()
    with pytest.raises(CorruptTableError, match="CRC-32") as caught:
        decode_file(content[:-1] + b"\0", descriptor)
    assert caught.value.code is ErrorCode.DELETION_VECTOR_CHECKSUM_MISMATCH


@pytest.mark.parametrize(
    "data", [b"", b"\x10\xd1\x39\x64", (1681511376).to_bytes(4, "little") + bytes(8)]
)
def test_other_formats_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptTableError, match=r"no known format|cannot be read") as caught:
        decode_bitmap(data)
    assert caught.value.code is ErrorCode.DELETION_VECTOR_INVALID


@pytest.mark.parametrize(
    ("storage_type", "text", "problem"),
    [("x", "abc", "storage type is 'x'"), ("u", "short", "no UUID"), ("u", "~" * 20, "no UUID")],
)
def test_a_descriptor_that_leads_nowhere_is_refused(
    storage_type: str, text: str, problem: str
) -> None:
    descriptor = DeletionVectorDescriptor(
        storage_type=storage_type, path_or_inline=text, offset=1, size_bytes=1, cardinality=1
    )
    with pytest.raises(CorruptTableError, match=problem):
        vector_path(descriptor)


@pytest.mark.parametrize("text", ["~~~~~", "00000"])
def test_a_broken_inline_vector_is_refused(text: str) -> None:
    descriptor = DeletionVectorDescriptor(
        storage_type="i", path_or_inline=text, offset=None, size_bytes=40, cardinality=1
    )
    with pytest.raises(CorruptTableError):
        decode_inline(descriptor)


# --- vectors of delta-spark -----------------------------------------------------------------


def test_vectors_of_delta_spark_are_read() -> None:  # M-136
    table = require_data("golden", "dv-with-columnmapping", "delta")
    adds = [
        parse_action(line)
        for log in sorted(table.glob("_delta_log/*.json"))
        for line in log.read_bytes().splitlines()
    ]
    vectors = [a.deletion_vector for a in adds if isinstance(a, Add) and a.deletion_vector]
    assert vectors
    for descriptor in vectors:
        path = vector_path(descriptor)
        assert path is not None
        positions = decode_file((table / path).read_bytes(), descriptor)
        assert len(positions) == descriptor.cardinality
