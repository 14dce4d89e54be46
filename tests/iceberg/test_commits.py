"""Commits of this library that export after them, and VACUUM of a table that was exported."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from puredelta.commands.command import command_on
from puredelta.commands.finish import finish
from puredelta.commands.vacuum import vacuum
from puredelta.errors import DeltaError
from puredelta.log.commit.commit_request import CommitRequest
from puredelta.protocol.actions.actions import Action
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.features.property_checks import checked_properties
from puredelta.protocol.schema.types import LONG, PrimitiveType, StructType
from tests.commands.sessions import FakeSession
from tests.filled_table import SmallTable, column
from tests.iceberg.tables import delta_rows, exported_versions, iceberg_rows

OPERATION = Operation(name="TEST")
SESSION: Any = FakeSession(spark__databricks__delta__retentionDurationCheck__enabled="false")
IDS = StructType((column("id", LONG),))


def commit(table: SmallTable, *actions: Action) -> int:
    command = command_on(SESSION, table.log, table.log.snapshot(), Capability.ADMINISTER)
    return finish(command, CommitRequest(actions=actions, operation=OPERATION)).version


def test_every_commit_exports(tmp_path: Path) -> None:
    table = SmallTable(tmp_path, IDS, puredelta__iceberg__export="true")
    for number in range(3):
        version = commit(table, table.file([{"id": number}]))
        location = str(tmp_path / "_iceberg")
        assert exported_versions(location)[version]
        assert iceberg_rows(location) == delta_rows(table)


def test_commit_stays_without_an_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The next commit exports again."""
    table = SmallTable(tmp_path, IDS, puredelta__iceberg__export="true")
    with monkeypatch.context() as patched:
        patched.delitem(sys.modules, "puredelta.iceberg.exporting", raising=False)
        patched.setitem(sys.modules, "pyiceberg.manifest", None)
        with caplog.at_level(logging.WARNING):
            commit(table, table.file([{"id": 1}]))
    assert "the export to Iceberg after it failed" in caplog.text
    assert "puredelta[iceberg]" in caplog.text
    assert table.log.snapshot().version == 1
    assert not (tmp_path / "_iceberg").exists()
    commit(table, table.file([{"id": 2}]))
    assert iceberg_rows(str(tmp_path / "_iceberg")) == delta_rows(table)


def test_commit_stays_where_iceberg_has_no_type(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    schema = StructType((*IDS.fields, column("nothing", PrimitiveType("void"))))
    table = SmallTable(tmp_path, schema, puredelta__iceberg__export="true")
    with caplog.at_level(logging.WARNING):
        commit(table)
    assert "the column nothing has the type void" in caplog.text
    assert table.log.snapshot().version == 1


def test_without_the_property_nothing_is_exported(tmp_path: Path) -> None:
    table = SmallTable(tmp_path, IDS)
    commit(table, table.file([{"id": 1}]))
    assert not (tmp_path / "_iceberg").exists()


def test_property_takes_a_flag() -> None:
    name = "puredelta.iceberg.export"
    assert checked_properties({name.upper(): "true"}, allow_arbitrary=False) == {name: "true"}
    with pytest.raises(DeltaError, match=r"puredelta\.iceberg\.export"):
        checked_properties({name: "yes"}, allow_arbitrary=False)


def test_vacuum_drops_snapshots_without_files(tmp_path: Path) -> None:
    table = SmallTable(tmp_path, IDS, puredelta__iceberg__export="true")
    commit(table, table.file([{"id": 1}]))
    commit(table, *table.removes(), table.file([{"id": 2}]))
    location = str(tmp_path / "_iceberg")
    assert len(exported_versions(location)) == 2
    vacuum(SESSION, table.log, retention_hours=0, clock=lambda: 4_000_000_000_000)
    assert len(list(tmp_path.glob("*.parquet"))) == 1
    versions = exported_versions(location)
    assert min(versions) > 1
    for version, snapshot_id in versions.items():
        assert iceberg_rows(location, snapshot_id) == delta_rows(table, version)


def test_vacuum_moves_an_old_export_on(tmp_path: Path) -> None:
    """Readers of Iceberg would miss the files of the exported version."""
    table = SmallTable(tmp_path, IDS, puredelta__iceberg__export="true")
    commit(table, table.file([{"id": 1}]))
    table.change(puredelta__iceberg__export="false")
    commit(table, *table.removes(), table.file([{"id": 2}]))
    vacuum(SESSION, table.log, retention_hours=0, clock=lambda: 4_000_000_000_000)
    location = str(tmp_path / "_iceberg")
    assert iceberg_rows(location) == delta_rows(table)
    assert min(exported_versions(location)) > 1
