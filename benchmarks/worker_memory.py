"""What a worker plans to hold for rows of many shapes, and what it holds at most.

``python -m benchmarks.worker_memory`` lays ten kinds of files, looks keys up in them or copies
them without a row, each in a process of its own, and prints a table. The peak is the resident
memory of that process at its largest, without that of a process that imports the same modules and
does nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from puredelta.commands.dml.lookup_plan import HeldSource
from puredelta.commands.dml.source_texts import SourceTexts
from puredelta.protocol.schema.types import LONG, STRING, DataType, DecimalType
from puredelta.spark.scan.data_file import DataFile
from puredelta.spark.write.staging import text_bytes, texts_of_files
from puredelta.worker.bounded_batches import open_bytes
from puredelta.worker.data_files.rewrite_file import RewriteTask, rewrite_together
from puredelta.worker.expressions import ALWAYS, InputColumn, call
from puredelta.worker.lookup.conditions import ResidualConditions
from puredelta.worker.lookup.key_lookup import look_up_keys
from puredelta.worker.lookup.lookup_request import KeyColumn, LookupBatch, LookupRequest
from puredelta.worker.wire import LIMITS

MEGABYTE = 1024 * 1024
TASK_MAX = 1024 * MEGABYTE
"""What a task may hold of a source here."""
PARTS_MAX = 4
OWN_BYTES = 2 * LIMITS.read_bytes
"""Of a batch of rows, encoded and decoded, and of what Arrow and numpy load on first use."""
PAGE_COPIES = 4
"""Of a page that is larger than a batch: encoded, decoded, and both again in the new file."""
RATIO_MAX = 1.5
_NOTHING = "nothing"

Table = Callable[[], pa.Table]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Rows that a worker looks up or copies."""

    target: Table
    source: Table | None = None
    """Of a lookup; ``None``: the target is copied without its first row."""
    keys: tuple[str, ...] = ("k",)
    conditions: ResidualConditions | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of Arrow's writer."""
    page_bytes: int = 0
    """Of a page of a copied file, where it is larger than a batch."""

    def lay(self, directory: Path) -> None:
        """Write its files."""
        for name, make in (("target", self.target), ("source", self.source)):
            if make is not None:
                pq.write_table(make(), directory / f"{name}.parquet", **self.options)

    def planned(self, directory: Path) -> tuple[int, int] | None:
        """Return the parts of the source and the bytes planned; ``None``: Spark joins."""
        if self.source is None:
            opened = open_bytes(pq.read_metadata(directory / "target.parquet"), 0)
            size = LIMITS.row_bytes + opened + PAGE_COPIES * self.page_bytes
            return (1, size) if size <= LIMITS.copy_bytes or self.page_bytes else None
        path = directory / "source.parquet"
        footer = pq.read_metadata(path)
        kinds = dict(
            zip(
                footer.schema.to_arrow_schema().names,
                footer.schema.to_arrow_schema().types,
                strict=True,
            )
        )
        read = () if self.conditions is None else self.conditions.source_columns
        held = HeldSource.of(
            footer.num_rows,
            keys=[(key, _data_type(kinds[key])) for key in self.keys],
            read=dict(read),
            texts=SourceTexts(
                files=(DataFile(uri=str(path), size_bytes=path.stat().st_size, modified_ms=0),),
                stored=texts_of_files([text_bytes(footer)]),
                open_file=_opened,
            ),
        )
        found = held.in_parts(TASK_MAX, PARTS_MAX)
        return None if found is None else (found[0], found[1] + OWN_BYTES)

    def run(self, directory: Path, parts: int) -> str | None:
        """Do what a worker would; return why it cannot."""
        target = str(directory / "target.parquet")
        if self.source is None:
            order = RewriteTask(
                ordinal=0,
                source=target,
                directory=str(directory),
                name_prefix="copy",
                words=np.zeros(1, "<i8").tobytes(),
                bits=np.ones(1, "<u8").tobytes(),
            )
            (answer,) = rewrite_together([order])
            return answer.refusal
        keys = tuple(KeyColumn(target=key, source=key, null_safe=False) for key in self.keys)
        refusal, _ = look_up_keys(
            LookupRequest(
                keys=keys,
                source_files=(str(directory / "source.parquet"),),
                conditions=self.conditions,
                parts=parts,
            ),
            LookupBatch(ordinals=np.zeros(1, np.int32), paths=[target]),
        )
        return refusal


def _opened(file: DataFile) -> BinaryIO:
    return Path(file.uri).open("rb")


def _data_type(kind: pa.DataType) -> DataType:
    if pa.types.is_string(kind):
        return STRING
    return DecimalType(kind.precision, kind.scale) if pa.types.is_decimal(kind) else LONG


