"""Directories of Parquet files, and how they are to be converted, by number."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from tests.commands.convert.directories import write

Values = Callable[[random.Random], Any]

_NULL_SHARE = 0.2
_NULL = "__HIVE_DEFAULT_PARTITION__"
_NAMES = ("a", "b", "C", "é", "x.y", "d-e", "Zz", "_u", "1st", "k")
_BAD_NAMES = ("first name", "a;b", "c,d", "e=f", "g(h)")
_LEVELS = ("k", "J", "day", "p-q", "ü")
_TEXTS = (
    "",
    "a",
    "B",
    "é",
    "x" * 40,
    "zebra",
    "\U0001f600",
    "\uffff" * 33,
    "a\tb",
    "null",
    "日" * 50,
)


def _day(rng: random.Random) -> dt.date:
    return dt.date(1970, 1, 1) + dt.timedelta(days=rng.choice([-1, 0, 19000, 40000, -100000]))


def _moment(rng: random.Random) -> int:
    return rng.choice([0, -1, 1_700_000_000_123_456, 999, -62_000_000_000_000_001])


def _number(rng: random.Random, digits: int, scale: int) -> decimal.Decimal:
    return decimal.Decimal(rng.randint(-(10**digits) + 1, 10**digits - 1)).scaleb(-scale)


def _real(rng: random.Random) -> float:
    return rng.choice([0.0, -0.0, 1.5, -2.25, math.nan, math.inf, -math.inf, 1e300])


_TYPES: Sequence[tuple[pa.DataType, Values]] = (
    (pa.int8(), lambda rng: rng.randint(-128, 127)),
    (pa.int16(), lambda rng: rng.randint(-999, 999)),
    (pa.int32(), lambda rng: rng.randint(-(2**31), 2**31 - 1)),
    (pa.int64(), lambda rng: rng.choice([0, 7, 2**63 - 1, -(2**63)])),
    (pa.float64(), _real),
    (pa.float32(), lambda rng: rng.choice([0.0, -0.0, 1.5, math.nan])),
    (pa.string(), lambda rng: rng.choice(_TEXTS)),
    (pa.bool_(), lambda rng: rng.random() < 0.5),
    (pa.binary(), lambda rng: rng.choice([b"", b"x", b"\xff\x00"])),
    (pa.date32(), _day),
    (pa.timestamp("us", "UTC"), _moment),
    (pa.timestamp("us"), _moment),
    (pa.timestamp("ms", "UTC"), lambda rng: _moment(rng) // 1000),
    (pa.decimal128(5, 2), lambda rng: _number(rng, 5, 2)),
    (pa.decimal128(18, 0), lambda rng: _number(rng, 18, 0)),
    (pa.decimal128(38, 10), lambda rng: _number(rng, 38, 10)),
    (pa.list_(pa.int32()), lambda rng: [rng.randint(0, 9), None]),
    (pa.map_(pa.string(), pa.int64()), lambda rng: [("k", rng.randint(0, 9))]),
    (
        pa.struct([("x", pa.int64()), ("Y", pa.string())]),
        lambda rng: {"x": rng.randint(0, 9), "Y": rng.choice(_TEXTS)},
    ),
    (pa.struct([("in", pa.struct([("z", pa.date32())]))]), lambda rng: {"in": {"z": _day(rng)}}),
)

_WIDER = {
    pa.int8(): (pa.int16(), pa.int32()),
    pa.int16(): (pa.int32(), pa.int64()),
    pa.int32(): (pa.int64(), pa.float64(), pa.string()),
    pa.float32(): (pa.float64(),),
    pa.decimal128(5, 2): (pa.decimal128(7, 2), pa.decimal128(7, 4)),
}

_PARTITIONS: Mapping[str, Sequence[str]] = {
    "int": ("1", "007", "-3", "+4", "2147483647"),
    "bigint": ("1", "-9223372036854775808", "00"),
    "tinyint": ("1", "-128"),
    "string": (
        "a",
        "",
        "A b",
        "x/y",
        "é",
        "%",
        "a=b",
        "null",
        "NULL",
        "1",
        "a:b",
        "{x}",
        "'q'",
        "\\",
    ),
    "date": ("2024-02-29", "1582-10-15", "0001-01-01", "9999-12-31"),
    "timestamp": ("2024-01-01 10:00:00", "2024-01-01 10:00:00.123456", "1969-12-31 23:59:59.5"),
    "timestamp_ntz": ("2024-01-01 10:00:00", "2024-03-10 02:30:00"),
    "boolean": ("true", "false"),
    "double": ("1.5", "-0.25", "NaN", "1.0E10"),
    "decimal(5,2)": ("1.50", "-999.99", "0.00"),
    "binary": ("abc", "é"),
    "float": ("1.5", "-2.0"),
    "smallint": ("5", "-6"),
}

_NO_VALUES = {
    "int": ("2147483648", "x"),
    "tinyint": ("128", "a"),
    "date": ("2023-02-29", "today1"),
    "decimal(5,2)": ("1000.00",),
    "boolean": ("maybe",),
    "timestamp": ("2024-13-01 00:00:00",),
    "double": ("one",),
}

_CONFS: Sequence[Mapping[str, str]] = (
    {},
    {},
    {},
    {"spark.sql.caseSensitive": "true"},
    {"spark.sql.session.timeZone": "America/Los_Angeles"},
    {"spark.sql.parquet.binaryAsString": "true"},
    {"spark.sql.files.ignoreCorruptFiles": "true"},
    {"spark.databricks.delta.stats.collect": "false"},
    {"spark.databricks.delta.properties.defaults.dataSkippingStringPrefixLength": "5"},
    {"spark.databricks.delta.properties.defaults.enableDeletionVectors": "true"},
    {"spark.databricks.delta.properties.defaults.feature.v2Checkpoint": "supported"},
)


@dataclass(frozen=True)
class Conversion:
    """What is there, and how it is asked for."""

    files: Mapping[str, pa.Table]
    others: Mapping[str, bytes]
    """Files that are no Parquet."""
    partition_schema: str | None
    settings: Mapping[str, str]

    def build(self, root: Path) -> None:
        """Write the files below an empty directory."""
        for path, table in self.files.items():
            write(root, path, table)
        for path, content in self.others.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)


def random_conversion(seed: int) -> Conversion:
    """Return the conversion of a number: most can be done, some not."""
    rng = _Dice(seed)
    settings = rng.choice(_CONFS)
    levels = [
        (name, rng.choice(list(_PARTITIONS)))
        for name in rng.sample(_LEVELS, rng.choice([0, 1, 1, 2]))
    ]
    names = rng.sample(_NAMES, rng.randint(1, 4))
    columns = [(name, *rng.choice(_TYPES)) for name in names]
    if rng.errs(0.05):
        columns.append((rng.choice(_BAD_NAMES), *rng.choice(_TYPES)))
    # Which file spells a column depends on the order in which delta-spark reads them.
    spells = "spark.sql.caseSensitive" not in settings
    files = {
        f"{_directory(rng, levels)}{_file_name(rng, number)}": _table(rng, columns, spells=spells)
        for number in range(rng.randint(1, 4))
    }
    has_null = any(_NULL in path for path in files)
    return Conversion(
        files=files,
        others=_others(rng, levels),
        partition_schema=_partition_schema(rng, levels, has_null=has_null),
        settings=settings,
    )


class _Dice(random.Random):
    """Random numbers, and at most one mistake: which of several is noticed first may differ."""

    has_erred = False

    def happens(self, share: float) -> bool:
        return self.random() < share

    def errs(self, share: float) -> bool:
        if self.has_erred or not self.happens(share):
            return False
        self.has_erred = True
        return True


def _directory(rng: _Dice, levels: Sequence[tuple[str, str]]) -> str:
    parts = []
    for name, kind in levels:
        good, bad = _PARTITIONS[kind], _NO_VALUES.get(kind)
        value = rng.choice(bad if bad and rng.errs(0.05) else good)
        text = _NULL if rng.happens(0.1) else quote(value, safe=" é{}'") or _NULL
        parts.append(f"{name.upper() if rng.errs(0.02) else name}={text}/")
    return "".join(parts)


def _file_name(rng: _Dice, number: int) -> str:
    return rng.choice(
        [
            f"f{number}.parquet",
            f"part-{number:05d}.snappy.parquet",
            f"f {number}+&%.parquet",
            f"f{number}",
            f"f#{number}=?.parquet",
            f"é{number}.c000",
        ]
    )


def _table(
    rng: _Dice, columns: Sequence[tuple[str, pa.DataType, Values]], *, spells: bool
) -> pa.Table:
    columns = list(columns)
    if rng.happens(0.15):
        rng.shuffle(columns)
    if rng.happens(0.15) and len(columns) > 1:
        columns.pop()
    num_rows = rng.choice([1, 3, 10])
    arrays, fields = [], []
    for name, kind, values in columns:
        wanted, is_required = kind, rng.happens(0.1)
        if kind in _WIDER and rng.errs(0.1):
            wanted = rng.choice(_WIDER[kind])
        rows = [
            None if not is_required and rng.happens(_NULL_SHARE) else values(rng)
            for _ in range(num_rows)
        ]
        array = pa.array(rows, kind)
        arrays.append(array if wanted == kind else array.cast(wanted))
        spelled = name.upper() if spells and rng.happens(0.03) else name
        fields.append(pa.field(spelled, wanted, nullable=not is_required))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _others(rng: _Dice, levels: Sequence[tuple[str, str]]) -> Mapping[str, bytes]:
    if rng.happens(0.1):
        return {"_SUCCESS": b"", ".f.parquet.crc": b"crc"}
    if rng.happens(0.05):
        return {"_metadata": b"x", "_temporary/0/f.parquet": b"x"}
    if not levels and rng.errs(0.05):
        return {"notes.txt": b"this is no parquet file"}
    return {}


def _partition_schema(
    rng: _Dice, levels: Sequence[tuple[str, str]], *, has_null: bool
) -> str | None:
    stated = list(levels)
    if rng.errs(0.03):
        return None
    if stated and rng.errs(0.03):
        stated.append(("more", "int"))
    elif len(stated) > 1 and rng.errs(0.03):
        stated.reverse()
    elif stated and rng.errs(0.03):
        stated[0] = (stated[0][0].upper(), stated[0][1])
    elif stated and rng.errs(0.03):
        stated[0] = (stated[0][0], rng.choice(list(_PARTITIONS)))
    more = ["", "", "", " COMMENT 'said'"]
    if not has_null:  # a NULL of a column that may have none is refused here alone
        more.append(" NOT NULL")
    return ", ".join(f"`{n}` {k}{rng.choice(more)}" for n, k in stated) or None
