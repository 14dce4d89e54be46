"""Growth, trickle, writers: rows in other files, and rows that many merges leave."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import growth, tables, trickle, writers
from benchmarks.bench import Try
from benchmarks.conversions import CONVERSIONS, Conversion
from benchmarks.engines import ENGINES
from benchmarks.options import Options
from benchmarks.replay import table_totals
from benchmarks.report import Measurement
from benchmarks.rows import Totals, order_numbers, total
from benchmarks.tables import Layout, Shape, lay_table
from benchmarks.trickle import CHANGED, NEW, Series, drops
from benchmarks.workloads import WORKLOADS, Workload, make_source


@pytest.mark.parametrize("layout", [Layout.SCATTERED, Layout.CLUSTERED, Layout.WIDE])
def test_pieces_have_the_rows_of_the_whole(layout: Layout) -> None:
    whole, pieces = Shape("S", layout), Shape("S", layout, 10)
    assert pieces.files == 10 * whole.files
    cut = [pieces.file_rows(30 + n).numbers for n in range(10)]
    assert np.array_equal(np.concatenate(cut), whole.file_rows(3).numbers)
    assert pieces.name == f"S-{layout.value}-in-10"


def test_a_merge_into_pieces_leaves_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(tables._SIZES, "S", dict.fromkeys(Layout, (1200, 4)))
    upsert = next(w for w in WORKLOADS if w.title == "upsert (.05, .1, .1)")
    whole = lay_table(Shape("S", Layout.SCATTERED), tmp_path / "whole")
    pieces = lay_table(Shape("S", Layout.SCATTERED, 10), tmp_path / "pieces")
    assert (len(whole.adds), len(pieces.adds)) == (4, 40)
    assert make_source(upsert, whole).expected.rows == whole.totals.rows + 30
    assert pieces.totals == whole.totals


def test_tables_that_grow() -> None:
    found = growth.growths("M", Layout.SCATTERED)
    assert [(one.shape.rows, one.shape.files, one.of) for one in found] == [
        (7_200_000, 64, None),
        (72_000_000, 640, "rows"),
        (7_200_000, 6_400, "files"),
    ]
    assert len(growth.growths("S", Layout.PARTITIONED)) == 2
    assert [g.of for g in growth.growths("M", Layout.SCATTERED, "files")] == [None, "files"]
    assert [g.of for g in growth.growths("M", Layout.PARTITIONED, "files")] == [None]


def test_the_report_of_growth() -> None:
    options = Options.of({}, workloads="delete_only", engines="puredelta")
    [workload] = options.workloads
    assert isinstance(workload, Workload)
    first, more, pieces = growth.growths("S", Layout.SCATTERED)
    memory = {"driver Python": 100.0, "driver Java": 500.0}
    ones = [
        Measurement(
            workload=first.title(workload),
            engine="puredelta",
            seconds=(2.0,),
            cpu_seconds=(4.0,),
            memory_mb=memory,
            heap_mb=300.0,
        ),
        Measurement(workload=more.title(workload), engine="puredelta", seconds=(9.0,)),
        Measurement(workload=pieces.title(workload), engine="puredelta", problem="3 rows"),
    ]
    text = growth.report({(one.workload, one.engine): one for one in ones}, [workload], options)
    assert "S-scattered | 20 | puredelta | 2.00 | 1.00 | 4.00 | 1.00 | 100 | 500 | 300 |" in text
    assert "S10-scattered | 200 | puredelta | 9.00 | 4.50 | - | - | - | - | - |" in text
    assert "S-scattered-in-100 | 2000 | puredelta | 3 rows |" in text


def test_drops_change_every_row_once_and_bring_new_ones() -> None:
    shape = Shape("S", Layout.CLUSTERED)
    every = list(drops(shape, 100))
    rows = pa.concat_tables([drop.rows for drop in every])
    orders = rows["wr_order_number"].to_numpy()
    keys = set(zip(orders.tolist(), rows["wr_item_sk"].to_pylist(), strict=True))
    assert len(keys) == rows.num_rows == 100 * (CHANGED + NEW)
    first = every[0].rows["wr_order_number"].to_numpy()
    assert np.ptp(first[:CHANGED]) <= CHANGED, "what changes are neighbours"
    assert first[CHANGED:].min() > order_numbers(shape.file_rows(shape.files - 1)).max() - 2
    assert total(every[7].rows, shape.checked) == every[7].after
    assert every[7].before.rows == CHANGED
    with pytest.raises(SystemExit, match="too few"):
        next(drops(shape, 200))


def test_the_report_of_a_trickle(tmp_path: Path) -> None:
    base = lay_table(Shape("S", Layout.CLUSTERED), tmp_path / "base")
    series = Series(ENGINES["puredelta"], "auto", tmp_path / "table")
    series.begin(base)
    log = (tmp_path / "table" / "_delta_log" / f"{0:020d}.json").read_text()
    assert json.loads(log.splitlines()[1])["metaData"]["configuration"] == {
        "delta.autoOptimize.autoCompact": "true"
    }
    assert table_totals(tmp_path / "table", base.shape.checked) == base.totals
    for number in range(100):
        answer = {"seconds": 1 + number / 100, "cpu_seconds": 2.0, "memory_mb": {"driver": 9.0}}
        series.add(Try(answer, None))
    assert series.ends(series.seconds) == pytest.approx((1.145, 1.895))
    text = trickle.report([series], "Size S")
    assert "| puredelta | auto | 100 | 1.15 | 1.90 | 1.66 | 2.00 | 2.00 | 1.00 | 1.99 |" in text
    assert "| 149.5 | 20 | 20 |" in text
    series.add(Try({}, "it died"))
    assert "| puredelta | auto | 100 | it died |" in trickle.report([series], "Size S")
    assert series.kept()["engine"] == "puredelta"


def test_files_to_convert_are_laid_and_judged(tmp_path: Path) -> None:
    assert len({conversion.directory for conversion in CONVERSIONS}) == len(CONVERSIONS)
    conversion = Conversion(name="convert_partitioned", partitions=3, files=2)
    conversion.lay(tmp_path / "base")
    conversion.copy(tmp_path / "base", tmp_path / "copy")
    assert conversion.title == "convert_partitioned (3 x 2)"
    log = tmp_path / "copy" / "_delta_log"
    log.mkdir()
    adds = [
        {"path": path, "partitionValues": {"day": path[4]}, "stats": '{"numRecords":10}'}
        for path in conversion.paths()
    ]
    commit = log / f"{0:020d}.json"
    commit.write_text("\n".join(json.dumps({"add": add}) for add in adds))
    assert conversion.problem(tmp_path / "copy") is None
    commit.write_text("\n".join(json.dumps({"add": add}) for add in adds[1:]))
    assert "5 files where 6 were due" in str(conversion.problem(tmp_path / "copy"))


def test_many_files_to_convert_are_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.conversions._DISTINCT_FILES", 3)
    conversion = Conversion(name="convert_files", files=8)
    conversion.lay(tmp_path / "base")
    found = sorted((tmp_path / "base").iterdir())
    assert len(found) == 8
    assert len({path.stat().st_ino for path in found}) == 3


def test_sources_of_writers_change_rows_of_one_partition_once(tmp_path: Path) -> None:
    base = lay_table(Shape("S", Layout.PARTITIONED), tmp_path / "base")
    numbers = [(tables.PARTITIONS * merge + part, part) for part in (0, 3) for merge in range(2)]
    sources = [writers.draw(base.shape, *number, tmp_path) for number in numbers]
    rows = pq.read_table([source.path for source in sources])
    assert len(rows) == 4 * (writers.CHANGED + writers.NEW)
    assert len(rows.group_by(["wr_order_number", "wr_item_sk"]).aggregate([])) == len(rows)
    assert set(rows["wr_part"].to_pylist()) == {0, 3}
    assert "t.wr_part = 3 AND s.wr_part = 3" in sources[-1].request(tmp_path)["on"]
    kept = table_totals_without(base, sources)
    assert kept.rows == base.totals.rows - 4 * writers.CHANGED


def table_totals_without(base: tables.BaseTable, sources: list[writers.Source]) -> Totals:
    totals = base.totals
    for source in sources:
        totals -= source.before
    return totals