def texts(rows: int, length: int, *, different: int | None = None, first: int = 0) -> pa.Array:
    """Return texts of a length of at least 8; as many different ones as asked for, or all."""
    count = rows if different is None else different
    letters = np.random.default_rng(length).integers(97, 123, (count, length), dtype=np.uint8)
    numbers = np.char.zfill(np.arange(first, first + count).astype("S"), 8)
    letters[:, -8:] = numbers.view(np.uint8).reshape(count, 8)
    offsets = (np.arange(count + 1) * length).astype(np.int32)
    values = pa.StringArray.from_buffers(
        count, pa.py_buffer(offsets), pa.py_buffer(letters.tobytes())
    )
    if different is None:
        return values
    return values.take(pa.array(np.random.default_rng(rows).integers(0, count, rows)))


def _numbers(rows: int) -> pa.Array:
    return pa.array(np.random.default_rng(rows).permutation(rows))


def _of(**columns: Callable[[], pa.Array]) -> Table:
    return lambda: pa.table({name: make() for name, make in columns.items()})


def _differ(name: str) -> ResidualConditions:
    """Return the condition that a text has changed."""
    return ResidualConditions(
        on=ALWAYS,
        matched=(call("not_equal", InputColumn("target", 0), InputColumn("source", 0)),),
        by_source=(),
        target_columns=((name, pa.string()),),
        source_columns=((name, pa.string()),),
    )


def _decimals(rows: int) -> pa.Array:
    halves = np.random.default_rng(rows).integers(0, 1 << 30, (rows, 2))
    return pa.Array.from_buffers(pa.decimal128(30, 2), rows, [None, pa.py_buffer(halves.tobytes())])


def _lists(rows: int, lists: int, values: int) -> pa.Array:
    numbers = pa.array(np.random.default_rng(rows).integers(0, 1 << 40, rows * lists * values))
    inner = pa.ListArray.from_arrays(
        pa.array(np.arange(rows * lists + 1, dtype=np.int32) * values), numbers
    )
    return pa.ListArray.from_arrays(pa.array(np.arange(rows + 1, dtype=np.int32) * lists), inner)


def _noise(seed: int) -> bytes:
    return np.random.default_rng(seed).bytes(100 * MEGABYTE)


_PLAIN = {"use_dictionary": False}
_MILLION = 1_000_000

LOOKUPS: dict[str, Shape] = {
    "whole numbers": Shape(
        source=_of(k=lambda: _numbers(_MILLION)), target=_of(k=lambda: _numbers(4 * _MILLION))
    ),
    "short texts": Shape(
        source=_of(k=lambda: texts(_MILLION, 24)), target=_of(k=lambda: texts(_MILLION, 24))
    ),
    "long texts": Shape(
        source=_of(k=lambda: texts(100_000, 2_000)),
        target=_of(k=lambda: texts(100_000, 2_000, first=50_000)),
        options=_PLAIN,
    ),
    "more long texts than fit": Shape(
        source=_of(k=lambda: texts(300_000, 4_000)),
        target=_of(k=lambda: texts(1_000, 4_000)),
        options=_PLAIN,
    ),
    "long texts after short ones": Shape(
        source=_of(k=lambda: pa.concat_arrays([texts(300_000, 8), texts(100_000, 3_000)])),
        target=_of(k=lambda: texts(100_000, 8)),
        options=_PLAIN,
    ),
    "few long texts in a dictionary": Shape(
        source=_of(k=lambda: texts(20_000, 8_000, different=40)),
        target=_of(k=lambda: texts(20_000, 8_000, different=20)),
    ),
    "many rows in a dictionary": Shape(
        source=_of(k=lambda: texts(3 * _MILLION, 16, different=1_000)),
        target=_of(k=lambda: texts(100_000, 16, different=5)),
    ),
    "decimals": Shape(
        source=_of(
            k=lambda: pa.array([Decimal(n) for n in range(300_000)], pa.decimal128(30, 0)),
        ),
        target=_of(k=lambda: pa.array([Decimal(n) for n in range(9)], pa.decimal128(30, 0))),
    ),
    "several columns": Shape(
        source=_of(
            k=lambda: texts(400_000, 100),
            a=lambda: _numbers(400_000),
            b=lambda: texts(400_000, 300),
        ),
        target=_of(
            k=lambda: texts(400_000, 100),
            a=lambda: _numbers(400_000),
            b=lambda: texts(400_000, 300),
        ),
        keys=("k", "a", "b"),
        options=_PLAIN,
    ),
    "conditions that read long texts": Shape(
        source=_of(k=lambda: _numbers(60_000), v=lambda: texts(60_000, 3_000)),
        target=_of(k=lambda: _numbers(60_000), v=lambda: texts(60_000, 3_000, first=1)),
        conditions=_differ("v"),
        options=_PLAIN,
    ),
    "conditions that read long texts of a dictionary": Shape(
        source=_of(k=lambda: _numbers(3_000), v=lambda: texts(3_000, 30_000, different=20)),
        target=_of(k=lambda: _numbers(65_536), v=lambda: texts(65_536, 30_000, different=20)),
        conditions=_differ("v"),
    ),
}

