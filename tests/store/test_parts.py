"""Content in parts is created as content in one piece is."""

from __future__ import annotations

from pathlib import Path

import pytest

from puredelta.store import base as parts
from puredelta.store.base import PutOutcome, put_parts_if_absent
from puredelta.store.local import LocalStore


@pytest.mark.parametrize("short_bytes", [0, 100])
def test_parts_make_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short_bytes: int
) -> None:
    monkeypatch.setattr(parts, "SHORT_BYTES_MAX", short_bytes)
    store = LocalStore(tmp_path)
    assert put_parts_if_absent(store, "d/f", iter([b"ab", b"", b"c"])) is PutOutcome.CREATED
    assert put_parts_if_absent(store, "d/f", [b"x"]) is PutOutcome.ALREADY_EXISTS
    assert store.read("d/f") == b"abc"
    assert [path.name for path in (tmp_path / "d").iterdir()] == ["f"]


def test_parts_that_fail_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "SHORT_BYTES_MAX", 0)

    def broken():
        yield b"ab"
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError):
        put_parts_if_absent(LocalStore(tmp_path), "d/f", broken())
    assert not list((tmp_path / "d").iterdir())
