"""Random MERGE, UPDATE and DELETE statements over random tables, one per seed.

A case is plain data, so that it can be printed, minimised and kept. The generator aims at
the places where implementations differ: nulls, NaN, duplicate keys, names that differ in
case, casts, nested values, clauses that overlap, and a share of statements that must fail.
"""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass, field
from typing import Any

NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10,2)")
OTHERS = ("STRING", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "BINARY")
NESTED = (
    "STRUCT<x: INT, y: STRING>",
    "STRUCT<x: INT, n: STRUCT<a: INT, b: STRING>>",
    "ARRAY<INT>",
    "ARRAY<STRUCT<a: INT, b: STRING>>",
    "MAP<STRING, INT>",
    "MAP<STRING, STRUCT<a: INT, b: STRING>>",
)
# The same value with a field more, less or elsewhere: what evolution and alignment are about.
RESHAPED = {
    "STRUCT<x: INT, y: STRING>": (
        "STRUCT<y: STRING, x: INT>",
        "STRUCT<x: INT>",
        "STRUCT<x: INT, y: STRING, z: INT>",
        "STRUCT<x: BIGINT, y: STRING>",
    ),
    "STRUCT<x: INT, n: STRUCT<a: INT, b: STRING>>": (
        "STRUCT<n: STRUCT<b: STRING, a: INT>, x: INT>",
        "STRUCT<x: INT, n: STRUCT<a: INT>>",
        "STRUCT<x: INT, n: STRUCT<a: INT, b: STRING, c: INT>>",
    ),
    "ARRAY<STRUCT<a: INT, b: STRING>>": (
        "ARRAY<STRUCT<b: STRING, a: INT>>",
        "ARRAY<STRUCT<a: INT>>",
        "ARRAY<STRUCT<a: INT, b: STRING, c: INT>>",
    ),
    "MAP<STRING, STRUCT<a: INT, b: STRING>>": (
        "MAP<STRING, STRUCT<a: INT>>",
        "MAP<STRING, STRUCT<a: INT, b: STRING, c: INT>>",
    ),
    "INT": ("BIGINT", "SMALLINT", "STRING", "DOUBLE", "DECIMAL(12,2)", "BOOLEAN"),
    "BIGINT": ("INT", "STRING", "DECIMAL(20,0)"),
    "STRING": ("INT", "BOOLEAN", "DATE"),
    "DOUBLE": ("FLOAT", "INT", "STRING"),
    "DATE": ("TIMESTAMP", "STRING"),
}
VALUES: dict[str, tuple[str, ...]] = {
    "TINYINT": ("0Y", "1Y", "-128Y", "127Y"),
    "SMALLINT": ("0S", "7S", "-32768S", "300S"),
    "INT": ("0", "1", "2", "3", "-5", "2147483647", "100"),
    "BIGINT": ("0L", "1L", "2L", "3L", "5000000000L", "-1L"),
    "FLOAT": ("0F", "1.5F", "float('NaN')", "-2F", "3F"),
    "DOUBLE": ("0D", "1.5D", "double('NaN')", "double('-Infinity')", "-0.0D", "2D"),
    "DECIMAL(10,2)": ("0.00BD", "1.50BD", "-99999999.99BD", "2.00BD"),
    "STRING": ("''", "'a'", "'b'", "'B'", "'1'", "'2'", "'true'", "'2020-01-02'", "'é x'"),
    "BOOLEAN": ("true", "false"),
    "DATE": ("date'2020-01-02'", "date'1999-12-31'", "date'2020-02-29'"),
    "TIMESTAMP": ("timestamp'2020-01-02 03:04:05.678901'", "timestamp'1999-12-31 00:00:00'"),
    "TIMESTAMP_NTZ": ("timestamp_ntz'2020-01-02 03:04:05.5'", "timestamp_ntz'1970-01-01 00:00:00'"),
    "BINARY": ("X'00ff'", "X''", "X'61'"),
}
KEYS = ("INT", "BIGINT", "STRING")


