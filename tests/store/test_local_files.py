from __future__ import annotations

from pathlib import Path

import pytest

from puredelta.store.registry import file_status, local_path, open_file, read_end


def test_a_file_is_known_by_its_size_and_time(tmp_path: Path) -> None:
    path = tmp_path / "a %20 file"
    path.write_bytes(b"abc")
    seen = file_status(f"file:{path}")
    assert seen is not None
    assert (seen.size_bytes, seen.modified_ns) == (3, path.stat().st_mtime_ns)
    assert seen.modified_ms == path.stat().st_mtime_ns // 1_000_000
    assert file_status(f"file:{path}") == seen
    with open_file(f"file:{path}") as opened:
        assert opened.read() == b"abc"
    assert read_end(f"file:{path}", 2) == (b"bc", 3)


def test_what_is_out_of_reach(tmp_path: Path) -> None:
    assert file_status(f"file:{tmp_path / 'gone'}") is None
    assert file_status(f"file:{tmp_path}") is None, "a directory"
    assert file_status(f"file:{tmp_path}/gone/below") is None
    assert local_path("s3a://bucket/a") is None
    assert file_status("s3a://bucket/a") is None
    with pytest.raises(FileNotFoundError):
        open_file("s3a://bucket/a")
    with pytest.raises(FileNotFoundError):
        read_end("s3a://bucket/a", 8)
