"""M-103: the high water mark is part of the table, so two writers cannot give out one value."""

from __future__ import annotations

from pathlib import Path

import pytest

from puredelta.commands.defined_columns import config_with_marks, identity_tags
from puredelta.errors import ConflictError, ErrorCode
from puredelta.protocol.actions.operations import WriteMode, write
from puredelta.protocol.schema.types import LONG, StructField
from tests.commands.filled import identity, lay_empty
from tests.log.tables import Client, add

WRITE = write(WriteMode.APPEND, partition_by=())


def test_a_rival_that_numbered_rows_is_a_conflict(tmp_path: Path) -> None:
    log = lay_empty(tmp_path / "t", identity("id"), StructField("k", LONG))
    before = log.snapshot().config
    first, second = (Client(log, log.snapshot()) for _ in range(2))
    after = config_with_marks(before, {"id": 3})
    first.commit([after.metadata, add("a")], WRITE, tags=identity_tags(before, after))
    other = config_with_marks(before, {"id": 5})
    with pytest.raises(ConflictError) as caught:
        second.commit([other.metadata, add("b")], WRITE)
    assert caught.value.code is ErrorCode.METADATA_CHANGED
    assert log.snapshot().config.identity_columns["id"].high_water_mark == 3


def test_a_rival_that_only_added_rows_is_none(tmp_path: Path) -> None:
    log = lay_empty(tmp_path / "t", identity("id", explicit=True), StructField("k", LONG))
    before = log.snapshot().config
    first, second = (Client(log, log.snapshot()) for _ in range(2))
    first.commit([add("a")], WRITE)
    after = config_with_marks(before, {"id": 3})
    assert second.commit([after.metadata, add("b")], WRITE).version == 2


def test_the_tag_marks_commits_that_change_nothing_else(tmp_path: Path) -> None:
    log = lay_empty(tmp_path / "t", identity("id"), StructField("k", LONG))
    before = log.snapshot().config
    assert identity_tags(before, before) is None
    after = config_with_marks(before, {"id": 3})
    assert identity_tags(before, after) == {"delta.identity.schemaUpdate": "true"}
    assert identity_tags(config_with_marks(before, {"id": 1}), after) is not None
    (tmp_path / "u").mkdir()
    other = lay_empty(tmp_path / "u", identity("id"), StructField("l", LONG)).snapshot().config
    assert identity_tags(before, other) is None