COPIES: dict[str, Shape] = {
    "copy of long texts in a dictionary": Shape(
        target=_of(v=lambda: texts(65_536, 30_000, different=20))
    ),
    "copy of long texts": Shape(
        target=_of(k=lambda: _numbers(200_000), v=lambda: texts(200_000, 3_000)), options=_PLAIN
    ),
    "copy of wide rows": Shape(
        target=lambda: pa.table({f"c{n}": texts(40_000, 100 + n) for n in range(60)}),
        options=_PLAIN,
    ),
    "copy of many columns": Shape(
        target=lambda: pa.table({f"c{n}": _numbers(50_000) for n in range(600)})
    ),
    "copy of 2,000 narrow columns": Shape(
        target=lambda: pa.table(
            {f"c{n}": pa.array(np.arange(20_000, dtype=np.int32) % (n + 2)) for n in range(2_000)}
        )
    ),
    "copy of decimals": Shape(
        target=lambda: pa.table({f"d{n}": _decimals(2 * _MILLION) for n in range(3)})
    ),
    "copy of lists of long lists": Shape(target=_of(v=lambda: _lists(300, 20, 5_000))),
    "copy of values of 100 MB": Shape(
        target=_of(k=lambda: _numbers(5), v=lambda: pa.array([_noise(n) for n in range(5)])),
        options={**_PLAIN, "row_group_size": 2},
        page_bytes=200 * MEGABYTE,
    ),
    "copy of nested texts": Shape(
        target=_of(
            v=lambda: pa.ListArray.from_arrays(
                pa.array(np.arange(0, 600_001, 10, dtype=np.int32)),
                texts(600_000, 500, different=300),
            )
        )
    ),
}

SHAPES = {**LOOKUPS, **COPIES}


def measured(name: str, directory: Path, *, parts: int = 1, limit: int = 0) -> dict[str, Any]:
    """Run a shape in a process of its own, whose address space may grow by ``limit`` bytes.

    Without a limit, return its ``peak`` in bytes; and in any case why it was refused, or its
    ``code`` if it ended.
    """
    command = [sys.executable, "-m", "benchmarks.worker_memory"]
    command += ["--child", name, "--directory", str(directory)]
    command += ["--parts", str(parts), "--limit", str(limit)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    if limit:  # other allocators of Arrow reserve addresses that they do not use
        environment["ARROW_DEFAULT_MEMORY_POOL"] = "system"
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        return {"code": done.returncode, "refusal": done.stderr[-1000:], "peak": 0}
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _run_here(name: str, directory: Path, parts: int, limit: int) -> None:
    """Do what a shape asks for in this process, and print what it took."""
    if limit:
        pa.set_io_thread_count(1)  # the stack of each reserves addresses
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        size = pages * resource.getpagesize() + limit
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
    refusal = None if name == _NOTHING else SHAPES[name].run(directory, parts)
    # Not ru_maxrss: that of a process counts the one it was forked from, which laid the files.
    status = Path("/proc/self/status").read_text()
    peak = 1024 * int(status.partition("VmHWM:")[2].split()[0])
    print(json.dumps({"code": 0, "refusal": refusal, "peak": peak}))


def main() -> int:
    """Print the table; 1 if a worker holds much more than planned."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child")
    parser.add_argument("--directory", type=Path)
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--only", default="", help="a part of the names of shapes")
    asked = parser.parse_args()
    if asked.child:
        _run_here(asked.child, asked.directory, asked.parts, asked.limit)
        return 0
    failed = False
    print("| rows | planned, MB | measured, MB | ratio |")
    print("|---|---:|---:|---:|")
    for name, shape in SHAPES.items():
        if asked.only not in name:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            directory = Path(scratch)
            shape.lay(directory)
            planned = shape.planned(directory)
            if planned is None:
                print(f"| {name} | Spark joins | - | - |", flush=True)
                continue
            parts, size = planned
            nothing = measured(_NOTHING, directory)["peak"]
            found = measured(name, directory, parts=parts)
            peak = found["peak"] - nothing
            ratio = peak / size
            failed |= ratio > RATIO_MAX or found["refusal"] is not None
            shown = name if parts == 1 else f"{name}, in {parts} parts"
            megabytes = f"{size / MEGABYTE:,.0f} | {peak / MEGABYTE:,.0f}"
            print(f"| {shown} | {megabytes} | {ratio:.2f} |{found['refusal'] or ''}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
