"""The chain of merges into lineitem, and rows of statements that nobody tuned."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import untuned
from benchmarks.engine_process import measured
from benchmarks.engines import ENGINES
from benchmarks.lineitem import STEPS, Chain
from benchmarks.requests import Request
from benchmarks.rust_engine import RustEngine
from benchmarks.untuned import SHAPES, rows_of, totals_of

GENERATOR = Path(sys.executable).parent / "tpchgen-cli"


class InProcess:
    """delta-rs in this process, in the place of all engines."""

    def __init__(self, directory: Path) -> None:
        self.scratch = directory / "scratch"
        self.asked: list[Request] = []

    def ask(self, _: Any, request: Request) -> Any:
        self.asked.append(request)
        return measured(RustEngine(), request)


@pytest.mark.skipif(not GENERATOR.exists(), reason="tpchgen-cli is not installed")
def test_each_step_of_the_chain_leaves_the_rows_that_were_computed(tmp_path: Path) -> None:
    bench = InProcess(tmp_path)
    chain = Chain(bench, tmp_path / "lineitem", "0.01")
    found = [chain._one(number, ENGINES["delta-rs"]) for number in range(len(STEPS))]
    assert [one.problem for one in found] == [None] * len(STEPS)
    rows = [one.rows for one in chain._expected]
    assert rows[0] > 60_175
    assert rows[1] == rows[2] == rows[0]
    assert rows[5] == pytest.approx(60_175 / 4, rel=0.05)
    assert bench.asked[2]["source"] == bench.asked[3]["source"]
    # An engine that does nothing has the wrong rows, and no table for the step after.
    monkey = SimpleNamespace(scratch=bench.scratch, ask=lambda *_: {"seconds": 1.0})
    chain._bench = monkey
    assert "instead of" in str(chain._one(0, ENGINES["puredelta"]).problem)
    assert chain._one(1, ENGINES["puredelta"]).problem == "the step before failed"


def test_rows_are_those_of_the_newest_version_with_their_partitions(tmp_path: Path) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    for part in (1, 2):
        table = pa.table({"id": [1, 2, 3], "at": pa.array([1, 2, None], pa.timestamp("us"))})
        pq.write_table(table, tmp_path / f"{part}.parquet")
    adds = [
        {"add": {"path": f"{part}.parquet", "partitionValues": {"part": str(part)}}}
        for part in (1, 2)
    ]
    (log / f"{0:020d}.json").write_text("\n".join(map(json.dumps, adds)))
    both = rows_of(tmp_path)
    assert both.rows == 6
    first, second = (
        totals_of([str(tmp_path / f"{part}.parquet")], {"part": str(part)}) for part in (1, 2)
    )
    assert first + second == both
    assert first != second, "the partition is a part of the row"
    removed = {"remove": {"path": "2.parquet"}}
    (log / f"{1:020d}.json").write_text(json.dumps(removed))
    assert rows_of(tmp_path) == first
    assert totals_of([str(tmp_path / "1.parquet")], {"part": "1"}, where="id > 1").rows == 2


def test_shapes_have_titles_of_their_own_and_a_known_table() -> None:
    assert len({shape.title for shape in SHAPES}) == len({shape.key for shape in SHAPES})
    assert len(SHAPES) >= 25
    assert {shape.table for shape in SHAPES} == {"plain", "parts", "wide"}
    assert [shape.title for shape in SHAPES if shape.evolves] == ["evolution of a field"]
    for shape in SHAPES:
        assert "{}" in shape.text
        assert (" s " in shape.text) is (shape.source is not None)
    assert untuned.CHANGES == 100
