"""Which statements the writers of a seed run: a swarm, in which each seed prefers some kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import TypeAlias

from puredelta.log.commit.post_commit import CheckpointWish
from simulation.bank import ACCOUNTS, TableTraits
from simulation.statements.creation import Append, CreateTable, OpenBank
from simulation.statements.maintenance import Compact, Read, Restore, SetProperty, Vacuum
from simulation.statements.payments import Batch, Cancel, Deposit, Overwrite, Raise, Sweep, Transfer
from simulation.statements.statement import Statement

_AMOUNT_MAX = 20
_BACK_MAX = 40
_Maker: TypeAlias = Callable[[Random], Statement]


def table_traits(seed: int) -> TableTraits:
    """Return the table of a seed."""
    random = Random(seed * 101 + 1)
    return TableTraits(
        partitioned=random.random() < 0.5,
        vectors=random.random() < 0.5,
        row_ids=random.random() < 0.3,
        timestamps=random.random() < 0.5,
        v2_checkpoints=random.random() < 0.2,
        checkpoint_interval=random.choice((3, 5, 10, 10, 20)),
    )


class Workload:
    """The statements of a seed, each of which can be had without those before it."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        random = Random(seed * 103 + 2)
        self._weights = {
            kind: weight * random.choice((0, 1, 1, 1, 4)) for kind, (weight, _) in _KINDS.items()
        }
        self._weights["transfer"] += 2

    def statement(self, writer: int, number: int) -> Statement:
        """Return one statement of a writer."""
        random = Random(self.seed_of(writer, number) + 1)
        if number == 0:
            return random.choice((CreateTable, OpenBank, lambda: _append(random), OpenBank))()
        if number == 1:
            return OpenBank()
        (kind,) = random.choices(list(self._weights), list(self._weights.values()))
        return _KINDS[kind][1](random)

    def seed_of(self, writer: int, number: int) -> int:
        """Return the seed of all chances of a statement."""
        return ((self._seed * 64 + writer) * 4096 + number) * 2


def _append(random: Random) -> Append:
    return Append(account=random.choice(ACCOUNTS), amount=random.randint(1, _AMOUNT_MAX))


def _transfer(random: Random) -> Transfer:
    source, target = random.sample(ACCOUNTS, 2)
    return Transfer(
        source=source,
        target=target,
        amount=random.randint(1, _AMOUNT_MAX),
        by_file=random.random() < 0.5,
        by_vector=random.random() < 0.6,
    )


def _deposit(random: Random) -> Deposit:
    return Deposit(account=random.choice(ACCOUNTS), amount=random.randint(1, _AMOUNT_MAX))


def _sweep(random: Random) -> Sweep:
    source, target = random.sample(ACCOUNTS, 2)
    return Sweep(source=source, target=target)


def _cancel(random: Random) -> Cancel:
    return Cancel(
        account=random.choice(ACCOUNTS),
        by_vector=random.random() < 0.6,
        every=random.random() < 0.3,
    )


def _raise(random: Random) -> Raise:
    return Raise(
        account=random.choice(ACCOUNTS),
        amount=random.randint(1, _AMOUNT_MAX),
        which=random.randint(0, 9),
    )


def _batch(random: Random) -> Batch:
    return Batch(
        query=random.choice(("query-a", "query-b")),
        account=random.choice(ACCOUNTS),
        amount=random.randint(1, _AMOUNT_MAX),
        again=random.random() < 0.2,
    )


def _overwrite(random: Random) -> Overwrite:
    source, target = random.sample(ACCOUNTS, 2)
    return Overwrite(source=source, target=target)


def _compact(random: Random) -> Compact:
    always = random.random() < 0.2
    return Compact(checkpoint=CheckpointWish.ALWAYS if always else CheckpointWish.AT_INTERVAL)


def _set_property(random: Random) -> SetProperty:
    if random.random() < 0.5:
        return SetProperty(key="note", value=str(random.randint(0, 9)))
    return SetProperty(key="delta.checkpointInterval", value=str(random.choice((3, 5, 10))))


def _vacuum(_: Random) -> Vacuum:
    return Vacuum()


def _restore(random: Random) -> Restore:
    return Restore(back=random.randint(1, _BACK_MAX))


def _read(random: Random) -> Read:
    return Read(back=None if random.random() < 0.5 else random.randint(0, _BACK_MAX))


_KINDS: Mapping[str, tuple[int, _Maker]] = {
    "transfer": (8, _transfer),
    "deposit": (6, _deposit),
    "sweep": (4, _sweep),
    "cancel": (4, _cancel),
    "raise": (6, _raise),
    "batch": (4, _batch),
    "overwrite": (1, _overwrite),
    "compact": (5, _compact),
    "set property": (1, _set_property),
    "vacuum": (2, _vacuum),
    "restore": (1, _restore),
    "read": (2, _read),
}
"""Each kind with its weight."""
