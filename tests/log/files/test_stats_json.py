"""Statistics are parsed where their texts lie, in pieces; what is no object alone is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from puredelta.log.files.stats_columns import read_raw_statistics
from puredelta.log.files.stats_json import (
    BATCH_BYTES,
    read_with_arrow,
    read_with_python,
    text_batches,
)
from puredelta.protocol.schema.types import LONG, STRING

_LEAVES = {("a",): LONG, ("s", "b"): STRING}


def _text(number: int) -> str:
    bounds = f'{{"a":{number},"s":{{"b":"{{ä}}\\"{number}"}},"other":[1]}}'
    return f'{{"numRecords":{number},"minValues":{bounds},"maxValues":{bounds},"nullCount":{{}}}}'


@pytest.mark.parametrize("batch_bytes", [1, 200, 1 << 20])
@pytest.mark.parametrize("sizes", [[9], [1, 0, 5, 3], [], [0], [90, 0, 17]])
def test_texts_of_any_arrays_are_parsed_in_batches(sizes: list[int], batch_bytes: int) -> None:
    whole = pa.array(["not parsed", *map(_text, range(sum(sizes))), "{not parsed}"])
    ends = [sum(sizes[:n]) + 1 for n in range(len(sizes))]
    chunks = [whole.slice(end, size) for end, size in zip(ends, sizes, strict=True)]
    texts = pa.chunked_array(chunks, pa.string())
    found = read_raw_statistics(texts, _LEAVES, batch_bytes=batch_bytes)
    assert found == read_with_python(texts, _LEAVES)
    assert found.num_records.to_pylist() == list(range(sum(sizes)))


def test_large_texts_are_parsed_apart() -> None:
    texts = pa.chunked_array([[_text(n) for n in range(10)], [_text(10)]])
    little = text_batches(texts, BATCH_BYTES)
    assert [len(batch) for batch in little] == [11], "little text is parsed at once"
    assert [len(batch) for batch in text_batches(texts, texts.nbytes // 3)] == [4, 4, 2, 1]


def test_files_without_statistics_stand_among_others() -> None:
    texts = pa.array([_text(1), None, "{}", _text(2)])
    found = read_with_arrow(texts, _LEAVES)
    assert found == read_with_python(texts, _LEAVES)
    assert found.num_records.to_pylist() == [1, None, None, 2]


@pytest.mark.parametrize("space", ["\n", "\r\n", " \n\t"])
def test_white_space_between_values_is_nothing(space: str) -> None:
    spaced = [f"{space}{_text(n)}{space}".replace(",", f",{space}") for n in range(4)]
    found = read_with_arrow(pa.array(spaced), _LEAVES)
    assert found is not None
    assert found.num_records.to_pylist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "broken",
    [
        ["{}{}"],
        ["{}", "{}{}", "{}"],
        ['{"numRecords":1'],
        ['{"numRecords":{}', "{}}"],
        ['{"numRecords":1,"other":"}', '{"}'],
        ['{"numRecords":"one"}'],
        ['{"numRecords":1,}'],
        ["[1]"],
        [""],
        ["null"],
    ],
)
def test_what_is_no_object_alone_is_refused(broken: list[str]) -> None:
    assert read_with_arrow(pa.array([*broken, _text(1)]), _LEAVES) is None