@dataclass(frozen=True)
class Column:
    """A column by name and SQL type."""

    name: str
    type: str


@dataclass(frozen=True)
class Clause:
    """One WHEN clause; ``assignments`` is None for the star form and for DELETE."""

    kind: str
    condition: str | None
    star: bool = False
    assignments: tuple[tuple[str, str], ...] | None = None


@dataclass(frozen=True)
class Case:
    """One statement on one table; every value is SQL text."""

    seed: int
    statement: str
    target: tuple[Column, ...]
    target_files: tuple[tuple[tuple[str, ...], ...], ...]
    """Rows per INSERT, so that the table has several files."""
    source: tuple[Column, ...] = ()
    source_rows: tuple[tuple[str, ...], ...] = ()
    partition_by: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    constraints: tuple[str, ...] = ()
    conf: dict[str, str] = field(default_factory=dict)
    on: str = "true"
    clauses: tuple[Clause, ...] = ()
    evolve: bool = False
    condition: str | None = None
    """WHERE of an UPDATE or DELETE."""
    api: str = "builder"

    def to_json(self) -> dict[str, Any]:
        """Plain data, for keeping."""
        return asdict(self)

    def table_text(self) -> str:
        """All that its table depends on."""
        parts = (self.target, self.target_files, self.partition_by, self.properties)
        return repr((*parts, self.constraints))

    @staticmethod
    def from_json(record: dict[str, Any]) -> Case:
        """The inverse of `to_json`."""

        def columns(entries: list[dict[str, str]]) -> tuple[Column, ...]:
            return tuple(Column(**entry) for entry in entries)

        def clause(entry: dict[str, Any]) -> Clause:
            pairs = entry["assignments"]
            return Clause(
                **{**entry, "assignments": None if pairs is None else tuple(map(tuple, pairs))}
            )

        return Case(
            **{
                **record,
                "target": columns(record["target"]),
                "source": columns(record["source"]),
                "target_files": tuple(
                    tuple(tuple(row) for row in rows) for rows in record["target_files"]
                ),
                "source_rows": tuple(tuple(row) for row in record["source_rows"]),
                "partition_by": tuple(record["partition_by"]),
                "constraints": tuple(record["constraints"]),
                "clauses": tuple(clause(entry) for entry in record["clauses"]),
            }
        )


STATEMENTS_PER_TABLE = 10
"""Consecutive seeds share a table: to write it takes longer than to change it."""


def make_case(seed: int) -> Case:
    """Return the case of this seed: the same one on every machine."""
    table = _Maker(f"table {seed // STATEMENTS_PER_TABLE}").table()
    return _Maker(f"statement {seed}").case(seed, table)


