"""Bloom filters of files: no file with a key of the source is left out, and most others are."""

from __future__ import annotations

import random
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.worker.data_files.byte_ranges import byte_ranges
from puredelta.worker.data_files.spliced_file import ParquetBytes
from puredelta.worker.files import StoreFields, client_of
from puredelta.worker.lookup import bloom_filters
from puredelta.worker.lookup.bloom_filters import FilteredFiles, KeyHashes, filter_words, xxh64
from puredelta.worker.lookup.key_lookup import look_up_keys
from puredelta.worker.lookup.lookup_request import FileLookup, KeyColumn, LookupRequest
from puredelta.worker.wire import LIMITS
from tests.worker.data_files.test_spliced_objects import endpoint, place  # noqa: F401 - fixtures
from tests.worker.lookup.batches import batch_of

DICE = random.Random(5)
NEW = DICE.randrange


def written(path: Path, table: pa.Table, columns: list[str], **options: Any) -> str:
    """Write a file with filters of some columns."""
    try:
        wanted = {name: {"ndv": len(table), "fpp": 0.001} for name in columns}
        pq.write_table(table, path, bloom_filter_options=wanted, **options)
    except TypeError:
        pytest.skip("this Arrow writes no Bloom filter")
    return str(path)


@pytest.fixture(autouse=True)
def _of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bloom_filters, "_SMALL_BYTES", 0)


