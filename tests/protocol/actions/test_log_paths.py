"""Names in the log directory (protocol "File Types")."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puredelta.protocol.actions.log_paths import (
    VERSION_MAX,
    ChecksumFile,
    ClassicCheckpoint,
    CommitFile,
    CompactedFile,
    LogName,
    MultiPartCheckpoint,
    V2Checkpoint,
    classic_checkpoint_name,
    commit_name,
    log_path,
    parse_log_name,
    version_prefix,
)

V10 = "00000000000000000010"
V20 = "00000000000000000020"
UUID = "6374b053-df23-479b-b2cf-c9c550132b49"


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        (f"{V10}.json", CommitFile(10)),
        (f"{V10}.crc", ChecksumFile(10)),
        (f"{V10}.{V20}.compacted.json", CompactedFile(10, 20)),
        (f"{V10}.checkpoint.parquet", ClassicCheckpoint(10)),
        (f"{V10}.checkpoint.0000000002.0000000003.parquet", MultiPartCheckpoint(10, 2, 3)),
        (f"{V10}.checkpoint.{UUID}.json", V2Checkpoint(10)),
        (f"{V10}.checkpoint.{UUID}.parquet", V2Checkpoint(10)),
    ],
)
def test_every_kind_is_recognised(name: str, parsed: LogName) -> None:
    assert parse_log_name(name) == parsed
    assert parsed.version in {10, 20}


@pytest.mark.parametrize(
    "name",
    [
        "_last_checkpoint",
        "_commits",
        "_sidecars",
        "10.json",
        f"{V10}.json.tmp",
        f".{V10}.json",
        f"{V10}.json\n",
        f"{V10}.{UUID}.json",  # a staged commit: belongs to a catalog
        f"{V20}.{V10}.compacted.json",
        f"{V10}.checkpoint.0000000004.0000000003.parquet",
        f"{V10}.checkpoint.0000000000.0000000003.parquet",
        f"{V10}.checkpoint.{UUID}.avro",
        f"{V10}.checkpoint.not-a-uuid.json",
        "\u0660" * 20 + ".json",  # digits of another script
    ],
)
def test_other_names_are_no_error(name: str) -> None:
    assert parse_log_name(name) is None


@given(st.integers(0, VERSION_MAX), st.integers(1, 9999), st.integers(0, 9999))
def test_names_survive_parsing(version: int, part: int, more: int) -> None:
    parts = part + more
    assert parse_log_name(commit_name(version)) == CommitFile(version)
    assert parse_log_name(f"{version:020d}.crc") == ChecksumFile(version)
    assert parse_log_name(classic_checkpoint_name(version)) == ClassicCheckpoint(version)
    multi = f"{version:020d}.checkpoint.{part:010d}.{parts:010d}.parquet"
    assert parse_log_name(multi) == MultiPartCheckpoint(version, part, parts)
    if version + part <= VERSION_MAX:
        low, high = version, version + part
        assert parse_log_name(f"{low:020d}.{high:020d}.compacted.json") == CompactedFile(low, high)


@given(st.integers(0, VERSION_MAX), st.integers(0, VERSION_MAX))
def test_names_sort_as_versions_do(a: int, b: int) -> None:
    assert (commit_name(a) < commit_name(b)) == (a < b)


@pytest.mark.parametrize("version", [-1, VERSION_MAX + 1])
def test_a_version_outside_the_range_is_refused(version: int) -> None:
    with pytest.raises(ValueError, match="table version"):
        version_prefix(version)


def test_log_paths_are_relative_to_the_table() -> None:
    assert log_path("x") == "_delta_log/x"
