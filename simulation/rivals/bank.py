"""A bank of which everybody can be asked: accounts, and a receipt for each transfer.

One MERGE changes two accounts and adds the receipt, so that every version can be judged by itself:
an account has what it had at the start and what the receipts of that version say.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

ACCOUNTS = 8
START = 1000
PREFIX = "account-"
COLUMNS = ("entry", "amount", "source", "target")
SCHEMA = "entry STRING, amount BIGINT, source INT, target INT"
ON = "t.entry = s.entry"
IS_ACCOUNT = f"t.entry LIKE '{PREFIX}%'"

Row = tuple[str, int, int | None, int | None]


class Kind(Enum):
    """What a writer is asked to do."""

    TRANSFER = "transfer"
    NOTE = "note"
    """A blind append."""
    FORGET = "forget"
    """DELETE of all notes of one number."""
    COMPACT = "compact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One statement of one writer."""

    kind: Kind
    name: str
    """Unique in the table; a note to forget is named, too."""
    source: int = 0
    target: int = 0
    amount: int = 0

    def message(self) -> dict[str, Any]:
        """Return the order as JSON has it."""
        return {**asdict(self), "kind": self.kind.value}

    @classmethod
    def of(cls, message: dict[str, Any]) -> Order:
        """Read an order."""
        return cls(**{**message, "kind": Kind(message["kind"])})

    def rows(self) -> Sequence[Row]:
        """Return the source of a transfer, or the row of a note."""
        if self.kind is Kind.NOTE:
            return [(self.name, 0, None, None)]
        return [
            (account(self.source), -self.amount, None, None),
            (account(self.target), self.amount, None, None),
            (self.name, self.amount, self.source, self.target),
        ]


def account(number: int) -> str:
    """Return the entry of an account."""
    return f"{PREFIX}{number}"


def opening_rows() -> Sequence[Row]:
    """Return the rows with which the bank opens."""
    return [(account(number), START, None, None) for number in range(ACCOUNTS)]


def require_sound(rows: Iterable[Row]) -> frozenset[str]:
    """Return the names of receipts and notes of a version whose money is right.

    Raises:
        ValueError: money or an entry was lost, made up or counted twice.
    """
    amounts: dict[str, int] = {}
    expected = {account(number): START for number in range(ACCOUNTS)}
    names: set[str] = set()
    for entry, amount, source, target in rows:
        if entry in amounts or entry in names:
            raise ValueError(f"{entry} is there twice")
        if entry.startswith(PREFIX):
            amounts[entry] = amount
            continue
        names.add(entry)
        if source is not None and target is not None:
            expected[account(source)] -= amount
            expected[account(target)] += amount
    if amounts != expected:
        wrong = {e: (amounts.get(e), expected.get(e)) for e in {*amounts, *expected}}
        raise ValueError(
            f"accounts differ from their receipts (has, should have): "
            f"{ {e: pair for e, pair in sorted(wrong.items()) if pair[0] != pair[1]} }"
        )
    return frozenset(names)