@pytest.mark.parametrize(
    ("text", "hashed"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"abc", 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_hashes_are_those_of_the_algorithm(text: bytes, hashed: int) -> None:
    rows = np.frombuffer(text * 2, np.uint8).reshape(2, len(text))
    assert xxh64(rows).tolist() == [hashed] * 2


def test_the_format_names_other_kinds_of_filters() -> None:
    bits = bytes(32)
    header = bytes.fromhex("15401c1c00001c1c00001c1c000000")
    found = filter_words(header + bits)
    assert found is not None
    assert found.shape == (1, 8)
    assert filter_words(header.replace(b"\x1c\x1c", b"\x1c\x2c", 1) + bits) is None
    assert filter_words(header + bits[:-1]) is None
    with pytest.raises(IndexError):
        filter_words(header[:3])


COLUMNS: dict[str, tuple[pa.DataType, list[Any], list[Any]]] = {
    "uuid": (
        pa.string(),
        [str(uuid.UUID(int=NEW(2**128))) for _ in range(300)],
        [str(uuid.UUID(int=NEW(2**128))) for _ in range(50)],
    ),
    "any length": (pa.string(), ["é" * n for n in range(120)], ["x" * n for n in range(1, 120)]),
    "dictionary": (pa.string(), [f"k{n % 7}" for n in range(300)], [f"k{n}" for n in range(8, 40)]),
    "long": (pa.int64(), [NEW(-(2**63), 2**63) for _ in range(300)], list(range(50))),
    "int": (pa.int32(), [NEW(-(2**31), 2**31) for _ in range(300)], [2**40, -(2**40), 5]),
    "byte": (pa.int8(), list(range(-100, 0)), list(range(1, 100))),
    "day": (pa.date32(), list(range(300)), list(range(400, 500))),
    "bytes": (pa.binary(), [bytes([n, n]) for n in range(200)], ["abc"]),
}


def key_of(kind: pa.DataType, values: list[Any]) -> pa.Array:
    """Return values of the source's key in the type they are compared in."""
    if pa.types.is_date(kind):
        return pa.array(values, pa.int32()).cast(kind)
    if pa.types.is_integer(kind):
        return pa.array(values, pa.int64())
    return (
        pa.array(values, pa.binary()).view(pa.string())
        if kind == pa.binary()
        else pa.array(values, kind)
    )


@pytest.mark.parametrize("name", COLUMNS)
def test_no_file_with_a_key_is_left_out(tmp_path: Path, name: str) -> None:
    kind, present, absent = COLUMNS[name]
    stored = key_of(kind, present) if kind != pa.binary() else pa.array(present, kind)
    table = pa.table({"k": stored.cast(kind)})
    path = written(tmp_path / "f.parquet", table, ["k"], row_group_size=100)
    file = FileLookup(0, path)

    def is_kept(values: list[Any]) -> bool:
        key = pa.chunked_array([key_of(kind, [*values, None]), key_of(kind, [])])
        return bool(list(FilteredFiles([("k", KeyHashes(key))]).kept([file])))

    assert all(is_kept([value]) for value in present)
    assert sum(is_kept([value]) for value in absent) <= 1
    assert is_kept([*absent, present[0]])
    assert not is_kept([])


def test_only_filters_that_say_no_of_every_row_group_count(tmp_path: Path) -> None:
    table = pa.table({"a": range(100), "b": range(100), "c": range(100)})
    path = written(tmp_path / "f.parquet", table, ["a", "b"], row_group_size=50)
    file = FileLookup(0, path)

    def left_out(files: list[FileLookup], **values: int) -> int:
        keys = [(name, KeyHashes(pa.array([value]))) for name, value in values.items()]
        found = FilteredFiles(keys)
        assert len(list(found.kept(files))) == len(files) - found.num_left_out
        return found.num_left_out

    assert left_out([file], a=5, b=7, c=1000) == 0
    assert left_out([file], a=5, b=1000) == 1
    assert left_out([file], c=1000) == 0  # it has no filter
    assert left_out([file], a=5, b=80) == 1  # one in each row group, never both
    assert left_out([replace(file, constants=(("b", 1000),))], a=5, b=1000) == 0
    assert left_out([replace(file, path=str(tmp_path / "gone"))], a=1000) == 0
    plain = str(tmp_path / "plain.parquet")
    pq.write_table(table, plain)
    without = replace(file, path=plain)
    assert left_out([without] * 3 + [file] * 2, a=1000) == 2
    assert left_out([without] * 4 + [file] * 2, a=1000) == 0  # the others are not asked
    with_key = written(tmp_path / "key.parquet", pa.table({"a": [1000]}), ["a"])
    holding = replace(file, path=with_key)
    assert left_out([holding] * 15 + [file] * 2, a=1000) == 2
    assert left_out([holding] * 16 + [file] * 2, a=1000) == 0


def test_a_filter_of_another_kind_says_nothing(tmp_path: Path) -> None:
    path = Path(written(tmp_path / "f.parquet", pa.table({"k": range(50)}), ["k"]))
    (group,) = ParquetBytes.of(byte_ranges(str(path))).footer.groups
    found = group.chunks[0].bloom_filter
    assert found is not None
    content = bytearray(path.read_bytes())
    at = content.index(b"\x1c", found[0]) + 1
    content[at] = 0x2C
    path.write_bytes(content)
    keys = [("k", KeyHashes(pa.array([99])))]
    assert len(list(FilteredFiles(keys).kept([FileLookup(0, str(path))]))) == 1


def test_objects_of_a_store_have_filters_too(
    tmp_path: Path,
    place: tuple[StoreFields, str],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bloom_filters, "_SMALL_OBJECT_BYTES", 0)
    store, directory = place
    table = pa.table({"k": range(20_000), "x": np.random.default_rng(1).random(20_000)})
    options = {"use_dictionary": False, "compression": "none"}
    content = Path(written(tmp_path / "f.parquet", table, ["k"], **options)).read_bytes()
    obstore.put(client_of(store), f"{directory}/f.parquet", content)
    files = [FileLookup(n, (store, f"{directory}/f.parquet", len(content))) for n in range(20)]
    for key, num_left_out in ((7, 0), (99_999, 20)):
        found = FilteredFiles([("k", KeyHashes(pa.array([key])))])
        assert len(list(found.kept(files))) == 20 - num_left_out


@pytest.mark.parametrize("null_safe", [False, True])
@pytest.mark.parametrize("with_filters", [False, True])
def test_a_lookup_finds_the_same(tmp_path: Path, *, null_safe: bool, with_filters: bool) -> None:
    dice = random.Random(1)
    texts = [f"{dice.random()}" for _ in range(400)]
    files = []
    for n in range(8):
        column = pa.array([*texts[n * 50 : n * 50 + 50], None])
        files.append(
            FileLookup(n, written(tmp_path / f"{n}.parquet", pa.table({"k": column}), ["k"]))
        )
    source = tmp_path / "s.parquet"
    pq.write_table(pa.table({"k": [texts[3], texts[120], "none", None]}), source)
    request = LookupRequest(
        keys=(KeyColumn(target="k", source="k", null_safe=null_safe),),
        source_files=(str(source),),
        limits=replace(LIMITS, bloom_filters=with_filters),
    )
    if with_filters and not null_safe:
        for number in (1, 3, 4, 5, 6, 7):  # its values are never decoded
            path = tmp_path / f"{number}.parquet"
            content = bytearray(path.read_bytes())
            content[4:40] = bytes(36)
            path.write_bytes(content)
    refusal, found = look_up_keys(request, batch_of(files))
    assert refusal is None
    wanted = list(range(8)) if null_safe else [0, 2]
    assert sorted(one.file for one in found if not one.of_source) == wanted
