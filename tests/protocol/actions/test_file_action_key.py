from __future__ import annotations

from puredelta.protocol.actions.actions import Add, DeletionVectorDescriptor, FileActionKey, Remove

VECTOR = DeletionVectorDescriptor(
    storage_type="u", path_or_inline="abc", offset=7, size_bytes=40, cardinality=3
)


def _key(path: str, vector: DeletionVectorDescriptor | None = None) -> FileActionKey:
    return FileActionKey.of(
        Add(
            path=path,
            partition_values={},
            size_bytes=1,
            modified_ms=2,
            data_change=True,
            deletion_vector=vector,
        )
    )


def test_spellings_of_one_path_have_one_key() -> None:
    assert _key("a%20b") == _key("a b")
    assert _key("file:/x/a") == _key("file:///x/a") == _key("/x/a")


def test_a_file_with_another_vector_is_another_file() -> None:
    assert _key("a") != _key("a", VECTOR)
    assert _key("a").encoded != _key("a", VECTOR).encoded


def test_an_add_and_a_remove_of_one_file_have_one_key() -> None:
    remove = Remove(path="a", deleted_ms=0, data_change=True, deletion_vector=VECTOR)
    assert FileActionKey.of(remove) == _key("a", VECTOR)


def test_escaped_bytes_that_are_no_text_can_be_encoded() -> None:
    assert _key("%ff").encoded.isascii()
    assert _key("%ff").encoded != _key("%fe").encoded
