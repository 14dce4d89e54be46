"""The bytes of a source's texts: of what footers tell, and of what has to be decoded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.commands.dml.source_texts import SourceTexts
from puredelta.spark.scan.data_file import DataFile
from puredelta.spark.write.staging import text_bytes, texts_of_files

MANY = 1 << 40


def texts_of(directory: Path, *tables: pa.Table, **options: Any) -> SourceTexts:
    """Write the files of a source; `opened` of the answer lists those that were read."""
    files = []
    for n, table in enumerate(tables):
        path = directory / f"{n}.parquet"
        pq.write_table(table, path, **options)
        files.append(DataFile(uri=str(path), size_bytes=path.stat().st_size, modified_ms=0))
    footers = [pq.read_metadata(file.uri) for file in files]
    return SourceTexts(
        files=files,
        stored=texts_of_files([text_bytes(footer) for footer in footers]),
        open_file=lambda file: Path(file.uri).open("rb"),
    )


def column(*lengths: int | None) -> pa.Table:
    return pa.table({"k": [None if n is None else "x" * n for n in lengths], "n": lengths})


ENCODINGS: dict[str, dict[str, Any]] = {
    "plain": {"use_dictionary": False},
    "dictionary": {},
    "dictionary given up": {"dictionary_pagesize_limit": 10_000},
    "by difference": {"use_dictionary": False, "column_encoding": {"k": "DELTA_BYTE_ARRAY"}},
    "lengths first": {
        "use_dictionary": False,
        "column_encoding": {"k": "DELTA_LENGTH_BYTE_ARRAY"},
    },
    "views of Arrow": {"store_schema": True},
}


@pytest.mark.parametrize("options", ENCODINGS.values(), ids=ENCODINGS)
def test_no_encoding_makes_texts_look_shorter(tmp_path: Path, options: dict[str, Any]) -> None:
    lengths = [(n % 7) * 3_000 for n in range(3_000)]
    tables = [column(*lengths), column(None, *lengths)]
    texts = texts_of(tmp_path, *tables, **options)
    total = 2 * sum(lengths)
    assert total <= texts.largest_part(["k"], bytes_max=MANY) <= total * 1.01
    assert texts.largest_part(["k"], bytes_max=total // 2) > total // 2


def test_a_dictionary_array_counts_each_of_its_rows(tmp_path: Path) -> None:
    keys = column(*[9_000] * 500)["k"].combine_chunks().dictionary_encode()
    texts = texts_of(tmp_path, pa.table({"k": keys}))
    assert texts.largest_part(["k"], bytes_max=MANY) == 500 * 9_000


@pytest.mark.parametrize("options", ENCODINGS.values(), ids=ENCODINGS)
def test_the_largest_part_decides(tmp_path: Path, options: dict[str, Any]) -> None:
    texts = texts_of(tmp_path, column(*[1] * 300, *[1_000] * 100), column(*[2] * 8), **options)
    assert texts.largest_part(["k"], parts=4, bytes_max=MANY) == 100 * 1_000 + 2 * 2
    assert texts.largest_part(["k"], parts=2, bytes_max=MANY) == 100 + 100 * 1_000 + 4 * 2


def test_what_cannot_be_read_is_not_held(tmp_path: Path) -> None:
    texts = texts_of(tmp_path, column(5, 5))
    Path(texts.files[0].uri).write_bytes(b"PAR1")
    assert texts.largest_part(["k"], bytes_max=100) > 100
    Path(texts.files[0].uri).unlink()
    assert texts.largest_part(["k"], bytes_max=100) > 100


def test_footers_that_tell_are_enough(tmp_path: Path) -> None:
    texts = texts_of(tmp_path, column(*range(99)), use_dictionary=False)
    Path(texts.files[0].uri).unlink()
    assert texts.largest_part(["k"], bytes_max=MANY) >= sum(range(99))
    assert texts.largest_part(["unknown"], bytes_max=MANY) > MANY


def test_nested_columns_count_as_they_are_decoded(tmp_path: Path) -> None:
    lists = pa.array([["x" * 100] * (n % 5) for n in range(1_000)])
    texts = texts_of(tmp_path, pa.table({"l": lists}), pa.table({"l": lists.slice(0, 0)}))
    total = 200_000
    assert total <= texts.largest_part(["l"], bytes_max=MANY) <= total * 1.2
    assert texts.largest_part(["l"], bytes_max=total // 2) > total // 2
