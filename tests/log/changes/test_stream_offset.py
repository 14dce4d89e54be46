"""Offsets of streams are delta-spark's, to the letter."""

from __future__ import annotations

import json

import pytest

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.changes.stream_offsets import AFTER_BARRIER, StreamOffset, parse_offset

# As delta-spark 4.4.0 has written them.
FIRST = (
    '{"sourceVersion":1,"reservoirId":"t","reservoirVersion":1,"index":2,"isStartingVersion":true}'
)
WRITTEN = (
    FIRST,
    FIRST.replace('"index":2,"isStartingVersion":true', '"index":-1,"isStartingVersion":false'),
    FIRST.replace('on":1', 'on":3', 1).replace('"index":2', '"index":-20'),
)


@pytest.mark.parametrize("text", WRITTEN)
def test_texts_come_back_as_they_were(text: str) -> None:
    assert parse_offset(text, table_id="t").text() == text
    assert parse_offset(json.loads(text), table_id="t").values() == json.loads(text)


def test_the_order_of_places() -> None:
    places = [
        StreamOffset(table_id="t", version=9),
        parse_offset(WRITTEN[2].replace('Version":1', 'Version":9'), table_id="t"),
        StreamOffset(table_id="t", version=9, index=AFTER_BARRIER),
        StreamOffset(table_id="t", version=9, index=0),
        StreamOffset(table_id="t", version=10),
    ]
    assert [p.place for p in places] == sorted({p.place for p in places})


def test_what_only_the_first_batch_has() -> None:
    text = StreamOffset(table_id="t", version=4, began_at=3).text()
    assert json.loads(text)["puredeltaStartVersion"] == 3
    assert parse_offset(text, table_id="t").began_at == 3


def test_offsets_of_earlier_releases_are_versions() -> None:
    old = parse_offset({"version": 3, "tableId": "t"}, table_id="t")
    assert old == StreamOffset(table_id="t", version=4)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("7", ErrorCode.INVALID_SOURCE_OFFSET_FORMAT),
        ("{", ErrorCode.INVALID_SOURCE_OFFSET_FORMAT),
        ('{"logOffset":7}', ErrorCode.INVALID_SOURCE_OFFSET_FORMAT),
        (WRITTEN[0].replace('"index":2', '"index":"x"'), ErrorCode.INVALID_SOURCE_OFFSET_FORMAT),
        (WRITTEN[0].replace('Version":1', 'Version":2', 1), ErrorCode.INVALID_SOURCE_VERSION),
        (WRITTEN[0].replace('Version":1', 'Version":0', 1), ErrorCode.INVALID_SOURCE_VERSION),
        (
            WRITTEN[0].replace('Version":1', 'Version":4', 1),
            ErrorCode.INVALID_FORMAT_FROM_SOURCE_VERSION,
        ),
        (WRITTEN[0].replace('"t"', '"u"'), ErrorCode.DIFFERENT_TABLE_READ_BY_STREAM),
    ],
)
def test_what_is_refused(text: str, code: ErrorCode) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        parse_offset(text, table_id="t")
    assert refused.value.code is code
