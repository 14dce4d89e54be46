"""Files without a log, left by a program that ended while it made a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from puredelta.commands.create.create_table import CreateMode, Entry, find_existing
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.replay.table_log import TableLog
from puredelta.store.registry import open_store


@pytest.fixture
def log(tmp_path: Path) -> TableLog:
    (tmp_path / "part-0.parquet").write_bytes(b"rows")
    return TableLog(open_store(str(tmp_path)))


def test_a_directory_of_the_catalog_is_used_again(log: TableLog) -> None:
    entry = Entry(name="t", is_known=True, is_managed=True)
    assert find_existing(log, CreateMode.CREATE_OR_REPLACE, entry) is None


@pytest.mark.parametrize(("is_known", "is_managed"), [(True, False), (False, True)])
def test_any_other_directory_is_refused(log: TableLog, is_known: bool, is_managed: bool) -> None:
    entry = Entry(name="t", is_known=is_known, is_managed=is_managed)
    with pytest.raises(InvalidRequestError) as error:
        find_existing(log, CreateMode.CREATE_OR_REPLACE, entry)
    assert error.value.code is ErrorCode.CREATE_TABLE_WITH_NON_EMPTY_LOCATION
