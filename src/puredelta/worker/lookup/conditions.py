"""What decides about pairs of rows besides equal keys, inside a Spark worker.

Conditions are calls of Arrow's functions that answer as Spark would
(`puredelta.spark.offload.arrow_predicate` makes them).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from puredelta.worker.lookup.key_index import Numbers
from puredelta.worker.read_rows import Mask

Call: TypeAlias = tuple[Any, ...]
"""``("target", place)``, ``("source", place)``, ``("value", value, type)``, or the name of a
function of `pyarrow.compute` with calls as its arguments."""

NO_CLAUSE = -1
"""The clause of a pair for which none fires."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualConditions:
    """The conditions on pairs and on unmatched target rows; NULL counts as false."""

    on: Call
    """What must be true of a pair besides equal keys."""
    matched: tuple[Call, ...]
    """The first of these that is true gives a pair its clause: 0 and up, else `NO_CLAUSE`."""
    by_source: tuple[Call, ...]
    """The same for unmatched target rows; their clauses are numbered after those of ``matched``."""
    target_columns: tuple[tuple[str, pa.DataType], ...]
    """Name, and type that its values are compared in; calls name a column by its place here."""
    source_columns: tuple[tuple[str, pa.DataType], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """The columns that conditions read, of target rows and the source rows they are paired with.

    Unmatched target rows are pairs without source columns.
    """

    target: Sequence[pa.Array]
    source: Sequence[pa.Array]
    count: int

    @classmethod
    def of(
        cls,
        target: Sequence[pa.Array],
        target_rows: Numbers,
        source: Sequence[pa.Array],
        source_rows: Numbers,
    ) -> Pairs:
        """Take rows of both sides that run parallel."""
        return cls(
            target=_taken(target, target_rows),
            source=_taken(source, source_rows),
            count=len(target_rows),
        )

    @classmethod
    def unmatched(cls, target: Sequence[pa.Array], rows: Numbers) -> Pairs:
        """Take rows of the target alone."""
        return cls(target=_taken(target, rows), source=(), count=len(rows))

    def is_true(self, condition: Call) -> Mask:
        """Return for which pairs a condition is true, not NULL."""
        result = _evaluated(condition, {"target": self.target, "source": self.source})
        if isinstance(result, pa.Scalar):
            return np.full(self.count, result.as_py() is True)
        flags: Mask = result.fill_null(False).to_numpy(zero_copy_only=False)  # noqa: FBT003
        return flags

    def first_true(self, conditions: Sequence[Call]) -> Numbers:
        """Return the place of the first condition that is true of each pair, or `NO_CLAUSE`."""
        first: Numbers = np.full(self.count, NO_CLAUSE, np.int64)
        for place in reversed(range(len(conditions))):
            first[self.is_true(conditions[place])] = place
        return first


def _evaluated(call: Call, sides: Mapping[str, Sequence[pa.Array]]) -> Any:
    name, *rest = call
    if name in sides:
        return sides[name][rest[0]]
    if name == "value":
        return pa.scalar(*rest)
    return pc.call_function(name, [_evaluated(argument, sides) for argument in rest])


def _taken(columns: Sequence[pa.Array], rows: Numbers) -> list[pa.Array]:
    places = pa.array(rows)
    return [column.take(places) for column in columns]
