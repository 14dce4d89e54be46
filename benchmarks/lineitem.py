"""A chain of merges into ``lineitem`` of TPC-H, beside delta-rs and delta-spark.

``python -m benchmarks.lineitem``: ``PUREDELTA_BENCH_SCALE`` 1 has 6 million rows in 4 files, 10
has 60 million in 40, and sources in proportion: an upsert of 1 % of the rows, an update of 5.3 %,
the same merge again, inserts of 5 %, changes of 3 % (deletes, updates and inserts in one merge),
and a full synchronisation with a quarter of the rows. Matched rows are scattered over all files.
Every engine has a chain of its own: a step begins with the table that the step before left, and a
step that is measured is not measured again with ``PUREDELTA_BENCH_RESUME=1``. Processes are new
for each step, so that memory is that of the step. Rows are compared, by DuckDB, with those that
follow from base and sources. Other choices are those of `benchmarks.options`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path

import duckdb

from benchmarks.bench import Bench, Try, run
from benchmarks.engines import ENGINES, Engine
from benchmarks.options import PREFIX, Options
from benchmarks.replay import active_files
from benchmarks.report import Measurement
from benchmarks.requests import Kind, convert_request, merge_request
from benchmarks.rows import Totals
from benchmarks.untuned import rows_of, totals_of
from benchmarks.workloads import UPSERT, Clause

ON = "t.l_orderkey = s.l_orderkey AND t.l_linenumber = s.l_linenumber"
FILES, SLOTS, SHIFT = 4, 10_000, 1_000_000_000
_GONE = "s.l_quantity < 0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A MERGE; slots are ten thousandths of the rows of the base, and no two steps share any."""

    title: str
    clauses: tuple[Clause, ...]
    changed: tuple[int, int] = (0, 0)
    new: tuple[int, int] = (0, 0)
    """Slots whose rows have new keys, above all others."""
    deleted: tuple[int, int] = (0, 0)


_UPDATE = Step(title="2. update", clauses=(Clause(Kind.UPDATE),), changed=(100, 633))
STEPS = (
    Step(title="1. mixed upsert", clauses=UPSERT, changed=(0, 80), new=(80, 100)),
    _UPDATE,
    replace(_UPDATE, title="3. the same update again"),
    Step(title="4. insert only", clauses=(Clause(Kind.INSERT),), new=(633, 1133)),
    Step(
        title="5. changes",
        clauses=(Clause(Kind.DELETE, _GONE), *UPSERT),
        deleted=(1200, 1250),
        changed=(1250, 1400),
        new=(1400, 1500),
    ),
    Step(
        title="6. full synchronisation",
        clauses=(*UPSERT, Clause(Kind.DELETE_BY_SOURCE)),
        changed=(2500, 5000),
    ),
)


