"""Every request of a few commits goes wrong once, in every way: nothing acknowledged is lost."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from puredelta.errors import CommitUnknownError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Add
from tests.log.tables import WRITE, add, create_table, transact
from tests.servers import s3
from tests.servers.proxy import QUICK, Fault, Proxy, Request

_COMMITS = 12
"""Enough for a checkpoint, which follows the tenth."""
_roots = itertools.count()

Plan = Callable[[Request], Fault | None]


def _once(number: int, fault: Fault) -> Plan:
    """Let one request go wrong."""
    numbers = itertools.count(1)
    return lambda _: fault if next(numbers) == number else None


def _from(number: int, fault: Fault) -> Plan:
    """Let a request and all that follow go wrong."""
    numbers = itertools.count(1)
    return lambda _: fault if next(numbers) >= number else None


@pytest.fixture
def few_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("puredelta.store.location.RETRIES_MAX", 1)


@pytest.mark.usefixtures("few_retries")
@pytest.mark.parametrize("fault", QUICK)
@pytest.mark.parametrize("plan", [_once, _from])
def test_each_request_goes_wrong(
    s3_endpoint: str, plan: Callable[[int, Fault], Plan], fault: Fault
) -> None:
    step = 1 if plan is _once else 7
    for number in itertools.count(1, step):
        root = f"s3a://{s3.BUCKET}/lost-{next(_roots)}"
        with Proxy(s3_endpoint, plan(number, fault)) as proxy:
            acknowledged, unknown = _work(TableLog(s3.storage(proxy.endpoint).open(root)))
            num_requests = len(proxy.requests)
        log = TableLog(s3.storage(s3_endpoint).open(root))
        commits = log.commits_after(-1) if log.exists() else ()
        names = [a.path for c in commits for a in c.actions if isinstance(a, Add)]
        assert len(names) == len(set(names))
        assert set(acknowledged) <= set(names) <= set(acknowledged) | set(unknown), number
        if commits:
            assert len(log.snapshot().files) == len(names)
        if plan is _once:
            assert len(acknowledged) == _COMMITS, f"one fault is survived, number {number}"
        if number > num_requests:
            return


def _work(log: TableLog) -> tuple[list[str], list[str]]:
    """Commit files one after the other; return those that were acknowledged, and the unknown."""
    acknowledged: list[str] = []
    unknown: list[str] = []
    for n in range(_COMMITS):
        name = f"part-{n}.parquet"
        try:
            if n == 0:
                create_table(log.store, add(name, rows=1))
            else:
                transact(log).commit([add(name, rows=1)], WRITE)
        except CommitUnknownError:
            unknown.append(name)
        except Exception:  # noqa: BLE001 - it says that nothing was committed
            continue
        else:
            acknowledged.append(name)
    return acknowledged, unknown
