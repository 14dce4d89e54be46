"""Statements that move money: each reads what it must know, and says that it has read it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from puredelta.log.commit.commit_request import CommitRequest
from puredelta.log.files.file_table import FileTable
from puredelta.protocol.actions.actions import SetTransaction
from puredelta.protocol.actions.operations import (
    WriteMode,
    delete,
    streaming_update,
    update,
    write,
)
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.schema.predicates import FALSE
from simulation.bank import (
    ACCOUNTS,
    BANK,
    Row,
    Rows,
    balance,
    of_accounts,
    opening_row,
    payment,
)
from simulation.client import Client, ReadRows, Written
from simulation.statements.statement import Outcome

_APPEND = write(WriteMode.APPEND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """UPDATE: take an amount off the first row of one account and put it onto another's.

    Reads all rows of the source, which must have the money. Of the target it needs the one
    row it changes: ``by_file`` declares no more than the file with it.
    """

    source: int
    target: int
    amount: int
    by_file: bool
    by_vector: bool

    def run(self, client: Client) -> Outcome:
        """Move the money, if the source has it."""
        snapshot = client.snapshot()
        read = client.read_accounts(snapshot, self.source, self.target)
        names = {opening_row(self.source), opening_row(self.target)}
        available = balance(read.rows.values(), self.source)
        if available < self.amount or not names <= read.rows.keys():
            return Outcome.NOTHING_TO_DO
        command = client.start(snapshot, self._effect)
        touched = [each.file for each in read.files if each.holds(names)]
        if self.by_file:
            client.declare(command, of_accounts(self.source), self._of_source(client, read))
            client.declare(command, FALSE, FileTable.of(touched))
        else:
            client.declare(command, of_accounts(self.source, self.target), read.candidates)
        written = Written()
        with client.writing(written):
            for file in touched:
                client.change(written, command, file, self._changed, by_vector=self.by_vector)
        client.commit(command, written, CommitRequest(actions=(), operation=update("...")))
        return Outcome.COMMITTED

    def _of_source(self, client: Client, read: ReadRows) -> FileTable:
        accounts = (self.source,)
        files = enumerate(read.files)
        places = [n for n, each in files if client.traits.may_hold(each.file, accounts)]
        return read.candidates.take(places)

    def _changed(self, row: Row) -> Row:
        if row.entry == opening_row(self.source):
            return row._replace(amount=row.amount - self.amount)
        if row.entry == opening_row(self.target):
            return row._replace(amount=row.amount + self.amount)
        return row

    def _effect(self, rows: Rows) -> Rows:
        return {entry: self._changed(row) for entry, row in rows.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Deposit:
    """INSERT of a payment from the bank, which reads nothing."""

    account: int
    amount: int

    def run(self, client: Client) -> Outcome:
        """Add two rows."""
        new = payment(client.new_id(), source=BANK, target=self.account, amount=self.amount)
        command = client.start(client.snapshot(), _adding(*new), capability=Capability.APPEND)
        written = Written()
        with client.writing(written):
            client.add_rows(written, new)
        client.commit(command, written, CommitRequest(actions=(), operation=_APPEND))
        return Outcome.COMMITTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """INSERT ... SELECT from the same table: pay all that an account has to another one."""

    source: int
    target: int

    def run(self, client: Client) -> Outcome:
        """Add two rows that depend on all others of the account."""
        snapshot = client.snapshot()
        read = client.read_accounts(snapshot, self.source)
        amount = balance(read.rows.values(), self.source)
        if amount <= 0:
            return Outcome.NOTHING_TO_DO
        entry = client.new_id()

        def effect(rows: Rows) -> Rows:
            amount = balance(rows.values(), self.source)
            return _adding(*payment(entry, source=self.source, target=self.target, amount=amount))(
                rows
            )

        command = client.start(snapshot, effect)
        client.declare(command, of_accounts(self.source), read.candidates)
        written = Written()
        with client.writing(written):
            moved = payment(entry, source=self.source, target=self.target, amount=amount)
            client.add_rows(written, moved)
        client.commit(command, written, CommitRequest(actions=(), operation=_APPEND))
        return Outcome.COMMITTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """DELETE of payments from the bank to an account, as long as their money is still there."""

    account: int
    by_vector: bool
    every: bool
    """Not the first one alone."""

    def run(self, client: Client) -> Outcome:
        """Delete both rows of each payment."""
        snapshot = client.snapshot()
        read = client.read_accounts(snapshot, self.account, BANK)
        names = self._chosen(read.rows)
        if not names:
            return Outcome.NOTHING_TO_DO

        def remaining(row: Row) -> Row | None:
            return None if row.entry in names else row

        def effect(rows: Rows) -> Rows:
            return {entry: row for entry, row in rows.items() if entry not in names}

        command = client.start(snapshot, effect)
        client.declare(command, of_accounts(self.account, BANK), read.candidates)
        written = Written()
        with client.writing(written):
            for each in read.files:
                if each.holds(names):
                    client.change(written, command, each.file, remaining, by_vector=self.by_vector)
        client.commit(command, written, CommitRequest(actions=(), operation=delete("...")))
        return Outcome.COMMITTED

    def _chosen(self, rows: Rows) -> frozenset[str]:
        """Return the entries of payments that the account can give back."""
        available = balance(rows.values(), self.account)
        names: set[str] = set()
        for row in rows.values():
            other = rows.get(f"{row.entry.removesuffix('-to')}-from")
            if row.account != self.account or other is None or other.account != BANK:
                continue
            if row.amount <= available and (self.every or not names):
                available -= row.amount
                names |= {row.entry, other.entry}
        return frozenset(names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Raise:
    """UPDATE: raise a payment from the bank. What happens to a row depends on no other row."""

    account: int
    amount: int
    which: int
    """Counts the payments there are."""

    def run(self, client: Client) -> Outcome:
        """Change both rows of the payment, with deletion vectors where the table has them."""
        snapshot = client.snapshot()
        read = client.read_accounts(snapshot, self.account, BANK)
        payments = [
            (row.entry, other)
            for row in read.rows.values()
            if row.account == self.account
            and (other := f"{row.entry.removesuffix('-to')}-from") in read.rows
            and read.rows[other].account == BANK
        ]
        if not payments:
            return Outcome.NOTHING_TO_DO
        received, paid = sorted(payments)[self.which % len(payments)]

        def changed(row: Row) -> Row:
            by = {received: self.amount, paid: -self.amount}.get(row.entry, 0)
            return row._replace(amount=row.amount + by)

        def effect(rows: Rows) -> Rows:
            return {entry: changed(row) for entry, row in rows.items()}

        command = client.start(snapshot, effect)
        touched = [each.file for each in read.files if each.holds({received, paid})]
        client.declare(command, FALSE, FileTable.of(touched), judges_rows_alone=True)
        written = Written()
        with client.writing(written):
            for file in touched:
                client.change(written, command, file, changed, by_vector=True)
        client.commit(command, written, CommitRequest(actions=(), operation=update("...")))
        return Outcome.COMMITTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One batch of a streaming query; two drivers may believe that the query is theirs."""

    query: str
    account: int
    amount: int
    again: bool
    """Try the last batch once more, as a driver does that was killed after its commit."""

    def run(self, client: Client) -> Outcome:
        """Add the rows of the batch unless they are in the table already."""
        snapshot = client.snapshot()
        last = snapshot.set_transactions.get(self.query)
        number = (-1 if last is None else last.version) + (0 if self.again and last else 1)
        batch = SetTransaction(app_id=self.query, version=number)
        entry = f"{self.query}-{number}"
        new = payment(entry, source=BANK, target=self.account, amount=self.amount)
        command = client.start(snapshot, _adding(*new), capability=Capability.APPEND, batch=batch)
        if command.already_committed():
            return Outcome.NOTHING_TO_DO
        written = Written()
        with client.writing(written):
            client.add_rows(written, new)
        operation = streaming_update(mode="append", query_id=self.query, epoch_id=number)
        client.commit(command, written, CommitRequest(actions=(), operation=operation))
        return Outcome.COMMITTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Overwrite:
    """INSERT OVERWRITE of the whole table with its own rows, those of an account swept."""

    source: int
    target: int

    def run(self, client: Client) -> Outcome:
        """Replace all files, payments of the source to the target included."""
        snapshot = client.snapshot()
        read = client.read_accounts(snapshot, BANK, *ACCOUNTS)
        entry = client.new_id()

        def effect(rows: Rows) -> Rows:
            amount = balance(rows.values(), self.source)
            new = payment(entry, source=self.source, target=self.target, amount=amount)
            return _adding(*new)(rows)

        command = client.start(snapshot, effect, capability=Capability.OVERWRITE)
        client.declare(command, None, snapshot.files)
        written = Written()
        with client.writing(written):
            client.add_rows(written, effect(read.rows).values())
            client.remove(written, [each.file for each in read.files])
        request = CommitRequest(
            actions=(), operation=write(WriteMode.OVERWRITE), is_blind_append=False
        )
        client.commit(command, written, request)
        return Outcome.COMMITTED


def _adding(*new: Row) -> Callable[[Rows], Rows]:
    return lambda rows: {**rows, **{row.entry: row for row in new}}
