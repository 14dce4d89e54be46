"""The table of the simulation: accounts of a bank, as rows of data files.

An account's balance is the sum of the amounts of its rows. Money only moves between accounts,
so the sum over the table is one number for ever. No account but the bank's own may fall below
zero: whoever takes money reads first how much is there, and two who read the same money must
not both take it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from puredelta.protocol.actions.actions import (
    Add,
    DeletionVectorDescriptor,
    Metadata,
    Protocol,
)
from puredelta.protocol.actions.deletion_vector import decode_block, vector_range
from puredelta.protocol.schema.predicates import (
    Compare,
    CompareOp,
    Const,
    Or,
    Predicate,
    Ref,
    Side,
)
from puredelta.protocol.schema.schema_json import encode_schema
from puredelta.protocol.schema.types import INTEGER, LONG, STRING, StructField, StructType

BANK = 0
"""The account that money comes from and goes to; it alone may be overdrawn."""
ACCOUNTS = (1, 2, 3)
START = 100
TOTAL = START * len(ACCOUNTS)
"""What all rows amount to, once the bank is open."""

RETENTION = timedelta(hours=6)
"""How long VACUUM keeps removed files."""
LOG_RETENTION = timedelta(days=1)
STATEMENT_MAX = timedelta(hours=3)
"""No statement takes longer: retention times are made for that."""

_SCHEMA = StructType(
    (StructField("entry", STRING), StructField("account", INTEGER), StructField("amount", LONG))
)
_ACCOUNT = Ref(Side.TARGET, ("account",), INTEGER)
_CREATED_MS = 1_700_000_000_000


class Row(NamedTuple):
    """An amount on an account. ``entry`` is unique in the table."""

    entry: str
    account: int
    amount: int


Rows = Mapping[str, Row]
"""The rows of a table, by entry."""


def opening_row(account: int) -> str:
    """Return the entry of the row that an account has from the start."""
    return f"opening-{account}"


def opening_rows() -> tuple[Row, ...]:
    """Return the rows with which the bank opens."""
    return tuple(Row(opening_row(account), account, START) for account in ACCOUNTS)


def payment(entry: str, *, source: int, target: int, amount: int) -> tuple[Row, Row]:
    """Return the two rows that move an amount; they add up to nothing."""
    return Row(f"{entry}-to", target, amount), Row(f"{entry}-from", source, -amount)


def balance(rows: Iterable[Row], account: int) -> int:
    """Return what an account has."""
    return sum(row.amount for row in rows if row.account == account)


def encode_rows(rows: Sequence[Row]) -> bytes:
    """Write the content of a data file. Nothing under test opens one, so JSON will do."""
    return json.dumps(rows).encode()


@lru_cache(10_000)
def decode_rows(content: bytes) -> tuple[Row, ...]:
    """Read the content of a data file."""
    return tuple(Row(*row) for row in json.loads(content))


@lru_cache(10_000)
def hidden_positions(content: bytes, vector: DeletionVectorDescriptor) -> frozenset[int]:
    """Return the positions of rows that a deletion vector of a file hides."""
    start, length = vector_range(vector)
    return frozenset(decode_block(content[start : start + length], vector).tolist())


def of_accounts(*accounts: int) -> Predicate:
    """Return the condition that a row is of one of the accounts."""
    tests = tuple(Compare(CompareOp.EQUAL, _ACCOUNT, Const(account)) for account in accounts)
    return tests[0] if len(tests) == 1 else Or(tests)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableTraits:
    """Which table it is: how rows are laid out, and the features it has."""

    partitioned: bool
    vectors: bool
    row_ids: bool
    timestamps: bool
    v2_checkpoints: bool
    checkpoint_interval: int

    def definition(self, table_id: str) -> tuple[Protocol, Metadata]:
        """Return what creates the table."""
        return self._protocol(), Metadata(
            id=table_id,
            schema_string=encode_schema(_SCHEMA),
            partition_columns=("account",) if self.partitioned else (),
            configuration=self._configuration(),
            created_ms=_CREATED_MS,
        )

    def _protocol(self) -> Protocol:
        readers = {"deletionVectors": self.vectors, "v2Checkpoint": self.v2_checkpoints}
        writers = {
            "rowTracking": self.row_ids,
            "domainMetadata": self.row_ids,
            "inCommitTimestamp": self.timestamps,
        }
        reading = frozenset(name for name, wanted in readers.items() if wanted)
        writing = reading | {name for name, wanted in writers.items() if wanted}
        if not writing:
            return Protocol(min_reader_version=1, min_writer_version=2)
        return Protocol(
            min_reader_version=3,
            min_writer_version=7,
            reader_features=reading,
            writer_features=writing | {"appendOnly", "invariants"},
        )

    def _configuration(self) -> dict[str, str]:
        switches = {
            "delta.enableDeletionVectors": self.vectors,
            "delta.enableInCommitTimestamps": self.timestamps,
        }
        return {
            "delta.checkpointInterval": str(self.checkpoint_interval),
            "delta.logRetentionDuration": _interval(LOG_RETENTION),
            "delta.deletedFileRetentionDuration": _interval(RETENTION),
            **{name: "true" for name, wanted in switches.items() if wanted},
            **({"delta.checkpointPolicy": "v2"} if self.v2_checkpoints else {}),
        }

    def grouped(self, rows: Iterable[Row]) -> Iterator[tuple[Row, ...]]:
        """Cut rows into those of one file each: a partition has files of its own."""
        if not self.partitioned:
            yield from filter(None, (tuple(rows),))
            return
        ordered = sorted(rows, key=lambda row: row.account)
        for _, group in groupby(ordered, key=lambda row: row.account):
            yield tuple(group)

    def describe(self, path: str, rows: Sequence[Row], *, size_bytes: int, now_ms: int) -> Add:
        """Return the action that adds a file of rows to the table."""
        accounts = [row.account for row in rows]
        bounds = {} if self.partitioned else {"account": (min(accounts), max(accounts))}
        stats = {
            "numRecords": len(rows),
            "minValues": {name: least for name, (least, _) in bounds.items()},
            "maxValues": {name: most for name, (_, most) in bounds.items()},
            "nullCount": dict.fromkeys(bounds, 0),
        }
        return Add(
            path=path,
            partition_values={"account": str(accounts[0])} if self.partitioned else {},
            size_bytes=size_bytes,
            modified_ms=now_ms,
            data_change=True,
            stats=json.dumps(stats),
        )

    def may_hold(self, file: Add, accounts: Collection[int]) -> bool:
        """Tell by the log alone whether a file may hold a row of one of the accounts."""
        if self.partitioned:
            return int(file.partition_values["account"] or 0) in accounts
        least, most = _bounds(file.stats or "")
        return any(least <= account <= most for account in accounts)


@lru_cache(10_000)
def _bounds(stats: str) -> tuple[int, int]:
    parsed = json.loads(stats)
    return parsed["minValues"]["account"], parsed["maxValues"]["account"]


def _interval(duration: timedelta) -> str:
    return f"interval {duration // timedelta(hours=1)} hours"
