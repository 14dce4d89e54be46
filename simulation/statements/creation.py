"""Statements that find no table and make it, several of them at once."""

from __future__ import annotations

from dataclasses import dataclass

from puredelta.errors import ConflictError
from puredelta.log.commit.commit_request import CommitRequest, IfCreated
from puredelta.protocol.actions.actions import SetTransaction
from puredelta.protocol.actions.operations import Definition, WriteMode, define_table, write
from puredelta.protocol.features.feature_registry import Capability
from simulation.bank import BANK, Row, Rows, opening_rows, payment
from simulation.client import Client, Written
from simulation.statements.statement import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """CREATE TABLE, which fails where there is one."""

    def run(self, client: Client) -> Outcome:
        """Create it without rows."""
        if client.log.exists():
            return Outcome.REFUSED
        command = client.start(None, lambda rows: rows, capability=Capability.ADMINISTER)
        request = CommitRequest(
            actions=client.traits.definition(client.new_id()),
            operation=define_table(Definition.CREATE),
        )
        client.commit(command, Written(), request)
        return Outcome.COMMITTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """``df.write.mode("append")``: to the table, or to one that it makes, or that a rival made."""

    account: int
    amount: int

    def run(self, client: Client) -> Outcome:
        """Append a payment from the bank."""
        new = payment(client.new_id(), source=BANK, target=self.account, amount=self.amount)
        return _append(client, new, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenBank:
    """Append the first rows with txnAppId and txnVersion: whoever comes first, they come once."""

    attempts: int = 8

    def run(self, client: Client) -> Outcome:
        """Append them unless they are in the table; try again when a rival was faster."""
        for _ in range(self.attempts - 1):
            try:
                return self._append(client)
            except ConflictError:  # noqa: PERF203 - a handful of tries
                continue
        return self._append(client)

    def _append(self, client: Client) -> Outcome:
        return _append(client, opening_rows(), SetTransaction(app_id="opening", version=0))


def _append(client: Client, new: tuple[Row, ...], batch: SetTransaction | None) -> Outcome:
    def effect(rows: Rows) -> Rows:
        return {**rows, **{row.entry: row for row in new}}

    existing = client.existing()
    command = client.start(existing, effect, capability=Capability.APPEND, batch=batch)
    if command.already_committed():
        return Outcome.NOTHING_TO_DO
    written = Written()
    with client.writing(written):
        client.add_rows(written, new)
    definition = () if existing is not None else client.traits.definition(client.new_id())
    request = CommitRequest(
        actions=definition, operation=write(WriteMode.APPEND), if_created=IfCreated.APPEND
    )
    client.commit(command, written, request)
    return Outcome.COMMITTED
