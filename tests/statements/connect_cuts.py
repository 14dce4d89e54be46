"""What `test_connect_cuts` asks: statements of a client whose connection is cut, or is slow.

``connect_cuts DIRECTORY STATEMENT[=POINTS]...`` breaks the connection at frames of each statement:
at every fifth, or at so many in each direction; one point is a sample of the kinds. Without points
the statement runs undisturbed.
"""

from __future__ import annotations

import faulthandler
import json
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import puredelta
from puredelta.errors import DeltaError
from tests.connect_session import connect_builder, server_address
from tests.servers.frame_proxy import ANSWER, CUT, CUT_AFTER, GONE, REQUEST, SLOW, Fault, FrameProxy
from tests.statements.connect_kills import DEFINES, NEW, OLD, STATEMENTS, rows_of

GIVEN_UP = "given up"
"""A cut before a frame, of a client that sends nothing again."""
FORGOTTEN = "forgotten"
"""A cut after a frame, and the server forgets the operation before the client asks for it."""
KINDS = (CUT, CUT_AFTER, GIVEN_UP, FORGOTTEN, GONE, SLOW)
_DIRECTIONS = {CUT: REQUEST, FORGOTTEN: ANSWER, GIVEN_UP: REQUEST}
SAMPLE = tuple(_DIRECTIONS)
FAILS = frozenset({GIVEN_UP, FORGOTTEN, GONE})
"""Faults after which a statement may end with an error."""
UNDISTURBED = "undisturbed"
_APPEND, _QUERY = "append", "query"
_TEXTS = {
    **STATEMENTS,
    "merge by path": STATEMENTS["merge"],
    "update": "UPDATE {t} SET v = 7 WHERE id = 2",
    "delete": "DELETE FROM {t} WHERE id = 2",
    _QUERY: "SELECT * FROM {t}",
}
CASES = (*_TEXTS, _APPEND)
AFTER: dict[str, list[list[int]]] = {
    "create": [],
    "update": [[1, 1], [2, 7]],
    "delete": [[1, 1]],
    _APPEND: [*OLD, [3, 3]],
    _QUERY: OLD,
}
"""The rows of a table after a statement, if they are not `NEW`."""
ENTRY_ALONE = "DELTA_TABLE_NOT_FOUND"
"""The error of a query of a managed table that has its entry and no log yet."""
DONE = "done"
_ERROR_MAX = 600
_SECONDS_MAX = 60
_SLOW_POINTS_MAX = 2
_STEP = 5
"""Odd: a request has two frames."""


