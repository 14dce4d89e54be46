"""A stream that follows changes, killed anywhere: every file once, in its own columns."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.changes.schema_log import ALWAYS, OPTIONS, AllowedChanges, SchemaLog
from puredelta.log.changes.schema_tracking import StreamTracking, TrackedRead
from puredelta.log.changes.stream import (
    RowStream,
    StreamLog,
    StreamRules,
    StreamSettings,
    batch_adds,
)
from puredelta.log.changes.stream_offsets import ReadLimits, StreamStart
from puredelta.log.changes.stream_schema import StreamedTable
from puredelta.protocol.actions.actions import Add, Metadata
from puredelta.protocol.schema.schema_json import parse_schema
from puredelta.protocol.schema.types import StructField, StructType
from puredelta.store.base import PutOutcome
from puredelta.store.local import LocalStore
from tests.log.changes.tables import MAPPED, TABLE_ID, Table, column, columns
from tests.log.tables import add

LAST = 12
RESTARTS_MAX = 500
SOURCE_PATH = "file:/c/sources/0"


class KilledError(Exception):
    """The process is gone."""


class DyingStore(LocalStore):
    """Dies before or after a file is written."""

    step: Callable[[], None]

    def put_if_absent(self, path: str, content: bytes) -> PutOutcome:
        self.step()
        outcome = super().put_if_absent(path, content)
        self.step()
        return outcome


@dataclass
class History:
    """Commits at random: files, columns, or both."""

    table: Table
    dice: random.Random
    now: Metadata
    files: dict[str, int] = field(default_factory=dict)
    """The version of each."""
    schemas: list[StructType] = field(default_factory=list)
    """That in force at each version."""

    def commit(self) -> None:
        actions: list[Add | Metadata] = []
        if self.dice.random() < 0.5:
            self.now = self._changed()
            actions.append(self.now)
        if not actions or self.dice.random() < 0.3:
            num_files = self.dice.randint(1, 3)
            actions += [add(f"f{self.table.version + 1}-{n}") for n in range(num_files)]
        version = self.table.commit(*actions)
        self.files |= {a.path: version for a in actions if isinstance(a, Add)}
        self.schemas.append(parse_schema(self.now.schema_string))

    def _changed(self) -> Metadata:
        fields: list[StructField] = list(parse_schema(self.now.schema_string).fields)
        n = self.table.version + 1
        match self.dice.randint(0, 4):
            case 0:
                old = fields[-1]
                fields[-1] = replace(old, name=f"renamed{n}")
            case 1 if len(fields) > 1:
                del fields[-1]
            case 2:
                fields.append(column(f"added{n}", f"p{n}"))
            case 3:
                return replace(
                    self.now, configuration={**self.now.configuration, "delta.x": str(n)}
                )
            case _:
                return replace(self.now, configuration={**self.now.configuration, "x": str(n)})
        return replace(columns(*fields), configuration=self.now.configuration)


@dataclass
class Engine:
    """What Spark's engine does with a source, and what it keeps."""

    history: History
    tracking: Path
    settings: StreamSettings
    dice: random.Random
    offsets: list[str] = field(default_factory=list)
    num_committed: int = 0
    delivered: dict[int, list[tuple[str, StructType]]] = field(default_factory=dict)

    def step(self) -> None:
        if self.history.table.version < LAST and self.dice.random() < 0.1:
            self.history.commit()
        if self.dice.random() < 0.12:
            raise KilledError

    def run(self) -> None:
        log = self.history.table.log()
        store = DyingStore(str(self.tracking))
        store.step = self.step
        read = TrackedRead.of(log, SchemaLog.read(store, TABLE_ID))
        allowed = AllowedChanges(options=dict.fromkeys(OPTIONS, ALWAYS))
        tracking = StreamTracking(log, read, allowed)
        table = StreamedTable.of(read.snapshot, follows_changes=True)
        rows = RowStream(table=table, rules=StreamRules())
        stream = StreamLog(log, rows, self.settings, tracking)
        tracking.begin(SOURCE_PATH, {})
        places = [stream.offset(text) for text in self.offsets]
        if places and self.num_committed == len(places):
            stream.batch(places[-2] if len(places) > 1 else None, places[-1])
        while True:
            if self.num_committed == len(places):
                last = places[-1] if places else None
                end = stream.latest(last, ReadLimits(max_files=2))
                if end is None or end is last:
                    return
                self.step()
                self.offsets.append(end.text())
                places.append(end)
                self.step()
                if last is not None:
                    stream.complete(last)
            self.step()
            batch = stream.batch(places[-2] if len(places) > 1 else None, places[-1])
            columns_read = read.snapshot.config.schema
            found = [(file.path, columns_read) for file in batch_adds(batch)]
            self.delivered[len(places) - 1] = found
            self.step()
            self.num_committed += 1

    def run_through(self) -> int:
        for n in range(RESTARTS_MAX):
            try:
                self.run()
            except KilledError:
                if self.history.table.version < LAST and self.dice.random() < 0.3:
                    self.history.commit()
                continue
            except InvalidRequestError as error:
                assert error.code is ErrorCode.STREAMING_METADATA_EVOLUTION  # noqa: PT017
                continue
            return n
        raise AssertionError("it never ends")


@pytest.mark.parametrize("start", ["whole", "first"])
@pytest.mark.parametrize("seed", range(12))
def test_every_file_once_in_its_columns(tmp_path: Path, seed: int, start: str) -> None:
    dice = random.Random(seed)
    table = Table(tmp_path / "t")
    now = columns(column("a", "p-a"), column("b", "p-b"))
    table.commit(MAPPED, now)
    history = History(table, dice, now, schemas=[parse_schema(now.schema_string)])
    for _ in range(dice.randint(0, 8)):
        history.commit()
    begin = StreamStart() if start == "whole" else StreamStart(version=0)
    engine = Engine(history, tmp_path / "log", StreamSettings(start=begin), dice)
    while table.version < LAST:
        engine.run_through()
        history.commit()
    engine.run_through()
    found = [item for n in sorted(engine.delivered) for item in engine.delivered[n]]
    assert sorted(path for path, _ in found) == sorted(history.files)
    first = _initial_version(engine) if start == "whole" else -1
    for path, schema in found:
        version = max(history.files[path], first)
        known = history.schemas[version : 1 + _merged_through(history, version)]
        assert schema in known, f"{path} of version {version}, from {first} on"


def _merged_through(history: History, version: int) -> int:
    """Return the last of the changes that follow a version without a file between."""
    with_files = set(history.files.values())
    if version in with_files:
        return version
    later = range(version, history.table.version + 1)
    return next((v - 1 for v in later if v in with_files), history.table.version)


def _initial_version(engine: Engine) -> int:
    log = engine.history.table.log()
    rows = RowStream(table=StreamedTable.of(log.snapshot()), rules=StreamRules())
    offset = StreamLog(log, rows, StreamSettings()).offset(engine.offsets[0])
    return offset.version if offset.is_initial else offset.version - 1
