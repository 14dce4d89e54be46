"""What VACUUMs leave in the log of a table, at times of one's own."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.log_paths import commit_name, log_path
from puredelta.protocol.actions.operations import Operation, vacuum_end, vacuum_start
from puredelta.store.local import LocalStore
from tests.log.tables import Client

NOW_MS = 2_000_000_000_000
DAY_MS = 86_400_000


def record(log: TableLog, operation: Operation, *, ago_ms: int) -> None:
    """Commit what a VACUUM says, with the times that a clock of then would have given."""
    then_ms = NOW_MS - ago_ms
    client = Client(log, log.snapshot(), clock=lambda: then_ms)
    version = client.commit([], operation).version
    assert isinstance(log.store, LocalStore)
    file = Path(log.root_uri.removeprefix("file:")) / log_path(commit_name(version))
    os.utime(file, (then_ms / 1000, then_ms / 1000))


STARTED = vacuum_start(retention_check=True, default_retention=dt.timedelta(days=7), retention=None)
ENDED = vacuum_end(completed=True)