class Operations:
    """The operations of a session, as requests name them."""

    def __init__(self, spark: SparkSession) -> None:
        client: Any = spark.client  # type: ignore[attr-defined]
        self.sent: Counter[str] = Counter()
        self.num_reattached = 0
        self.is_forgotten = False
        """Whether the server is to forget an operation before its client is attached again."""
        self._stub = client._stub
        self._execute, self._reattach = self._stub.ExecutePlan, self._stub.ReattachExecute
        self._stub.ExecutePlan, self._stub.ReattachExecute = self._executed, self._reattached

    def clear(self) -> None:
        """Count from here."""
        self.sent.clear()
        self.num_reattached = 0

    @property
    def num_sent_again(self) -> int:
        """How many operations were sent more than once."""
        return sum(times > 1 for times in self.sent.values())

    def _executed(self, request: Any, **options: Any) -> Any:
        self.sent[request.operation_id] += 1
        return self._execute(request, **options)

    def _reattached(self, request: Any, **options: Any) -> Any:
        self.num_reattached += 1
        if self.is_forgotten:
            messages = import_module("pyspark.sql.connect.proto")  # Connect clients only
            release = messages.ReleaseExecuteRequest(
                session_id=request.session_id,
                user_context=request.user_context,
                operation_id=request.operation_id,
                release_all=messages.ReleaseExecuteRequest.ReleaseAll(),
            )
            self._stub.ReleaseExecute(release, metadata=options["metadata"])
        return self._reattach(request, **options)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one fault has left."""

    fault: tuple[str, str, int]
    num_faults: int
    """How often the fault happened; 0 if the statement had fewer frames this time."""
    ended: str
    """`DONE`, or the error."""
    is_clear: bool
    """Whether the error, if there is one, is of this library or of PySpark."""
    left: Any
    """The rows, or the class of the error of a query."""
    num_commits: int
    missing: list[str]
    """Data files that some commit names and that are gone."""
    num_unnamed: int
    """Data files that no commit names."""
    num_reattached: int
    num_sent_again: int
    """Operations that were sent more than once: the server did not know them, or no longer."""
    again: Any
    """The rows after the statement was run once more; None if it had done its work."""


@dataclass(frozen=True, slots=True)
class Session:
    """A session whose requests go through a proxy."""

    spark: SparkSession
    proxy: FrameProxy
    operations: Operations


@dataclass(frozen=True, slots=True)
class Table:
    """The table of one statement, whatever its state."""

    spark: SparkSession
    statement: str
    name: str
    location: Path

    @property
    def is_defined(self) -> bool:
        """Whether the statement makes the table."""
        return self.statement in DEFINES

    def run(self, *, completes: bool = False) -> None:
        """Run the statement, or the one that completes what CREATE TABLE has left."""
        if self.statement == _APPEND:
            rows = self.spark.createDataFrame([(3, 3)], "id INT, v INT")
            rows.write.format("delta").mode("append").saveAsTable(self.name)
            return
        text = _TEXTS[self.statement].format(t=self.name)
        if completes:
            text = text.replace("CREATE TABLE", "CREATE OR REPLACE TABLE")
        answer = self.spark.sql(text)  # a command has done its work then
        if self.statement == _QUERY:
            found = sorted([row[0], row[1]] for row in answer.collect())
            assert found == OLD, found

    def run_again(self, left: Any) -> Any:
        """Return the rows after the statement that a user would run next, or its error."""
        try:
            self.run(completes=left == ENTRY_ALONE and "`" not in self.name)
        except (DeltaError, PySparkException) as error:
            return error.getCondition()
        return self.rows()

    def make(self) -> None:
        """Make the old state for the first time."""
        if not self.is_defined:
            self.spark.sql(f"CREATE TABLE {self.name} (id INT, v INT) USING delta").collect()
            self.reset()

    def reset(self) -> None:
        """Bring back the old state."""
        if not self.is_defined:
            self.spark.sql(f"INSERT OVERWRITE {self.name} VALUES (1, 1), (2, 2)").collect()
            return
        if "`" not in self.name:
            self.spark.sql(f"DROP TABLE IF EXISTS {self.name}").collect()
        shutil.rmtree(self.location, ignore_errors=True)

    def rows(self) -> Any:
        """Return the rows, or the class of the error of a query.

        Those of a table that is there come from its files, without the session.
        """
        if self.is_defined:
            return rows_of(self.spark, self.name)
        _, live = self._named()
        parts = [pq.read_table(self.location / path).to_pylist() for path in live]
        return sorted([row["id"], row["v"]] for part in parts for row in part)

    def num_commits(self) -> int:
        """Return how many versions the log has."""
        return len(self._commits())

    def files(self) -> tuple[list[str], int]:
        """Return data files that commits name and that are gone, and how many none names."""
        named, _ = self._named()
        here = {
            str(path.relative_to(self.location))
            for path in self.location.rglob("*.parquet")
            if "_delta_log" not in path.parts
        }
        return sorted(named - here), len(here - named)

    def _commits(self) -> list[Path]:
        return sorted(self.location.glob("_delta_log/*.json"))

    def _named(self) -> tuple[set[str], set[str]]:
        """Return the data files that any commit has added, and those that none has removed."""
        named, live = set(), set()
        for commit in self._commits():
            actions = [json.loads(line) for line in commit.read_text().splitlines()]
            live -= {unquote(one["remove"]["path"]) for one in actions if "remove" in one}
            added = {unquote(one["add"]["path"]) for one in actions if "add" in one}
            named |= added
            live |= added
        return named, live


def faults_of(proxy: FrameProxy, table: Table, points: int | None) -> list[Fault]:
    """Return the faults for the frames of an undisturbed run."""
    if points == 0:
        return [Fault(UNDISTURBED, REQUEST, 0)]
    proxy.arm(None)
    table.run()
    frames = dict(proxy.frames)
    table.reset()
    kinds = KINDS if points != 1 else SAMPLE
    faults = []
    for number, kind in enumerate(kinds):
        wanted = min(points or _SLOW_POINTS_MAX, _SLOW_POINTS_MAX) if kind == SLOW else points
        for direction in (REQUEST, ANSWER) if points != 1 else (_DIRECTIONS[kind],):
            count = frames[direction]
            step = min(_STEP, count) if points is None else max(1, count // (wanted or 1))
            first = 1 + (2 * number + 1) * step // (2 * len(kinds))
            faults += [Fault(kind, direction, at) for at in range(first, count + 1, step)[:wanted]]
    return faults


@contextmanager
def disturbed(session: Session, fault: Fault) -> Iterator[None]:
    """Let a fault happen to the requests inside."""
    client: Any = session.spark.client  # type: ignore[attr-defined]
    policies = client.get_retry_policies()
    kind = {GIVEN_UP: CUT, FORGOTTEN: CUT_AFTER}.get(fault.kind, fault.kind)
    if fault.kind in {GIVEN_UP, GONE}:
        client.set_retry_policies([])
    session.operations.clear()
    session.operations.is_forgotten = fault.kind == FORGOTTEN
    session.proxy.arm(replace(fault, kind=kind))
    try:
        yield
    finally:
        session.proxy.disarm()
        session.operations.is_forgotten = False
        client.set_retry_policies(policies)


def met(session: Session, table: Table, fault: Fault) -> Outcome:
    """Run a statement with a fault, look at what it left, and bring back the old state."""
    before, unnamed = table.num_commits(), table.files()[1]
    ended, is_clear = DONE, True
    with disturbed(session, fault):
        try:
            table.run()
        except Exception as error:  # noqa: BLE001 - the test shows which
            ended = f"{type(error).__name__}: {error}"[:_ERROR_MAX]
            is_clear = isinstance(error, (DeltaError, PySparkException))
    counts = session.operations
    reattached, again_sent = counts.num_reattached, counts.num_sent_again
    left, commits = table.rows(), table.num_commits() - before
    missing, unnamed_after = table.files()
    again = None
    if ended != DONE and left != rows_after(table.statement):
        again = table.run_again(left)
    table.reset()
    return Outcome(
        fault=(fault.kind, fault.direction, fault.at),
        num_faults=session.proxy.num_faults,
        ended=ended,
        is_clear=is_clear,
        left=left,
        num_commits=commits,
        missing=missing,
        num_unnamed=unnamed_after - unnamed,
        num_reattached=reattached,
        num_sent_again=again_sent,
        again=again,
    )


def rows_after(statement: str) -> list[list[int]]:
    """Return the rows of the table after a statement."""
    return AFTER.get(statement, NEW)


def ask(root: Path, wanted: Sequence[str]) -> dict[str, Any]:
    """Disturb statements; of each: the outcomes of the faults."""
    proxy = FrameProxy(*server_address())
    spark = connect_builder(f"sc://127.0.0.1:{proxy.port}").create()
    assert puredelta.activate(spark)
    session = Session(spark, proxy, Operations(spark))
    database = root.name
    place = root / f"{database}.db"
    spark.sql(f"CREATE DATABASE {database} LOCATION '{place}'")
    spark.sql(f"USE {database}")
    found = {}
    for one in wanted:
        statement, _, points = one.partition("=")
        name = statement.replace(" ", "_")
        location = place / name
        if statement.endswith("by path"):
            location = root / name
            name = f"delta.`{location}`"
        table = Table(spark, statement, name, location)
        table.make()
        table.run()  # what only the first statement of a session asks for is asked
        table.reset()
        faults = faults_of(proxy, table, int(points) if points else None)
        found[statement] = [timed(session, table, fault) for fault in faults]
    spark.sql("USE default")
    spark.sql(f"DROP DATABASE {database} CASCADE")
    spark.stop()
    return found


def timed(session: Session, table: Table, fault: Fault) -> dict[str, Any]:
    """Return the outcome of a fault; end this process, with its stack, if it takes too long."""
    faulthandler.dump_traceback_later(_SECONDS_MAX, exit=True)
    begin = time.monotonic()
    outcome = met(session, table, fault)
    faulthandler.cancel_dump_traceback_later()
    return {**asdict(outcome), "seconds": round(time.monotonic() - begin, 2)}


if __name__ == "__main__":
    answers = ask(Path(sys.argv[1]), sys.argv[2:])
    print(json.dumps(answers), flush=True)  # noqa: T201 - the answer
    # A thread of gRPC may hold the lock of a call that was cut when the interpreter ends, which
    # waits for that lock then.
    os._exit(0)
