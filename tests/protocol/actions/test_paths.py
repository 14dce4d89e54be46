"""Spellings of paths (X-80, X-81, C-50)."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puredelta.protocol.actions import paths
from puredelta.protocol.actions.paths import (
    absolute_uri,
    absolute_uris,
    canonical_path,
    decode_path,
    encode_path,
    is_absolute_path,
    relative_path,
    short_uri,
)

NAMES = st.text(st.characters(exclude_characters="/\0"), min_size=1).filter(
    lambda name: name not in {".", ".."}
)
# What os.listdir may give: any bytes, those that are no UTF-8 as lone surrogates.
FILE_NAMES = st.binary(min_size=1).map(lambda raw: os.fsdecode(raw.translate(None, b"/\0") or b"x"))
RELATIVE = st.lists(NAMES.filter(lambda n: not any(0xD800 <= ord(c) < 0xE000 for c in n))).map(
    "/".join
)


@given(RELATIVE)
def test_a_path_survives_encoding(path: str) -> None:
    encoded = encode_path(path)
    assert encoded.isascii()
    assert decode_path(encoded) == path
    assert not is_absolute_path(encoded)


@given(FILE_NAMES)
def test_a_file_name_that_is_no_utf8_survives_encoding(name: str) -> None:
    assert decode_path(encode_path(name)) == name


@given(RELATIVE.filter(bool))
def test_a_path_below_the_root_is_found_again(path: str) -> None:
    root = "file:/data/my table"
    uri = absolute_uri(root, encode_path(path))
    assert uri == f"{root}/{path}"
    assert relative_path(root, uri) == path


@given(st.text("ab./%:é"))
def test_plain_paths_are_told_apart_quickly_and_rightly(path: str) -> None:
    quick = canonical_path(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "_is_plain", lambda _: False)
        assert quick == canonical_path(path)


@pytest.mark.parametrize(
    ("path", "encoded"),
    [
        ("p=a b/x.parquet", "p=a%20b/x.parquet"),
        ("t=10%3A00/x", "t=10%253A00/x"),
        ("special p@#h", "special%20p%40%23h"),
        ("a:b/c", "a%3Ab/c"),
        ("é+~", "%C3%A9%2B~"),
    ],
)
def test_characters_are_escaped_as_readers_expect(path: str, encoded: str) -> None:
    assert encode_path(path) == encoded


def test_a_plus_is_no_space() -> None:
    assert decode_path("a+b%20c") == "a+b c"


@pytest.mark.parametrize(
    "spellings",
    [
        # The golden tables canonicalized-paths-*: one file under several names.
        [
            "/some/with%20space/p@%23h",
            "file:/some/with%20space/p@%23h",
            "file:///some/with%20space/p%40%23h",
            "file://localhost/some/with space/p@%23h",
            "FILE:/some//with%20space/./p%40%23h",
        ],
        ["special%20p@%23h", "special p%40%23h", "./special%20p@%23h"],
        ["s3a://bucket/k%20x", "S3A://bucket//k x", "s3://bucket/k%20x", "s3n://bucket/k x"],
        ["a/%C3%A9", "a/é"],
    ],
)
def test_spellings_of_one_path_have_one_key(spellings: list[str]) -> None:
    assert len({canonical_path(s) for s in spellings}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a", "/a"),
        ("a%2520b", "a%20b"),
        ("s3a://x/a", "s3a://y/a"),
        ("s3a://x/a", "/a"),
        ("A", "a"),
    ],
)
def test_different_paths_have_different_keys(one: str, other: str) -> None:
    assert canonical_path(one) != canonical_path(other)


@pytest.mark.parametrize(
    ("root", "encoded", "uri"),
    [
        ("file:/data/t", "a%20b", "file:/data/t/a b"),
        ("file:///data/t", "a", "file:/data/t/a"),
        ("file:/data/t", "/other/x%2Cy", "file:/other/x,y"),
        ("file:/data/t", "file:///other/x", "file:/other/x"),
        ("hdfs://nn:8020/t", "/other/x", "hdfs://nn:8020/other/x"),
        ("hdfs://nn:8020/t", "p=1/x", "hdfs://nn:8020/t/p=1/x"),
        ("file:/t", "s3a://b/k%20x", "s3a://b/k x"),
        ("s3a://lake/t", "s3://b/k%20x", "s3a://b/k x"),
        ("s3://lake/t", "S3A://b//k", "s3://b/k"),
        ("s3://lake/t", "gs://b/k", "gs://b/k"),
        ("s3a://lake/t", "/k", "s3a://lake/k"),
        ("file:/t", "p=2020-01-01 10:00/x", "file:/t/p=2020-01-01 10:00/x"),
        ("/plain/root", "x", "/plain/root/x"),
        ("/plain/root", "/y", "/y"),
        ("file:/", "x", "file:/x"),
    ],
)
def test_the_uri_of_a_file(root: str, encoded: str, uri: str) -> None:
    assert absolute_uri(root, encoded) == uri
    plain = ["x.parquet", "p=1/y z.parquet"]
    together = absolute_uris(root, [*plain, encoded])
    assert together == [*(absolute_uri(root, path) for path in plain), uri]
    assert absolute_uris(root, plain) == together[:2]
    assert absolute_uris(root, []) == []


@pytest.mark.parametrize(
    "odd", ["a%20b", "/a", ".a", "a/", "a//b", "a/./b", "", "a\nb", "\n", "s:a"]
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_odd_path_among_many_is_found(odd: str, place: int) -> None:
    paths = ["a", "b/c"]
    paths.insert(place, odd)
    assert absolute_uris("file:/t", paths) == [absolute_uri("file:/t", path) for path in paths]


@pytest.mark.parametrize(
    ("root", "uri", "expected"),
    [
        ("file:/t", "file:///t/a/b", "a/b"),
        ("file:///t/", "file:/t/a", "a"),
        ("file:/t", "file:/t2/a", None),
        ("file:/t", "file:/t", None),
        ("s3a://b/t", "s3a://c/t/a", None),
    ],
)
def test_where_a_file_lies_below_the_root(root: str, uri: str, expected: str | None) -> None:
    assert relative_path(root, uri) == expected


def test_a_colon_alone_makes_no_scheme() -> None:
    assert not is_absolute_path("p:1/x")
    assert is_absolute_path("s3a://b/x")
    assert is_absolute_path("/x")
    assert short_uri("p:1/x") == "p:1/x"