class Chain:
    """The base, the sources, and the tables that engines left so far."""

    def __init__(self, bench: Bench, directory: Path, scale: str) -> None:
        self._bench = bench
        self._directory = directory
        self._numbers = count()
        described = directory / "described.json"
        if not described.exists():
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True)
            totals = self._lay(scale)
            described.write_text(json.dumps([asdict(one) for one in totals]))
        self._expected = [Totals(**one) for one in json.loads(described.read_text())]

    def measure(self, step: Step) -> Iterator[list[Measurement]]:
        """Let every engine execute a step in turn."""
        return self._bench.repeat(
            step.title, self._bench.options.engines, partial(self._one, STEPS.index(step))
        )

    def _one(self, number: int, engine: Engine) -> Try:
        before, after = (self._state(engine, n) for n in (number, number + 1))
        if not before.exists():
            return Try({}, "the step before failed")
        copy = self._bench.scratch / f"table-{next(self._numbers)}"
        shutil.copytree(before, copy, copy_function=os.link)
        clauses = [(clause.kind, clause.condition) for clause in STEPS[number].clauses]
        request = merge_request(copy, self._source(number), ON, clauses)
        answer = self._bench.ask(engine, request)
        problem = answer.get("error") or self._differs(number, copy)
        if problem is None:
            _keep_active_files(copy)
            shutil.rmtree(after, ignore_errors=True)
            shutil.move(copy, after)
            if number > 1:
                shutil.rmtree(self._state(engine, number - 1), ignore_errors=True)
        shutil.rmtree(copy, ignore_errors=True)
        return Try(answer, problem)

    def _differs(self, number: int, table: Path) -> str | None:
        found, expected = rows_of(table), self._expected[number]
        return None if found == expected else f"{found} instead of {expected}"

    def _state(self, engine: Engine, number: int) -> Path:
        """Return the table of an engine after some steps."""
        return self._directory / (f"{engine.name}-{number}" if number else "base")

    def _source(self, number: int) -> Path:
        return self._directory / f"source-{STEPS[number].changed}-{STEPS[number].new}.parquet"

    def _lay(self, scale: str) -> list[Totals]:
        """Write base and sources; return what each step must leave."""
        parts = max(1, round(FILES * float(scale)))
        generator = Path(sys.executable).parent / "tpchgen-cli"
        options = ["-s", scale, "--tables", "lineitem", "--parts", str(parts), "--quiet"]
        command = [str(generator), "parquet", *options, "--output-dir", str(self._directory)]
        subprocess.run(command, check=True)
        base = (self._directory / "lineitem").rename(self._directory / "base")
        paths = sorted(map(str, base.glob("*.parquet")))
        totals = totals_of(paths)
        found = []
        for number, step in enumerate(STEPS):
            source = self._source(number)
            again = source.exists()
            if not again:
                _write_source(number, step, paths, source)
            if Kind.DELETE_BY_SOURCE in {clause.kind for clause in step.clauses}:
                totals = totals_of([str(source)])
            elif not again:
                totals += totals_of([str(source)], where="l_quantity >= 0")
                for slots in (step.changed, step.deleted):
                    totals -= totals_of(paths, where=_in(slots))
            found.append(totals)
        answer = self._bench.ask(ENGINES["puredelta"], convert_request(base, None))
        if "error" in answer:
            raise SystemExit(answer["error"])
        return found


def _in(slots: tuple[int, int]) -> str:
    low, high = slots
    slot = f"hash(l_orderkey, l_linenumber) % {SLOTS}"
    return f"{slot} >= {low} AND {slot} < {high}"


def _write_source(number: int, step: Step, paths: list[str], target: Path) -> None:
    """Write rows of the base with other values."""
    changed = {
        "l_extendedprice": f"CAST(l_extendedprice + {number + 1} AS DECIMAL(15, 2))",
        "l_comment": f"concat('{number + 1} ', l_comment)",
    }
    new = {"l_orderkey": f"l_orderkey + CAST({number + 1} AS BIGINT) * {SHIFT}"}
    deleted = {"l_quantity": "CAST(-1 AS DECIMAL(15, 2))"}
    with duckdb.connect(config={"threads": 2}) as connection:
        base = connection.read_parquet(paths)
        parts = [
            f"SELECT * REPLACE ({_values(values)}) FROM base WHERE {_in(slots)}"
            for values, slots in (
                (deleted, step.deleted),
                (changed, step.changed),
                (new, step.new),
            )
            if slots[1]
        ]
        connection.register("base", base)
        connection.execute(f"COPY ({' UNION ALL '.join(parts)}) TO '{target}' (FORMAT parquet)")


def _values(values: Mapping[str, str]) -> str:
    return ", ".join(f"{value} AS {name}" for name, value in values.items())


def _keep_active_files(table: Path) -> None:
    """Remove what time travel would read: the next step does not, and disks are small."""
    kept = {file.path for file in active_files(table)}
    for path in set(table.rglob("*.parquet")) - kept:
        if "_delta_log" not in path.parts:
            path.unlink()


def main() -> None:
    scale = os.environ.get(f"{PREFIX}SCALE", "1")
    environment = {f"{PREFIX}FRESH": "1", f"{PREFIX}REPEATS": "1", **os.environ}
    environment.setdefault(f"{PREFIX}NAME", f"lineitem-{scale}")
    options = Options.of(environment, engines="puredelta,delta-rs,delta-spark")
    bench = Bench(replace(options, size=f"of TPC-H's scale {scale}"))
    try:
        chain = Chain(bench, options.directory / f"lineitem-{scale}", scale)
        run(bench.options, STEPS, chain.measure)
    finally:
        bench.close()


if __name__ == "__main__":
    main()
