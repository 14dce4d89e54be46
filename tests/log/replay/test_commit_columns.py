"""Adds parsed into columns are those that are parsed one by one, or are left to that."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puredelta.errors import CorruptTableError
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.action_columns import CommitColumns, parse_columns, parse_commit
from puredelta.log.replay.commit_files import parse_actions
from puredelta.log.replay.replay import EMPTY_STATE, LogState, replay
from puredelta.protocol.actions.actions import Add, FileActionKey, Remove


def add(path: Any, /, **more: Any) -> dict[str, Any]:
    body = {
        "path": path,
        "partitionValues": {},
        "size": 10,
        "modificationTime": 20,
        "dataChange": True,
        **more,
    }
    return {"add": {key: value for key, value in body.items() if value is not ...}}


def remove(path: str) -> dict[str, Any]:
    return {"remove": {"path": path, "deletionTimestamp": 5, "dataChange": True}}


def content(*actions: dict[str, Any] | bytes) -> bytes:
    """Lines as writers in Java spell them, without blanks."""
    lines = [
        a if isinstance(a, bytes) else json.dumps(a, separators=(",", ":")).encode()
        for a in actions
    ]
    return b"".join(line + b"\n" for line in lines)


VECTOR = {
    "storageType": "u",
    "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
    "offset": 4,
    "sizeInBytes": 40,
    "cardinality": 6,
}
PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
METADATA = {
    "metaData": {"id": "x", "schemaString": '{"type":"struct","fields":[]}', "partitionColumns": []}
}


def _one_by_one(text: bytes) -> LogState:
    return replay(EMPTY_STATE, parse_actions(text, "x"))


def _in_columns(parsed: CommitColumns) -> LogState:
    return replay(EMPTY_STATE, [*parsed.others, parsed.adds])


def _same(one: LogState, other: LogState) -> bool:
    def adds(state: LogState) -> list[Add]:
        return sorted(state.files.adds(), key=lambda a: (a.path, str(a.deletion_vector)))

    return (
        adds(one) == adds(other)
        and one.tombstones == other.tombstones
        and (one.protocol, one.metadata) == (other.protocol, other.metadata)
    )


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"stats": '{"numRecords":3,"minValues":{"a":"\\"\\u00e9\\n"}}'},
        {"stats": None, "tags": None, "deletionVector": None, "baseRowId": None},
        {"partitionValues": {"p": "a=b", "q": None}},
        {"tags": {"INSERTION_TIME": "1"}, "clusteringProvider": "liquid"},
        {"deletionVector": VECTOR},
        {"deletionVector": {**VECTOR, "offset": None, "maxRowIndex": 77}},
        {"baseRowId": 7, "defaultRowCommitVersion": 1},
        {"size": 1 << 40, "dataChange": False},
    ],
)
def test_what_writers_write(more: dict[str, Any]) -> None:
    text = content(PROTOCOL, METADATA, remove("0"), *(add(f"{n} é", **more) for n in range(5)))
    parsed = parse_columns(text)
    assert parsed is not None
    assert len(parsed.adds) == 5
    assert _same(_in_columns(parsed), _one_by_one(text))
    assert list(parsed.adds.adds()) == [a for a in parse_actions(text, "x") if isinstance(a, Add)]


def test_files_with_and_without_vectors() -> None:
    text = content(add("1"), add("2", deletionVector=VECTOR), add("3", stats="{}"), add("1é"))
    parsed = parse_columns(text)
    assert parsed is not None
    assert _same(_in_columns(parsed), _one_by_one(text))


def test_the_same_file_with_another_vector_is_another_file() -> None:
    text = content(add("1"), add("1", deletionVector=VECTOR), remove("2"), add("3"))
    parsed = parse_columns(text)
    assert parsed is not None
    assert len(_in_columns(parsed).files) == 3


def test_a_partition_value_that_is_left_out_is_null_x82() -> None:
    text = content(add("1", partitionValues={"p": "x", "q": "y"}), add("2", partitionValues={}))
    parsed = parse_columns(text)
    assert parsed is not None
    assert [a.partition_values for a in parsed.adds.adds()] == [
        {"p": "x", "q": "y"},
        {"p": None, "q": None},
    ]


def test_adds_spelled_with_blanks_are_read_one_by_one() -> None:
    blanks = [json.dumps({"add": add(f"b{n}")["add"]}).replace(":", " : ", 1) for n in range(2)]
    text = content(*(line.encode() for line in blanks), *(add(f"{n}") for n in range(4)))
    parsed = parse_columns(text)
    assert parsed is not None
    assert (len(parsed.adds), len(parsed.others)) == (4, 2)
    assert _same(_in_columns(parsed), _one_by_one(text))


UNUSUAL = {
    "named twice": content(add("1"), add("1"), add("2")),
    "named twice, spelled otherwise": content(add("a%20b"), add("./a%20b"), add("2")),
    "removed as well": content(remove("1"), add("1"), add("2"), add("3")),
    "a key nobody knows": content(add("1", future=1), add("2")),
    "a key twice": content(
        add("1"), content(add("2")).strip().replace(b'"path"', b'"path":"0","path"')
    ),
    "another partition": content(
        add("1", partitionValues={"p": "1"}), add("2", partitionValues={"q": "1"})
    ),
    "no partition values": content(add("1"), add("2", partitionValues=...)),
    "tags of some": content(add("1"), add("2", tags={})),
    "tags of others": content(add("1", tags={"a": "1"}), add("2")),
    "other tags": content(add("1", tags={"a": "1"}), add("2", tags={})),
    "a tag without a value": content(add("1", tags={"a": "1"}), add("2", tags={"a": None})),
    "two actions in one object": content({**add("1"), **remove("2")}, add("3"), add("4")),
    "a size as text": content(add("1"), add("2", size="1")),
    "no add at all": content(b'{"add":null,"txn":{"appId":"a","version":1}}', add("1"), add("2")),
    "few adds": content(add("1"), remove("2"), remove("3")),
}
BROKEN = {
    "no path": content(add("1"), add(...)),
    "no size": content(add("1"), add("2", size=None)),
    "a fraction": content(add("1"), add("2", size=1.5)),
    "a number as partition value": content(
        add("1", partitionValues={"p": "1"}), add("2", partitionValues={"p": 2})
    ),
    "beyond 64 bits": content(add("1"), add("2", size=1 << 64)),
    "half of a vector": content(add("1"), add("2", deletionVector={"storageType": "u"})),
    "no vector at all": content(add("1"), add("2", deletionVector={})),
    "two objects": content(add("1"), content(add("2")).strip() * 2),
    "half of a line": content(add("1"), content(add("2"))[:-3]),
    "no text": content(add("1"), content(add("2")).strip().replace(b"2", b"\xff")),
    "another line": content(add("1"), add("2"), b"{"),
    "a control character": content(add("1"), content(add("2")).strip().replace(b"2", b"\x01")),
}


@pytest.mark.parametrize("text", UNUSUAL.values(), ids=UNUSUAL)
def test_what_is_unusual_is_read_one_by_one(text: bytes) -> None:
    assert parse_columns(text) is None
    assert list(parse_actions(text, "x"))


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_what_is_broken_is_named_by_its_line(text: bytes) -> None:
    assert parse_columns(text) is None
    with pytest.raises(CorruptTableError):
        replay(EMPTY_STATE, parse_actions(text, "x"))


def test_small_commits_are_read_one_by_one() -> None:
    text = content(add("1"))
    (large,) = parse_commit(text, "x", large_bytes=len(text))
    (small,) = parse_commit(text, "x", large_bytes=len(text) + 1)
    assert (type(large), type(small)) == (FileTable, Add)


def test_more_lines_than_are_parsed_together() -> None:
    text = content(*(add(f"{n}", stats=f'{{"numRecords":{n}}}') for n in range(8)))
    parsed = parse_columns(text, lines_at_once=3)
    assert parsed is not None
    assert parsed.adds.record_counts().to_pylist() == list(range(8))


def test_later_commits_replace_columns() -> None:
    commits = (
        content(PROTOCOL, METADATA, *map(add, "abcdef")),
        content(remove("b"), remove("c")),
        content(*map(add, "cg")),
        content(add("a", deletionVector=VECTOR), remove("a")),
    )
    actions = [a for text in commits for a in parse_commit(text, "x", large_bytes=0)]
    assert sum(isinstance(action, FileTable) for action in actions) == 2
    state = replay(EMPTY_STATE, actions)
    assert sorted(a.path for a in state.files.adds()) == ["a", "c", "d", "e", "f", "g"]
    assert sorted(state.tombstones["path"].to_pylist()) == ["a", "b"]


TEXTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8
)
ADDS = st.builds(
    lambda path, values, size, stats, vector, row_id: add(
        path,
        partitionValues=values,
        size=size,
        stats=stats,
        deletionVector=vector,
        baseRowId=row_id,
    ),
    TEXTS,
    st.fixed_dictionaries({"p": st.none() | TEXTS, "q é": st.none() | TEXTS}),
    st.integers(0, (1 << 63) - 1),
    st.none() | TEXTS,
    st.none() | st.just(VECTOR),
    st.none() | st.integers(0, 1 << 40),
)


@given(st.lists(ADDS, min_size=1, max_size=6), st.lists(TEXTS, max_size=2), st.booleans())
def test_any_commit(adds: list[dict[str, Any]], removed: list[str], ascii_only: bool) -> None:
    lines = [*map(remove, removed), *adds]
    text = b"".join(
        json.dumps(line, separators=(",", ":"), ensure_ascii=ascii_only).encode() + b"\n"
        for line in lines
    )
    parsed = parse_columns(text)
    if parsed is not None:
        assert _same(_in_columns(parsed), _one_by_one(text))
        return
    files = [a for a in parse_actions(text, "x") if isinstance(a, Add | Remove)]
    assert len({FileActionKey.of(f) for f in files}) < len(files) or 2 * len(adds) <= len(lines)