class _Maker:
    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)
        self.is_flawed = False

    def one(self, options: Any) -> Any:
        return self.random.choice(list(options))

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def table(self) -> dict[str, Any]:
        """The part of a case that makes its table."""
        target = self.target_columns()
        return {
            "target": target,
            "target_files": tuple(
                self.rows(target, self.random.randint(0, 5))
                for _ in range(self.random.randint(1, 3))
            ),
            "partition_by": self.partition_columns(target),
            "properties": self.properties(target),
        }

    def case(self, seed: int, table: dict[str, Any]) -> Case:
        """A statement on this table."""
        statement = self.one(["merge"] * 8 + ["update", "delete"])
        target = table["target"]
        common = {
            **table,
            "seed": seed,
            "statement": statement,
            "conf": self.conf(),
            "api": self.one(("builder", "sql")),
        }
        if statement != "merge":
            return self.update_or_delete(target, common)
        source = self.source_columns(target)
        evolve = self.chance(0.35)
        return Case(
            **common,
            source=source,
            source_rows=self.rows(source, self.random.randint(0, 6)),
            on=self.on(target[0], target, source),
            clauses=self.clauses(target, source, evolve=evolve),
            evolve=evolve,
        )

    def update_or_delete(self, target: tuple[Column, ...], common: dict[str, Any]) -> Case:
        scope = (("t", target),)
        updates = common["statement"] == "update"
        pairs = self.assignments(target, scope) if updates else None
        return Case(
            **common,
            condition=None if self.chance(0.2) else self.condition(scope),
            clauses=() if pairs is None else (Clause("update", None, assignments=pairs),),
        )

    # --- tables -------------------------------------------------------------------------

    def target_columns(self) -> tuple[Column, ...]:
        columns = [Column("key", self.one(KEYS))]
        for number in range(self.random.randint(1, 4)):
            kind = self.one((*NUMBERS, *OTHERS, "INT", "STRING", *NESTED))
            name = self.one((f"v{number}", f"V{number}", f"col {number}", f"v.{number}"))
            columns.append(Column(name if self.chance(0.15) else f"v{number}", kind))
        return tuple(columns)

    def source_columns(self, target: tuple[Column, ...]) -> tuple[Column, ...]:
        columns = []
        for column in target:
            if column.name != "key" and self.chance(0.12):
                continue  # a column the source lacks
            kind = column.type
            if self.chance(0.2):
                kind = self.one(RESHAPED.get(column.type, (column.type,)))
            if column.name == "key" and kind == "BOOLEAN":
                kind = column.type  # no condition could compare them
            name = column.name.upper() if self.chance(0.05) else column.name
            columns.append(Column(name, kind))
        if self.chance(0.3):
            columns.append(Column("extra", self.one((*NUMBERS, "STRING", NESTED[0]))))
        if self.chance(0.2):
            self.random.shuffle(columns)
        return tuple(columns)

    def partition_columns(self, target: tuple[Column, ...]) -> tuple[str, ...]:
        atomic = [c.name for c in target if c.type in VALUES and c.type != "BINARY"]
        plain = [name for name in atomic if " " not in name and "." not in name]
        if len(target) < 2 or not plain or not self.chance(0.35):
            return ()
        return tuple(self.random.sample(plain, min(len(plain), 1)))

    def properties(self, target: tuple[Column, ...]) -> dict[str, str]:
        found: dict[str, str] = {}
        if self.chance(0.25) or any(" " in column.name for column in target):
            found["delta.columnMapping.mode"] = self.one(("name", "id"))
        if self.chance(0.3):
            found["delta.enableChangeDataFeed"] = "true"
        if self.chance(0.3):
            found["delta.enableDeletionVectors"] = "true"
        if self.chance(0.15):
            found["delta.enableTypeWidening"] = "true"
        if self.chance(0.1):
            found["delta.enableRowTracking"] = "true"
        return found

    def conf(self) -> dict[str, str]:
        found: dict[str, str] = {}
        if self.chance(0.15):
            found["spark.sql.storeAssignmentPolicy"] = self.one(("LEGACY", "STRICT"))
        if self.chance(0.1):
            found["spark.sql.caseSensitive"] = "true"
        if self.chance(0.1):
            found["spark.sql.ansi.enabled"] = "false"
        return found

    def rows(self, columns: tuple[Column, ...], count: int) -> tuple[tuple[str, ...], ...]:
        """Rows whose keys are mostly distinct: a duplicate is an error in most statements."""
        pool = self.random.sample(range(10), count)
        if self.chance(0.15):
            pool = [self.one(range(10)) for _ in range(count)]
        return tuple(
            tuple(
                self.key(c.type, number) if c.name.lower() == "key" else self.literal(c.type)
                for c in columns
            )
            for number in pool
        )

    def key(self, kind: str, number: int) -> str:
        if self.chance(0.04):
            return f"CAST(NULL AS {kind})"
        return f"CAST('{number}' AS {kind})" if kind == "STRING" else f"CAST({number} AS {kind})"

    def literal(self, kind: str) -> str:
        """A value of this type, now and then null."""
        if self.chance(0.15):
            return f"CAST(NULL AS {kind})"
        if kind.startswith("ARRAY<"):
            inner = kind[len("ARRAY<") : -1]
            items = ", ".join(self.literal(inner) for _ in range(self.random.randint(0, 2)))
            return f"CAST(array({items}) AS {kind})"
        if kind.startswith("MAP<STRING, "):
            inner = kind[len("MAP<STRING, ") : -1]
            names = self.random.sample(("p", "q"), self.random.randint(0, 2))
            items = ", ".join(f"'{name}', {self.literal(inner)}" for name in names)
            return f"CAST(map({items}) AS {kind})"
        if kind.startswith("STRUCT<"):
            items = ", ".join(f"'{n}', {self.literal(k)}" for n, k in struct_fields(kind))
            return f"CAST(named_struct({items}) AS {kind})"
        if kind in VALUES:
            return f"CAST({self.one(VALUES[kind])} AS {kind})"
        return f"CAST({self.one(VALUES['INT'][:5])} AS {kind})"  # other decimals

    # --- statements ---------------------------------------------------------------------

    def on(self, key: Column, target: tuple[Column, ...], source: tuple[Column, ...]) -> str:
        equal = f"t.{quoted(key.name)} = s.{quoted(key.name)}"
        roll = self.random.random()
        if roll < 0.6:
            return equal
        if roll < 0.7:
            return f"t.{quoted(key.name)} <=> s.{quoted(key.name)}"
        if roll < 0.85:
            return f"{equal} AND {self.condition((('t', target), ('s', source)))}"
        if roll < 0.9:
            return self.one(("true", "false", "1 = 0"))
        if roll < 0.95:
            return f"{equal} OR {self.condition((('t', target),))}"
        return self.condition((("t", target), ("s", source)))

    def clauses(
        self, target: tuple[Column, ...], source: tuple[Column, ...], *, evolve: bool
    ) -> tuple[Clause, ...]:
        scopes = {
            "matched": (("t", target), ("s", source)),
            "not_matched": (("s", source),),
            "not_matched_by_source": (("t", target),),
        }
        found = []
        for kind, scope in scopes.items():
            count = self.random.choice((0, 1, 1, 2))
            for number in range(count):
                last = number == count - 1
                needed = not last and not self.chance(0.03)
                condition = self.condition(scope) if needed or self.chance(0.4) else None
                found.append(self.clause(kind, condition, target, source, scope, evolve=evolve))
        if not found and not self.chance(0.05):
            return (Clause("matched_update", None, star=True),)
        return tuple(found)  # kind by kind: the order that SQL text asks for

    def clause(
        self,
        kind: str,
        condition: str | None,
        target: tuple[Column, ...],
        source: tuple[Column, ...],
        scope: Any,
        *,
        evolve: bool,
    ) -> Clause:
        if kind == "not_matched":
            if self.chance(0.55):
                return Clause("not_matched_insert", condition, star=True)
            names = [c for c in target if self.chance(0.85)] or [target[0]]
            pairs = tuple((quoted(c.name), self.expression(c.type, scope)) for c in names)
            return Clause("not_matched_insert", condition, assignments=pairs)
        if self.chance(0.3):
            return Clause(f"{kind}_delete", condition)
        if kind == "matched" and self.chance(0.5):
            return Clause("matched_update", condition, star=True)
        pairs = self.assignments(target, scope)
        extra = [c for c in source if c.name == "extra"]
        if evolve and extra and kind == "matched" and self.chance(0.3):
            pairs = (*pairs, ("extra", "s.extra"))
        return Clause(f"{kind}_update", condition, assignments=pairs)

    def assignments(self, target: tuple[Column, ...], scope: Any) -> tuple[tuple[str, str], ...]:
        columns = self.random.sample(target, self.random.randint(1, min(3, len(target))))
        pairs = []
        for column in columns:
            fields = struct_fields(column.type) if column.type.startswith("STRUCT<") else []
            if fields and self.chance(0.4):
                name, kind = self.one(fields)
                pairs.append((f"{quoted(column.name)}.{name}", self.expression(kind, scope)))
            else:
                pairs.append((quoted(column.name), self.expression(column.type, scope)))
        return tuple(pairs)

    def expression(self, kind: str, scope: Any, depth: int = 0) -> str:
        """An expression that is mostly of this type."""
        same = [f"{a}.{quoted(c.name)}" for a, columns in scope for c in columns if c.type == kind]
        near = [
            f"{a}.{quoted(c.name)}"
            for a, columns in scope
            for c in columns
            if kind in RESHAPED.get(c.type, ()) or c.type in RESHAPED.get(kind, ())
        ]
        roll = self.random.random()
        if same and roll < 0.45:
            return self.one(same)
        if near and roll < 0.6:
            return self.one(near)
        if depth < 1 and roll < 0.75:
            left, right = (self.expression(kind, scope, depth + 1) for _ in range(2))
            if kind in NUMBERS:
                sign = self.one(("+", "-"))
                return (
                    f"({left} {sign} {right})" if self.chance(0.5) else f"coalesce({left}, {right})"
                )
            if kind == "STRING":
                return f"concat({left}, {right})"
            return f"CASE WHEN {self.condition(scope, depth + 1)} THEN {left} ELSE {right} END"
        if roll < 0.8:
            return "NULL"
        if roll < 0.81 and self.flaw():
            return "nowhere.nothing"
        return self.literal(kind)

    def flaw(self) -> bool:
        """At most one mistake per statement: which of two is reported first means nothing."""
        first = not self.is_flawed
        self.is_flawed = True
        return first

    def condition(self, scope: Any, depth: int = 0) -> str:
        roll = self.random.random()
        if depth < 2 and roll < 0.25:
            left, right = (self.condition(scope, depth + 1) for _ in range(2))
            return f"({left} {self.one(('AND', 'OR'))} {right})"
        if depth < 2 and roll < 0.3:
            return f"NOT ({self.condition(scope, depth + 1)})"
        if roll < 0.315 and self.flaw():
            # Where a random value is allowed it must not decide anything.
            return self.one(("missing > 1", "max(1) > 0", "rand() > 2", "key > 1"))
        simple = [(a, c) for a, columns in scope for c in columns if c.type in VALUES]
        if not simple:
            return "true"
        alias, column = self.one(simple)
        name = f"{alias}.{quoted(column.name)}"
        if roll < 0.4:
            return f"{name} IS {self.one(('NULL', 'NOT NULL'))}"
        if roll < 0.5:
            values = ", ".join(self.one(VALUES[column.type]) for _ in range(2))
            return f"{name} IN ({values})"
        if roll < 0.55 and column.type == "STRING":
            return f"{name} LIKE '{self.one(('a%', '%', '1'))}'"
        others = [f"{a}.{quoted(c.name)}" for a, c in simple if c.type == column.type]
        right = self.one(others) if self.chance(0.3) else self.one(VALUES[column.type])
        return f"{name} {self.one(('=', '<>', '<', '<=', '>', '>=', '<=>'))} {right}"


def quoted(name: str) -> str:
    """The name as SQL takes it: back-ticked where it must be."""
    return name if name.replace("_", "a").isalnum() else f"`{name}`"


def struct_fields(kind: str) -> list[tuple[str, str]]:
    """Names and types of the fields of a struct type in the spelling used here."""
    fields, depth, start = [], 0, 0
    inner = kind[len("STRUCT<") : -1]
    for at, character in enumerate(inner + ","):
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            name, _, sub = inner[start:at].strip().partition(": ")
            fields.append((name, sub))
            start = at + 1
    return fields
