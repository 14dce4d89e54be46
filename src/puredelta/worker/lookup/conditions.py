"""Conditions on pairs of rows besides equal keys, inside a Spark worker.

Conditions are expressions (`puredelta.worker.expressions`) that answer as Spark would
(`puredelta.spark.offload.arrow_predicate` makes them).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from puredelta.worker.expressions import Call, Expression, InputColumn, columns_in, evaluated
from puredelta.worker.lookup.key_index import Numbers
from puredelta.worker.read_rows import Mask

_PAIRS_MAX = 1 << 20
NO_CLAUSE = -1
"""The clause of a pair for which none fires."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualConditions:
    """The conditions on pairs and on unmatched target rows; NULL counts as false."""

    on: Expression
    """The conditions on a pair besides equal keys."""
    matched: tuple[Expression, ...]
    """The first of these that is true gives a pair its clause: 0 and up, else `NO_CLAUSE`."""
    by_source: tuple[Expression, ...]
    """The same for unmatched target rows; their clauses are numbered after those of ``matched``."""
    target_columns: tuple[tuple[str, pa.DataType], ...]
    """Name, and type that values are compared in; conditions name a column by its place here."""
    source_columns: tuple[tuple[str, pa.DataType], ...]


class TargetColumns(Protocol):
    """Columns of target rows. They are read when a condition asks for them."""

    def take(self, place: int, rows: Numbers) -> pa.Array:
        """Return the values of one column in some rows, which ascend."""

    def cost(self, place: int, rows: Numbers) -> int:
        """Return about how many bytes `take` would have to decode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Target rows, ascending, and the source rows they are paired with.

    Unmatched target rows are pairs without source rows.
    """

    target: TargetColumns
    target_rows: Numbers
    source: Sequence[pa.Array] = ()
    """The columns that conditions read."""
    source_rows: Numbers | None = None
    at_a_time: int = _PAIRS_MAX
    """Pairs whose values are brought together: as many as long texts leave room for."""

    def only(self, places: Numbers) -> Pairs:
        """Return some of the pairs, by ascending places."""
        if len(places) == len(self.target_rows):
            return self
        source_rows = None if self.source_rows is None else self.source_rows[places]
        return replace(self, target_rows=self.target_rows[places], source_rows=source_rows)

    def is_true(self, condition: Expression) -> Mask:
        """Return for which pairs a condition is true, not NULL."""
        flags: Mask = np.zeros(len(self.target_rows), np.bool_)
        flags[self._where(condition, np.arange(len(flags)))] = True
        return flags

    def first_true(self, conditions: Sequence[Expression]) -> Numbers:
        """Return the place of the first condition that is true of each pair, or `NO_CLAUSE`."""
        first: Numbers = np.full(len(self.target_rows), NO_CLAUSE, np.int64)
        undecided: Numbers = np.arange(len(first))
        for place, condition in enumerate(conditions):
            if not len(undecided):
                break
            fired = self._where(condition, undecided)
            first[fired] = place
            undecided = _without(undecided, fired)
        return first

    def _where(self, condition: Expression, places: Numbers, *, truth: bool = True) -> Numbers:
        """Return those of some pairs, ascending, of which a condition is true, or is false.

        Parts of a conjunction or disjunction are asked one after the other, cheap ones first, and
        only about the pairs that the ones before did not decide.
        """
        match condition:
            case Call("invert", (negated,)):
                return self._where(negated, places, truth=not truth)
            case Call("and_kleene" | "or_kleene" as name):
                parts = sorted(_parts(name, condition), key=functools.partial(self._cost, places))
            case _:
                return self._evaluated_where(condition, places, truth=truth)
        decides = truth if name == "or_kleene" else not truth
        if not decides:  # every part must say so
            for part in parts:
                if not len(places):
                    break
                places = self._where(part, places, truth=truth)
            return places
        undecided, found = places, []
        for part in parts:
            if not len(undecided):
                break
            found.append(self._where(part, undecided, truth=truth))
            undecided = _without(undecided, found[-1])
        return np.sort(np.concatenate(found)) if found else places

    def _cost(self, places: Numbers, condition: Expression) -> int:
        rows = self.target_rows[places]
        read = {column for column in columns_in(condition) if column.side == "target"}
        return sum(self.target.cost(place_of(column), rows) for column in read)

    def _evaluated_where(self, condition: Expression, places: Numbers, *, truth: bool) -> Numbers:
        if len(places) > self.at_a_time:
            firsts = range(0, len(places), self.at_a_time)
            some = (places[first : first + self.at_a_time] for first in firsts)
            return np.concatenate([self._evaluated_where(condition, n, truth=truth) for n in some])
        pairs = self.only(places)
        result = evaluated(condition, functools.lru_cache(maxsize=None)(pairs.column))
        if isinstance(result, pa.Scalar):
            return places if result.as_py() is truth else places[:0]
        wanted = result if truth else pc.invert(result)
        flags: Mask = wanted.fill_null(False).to_numpy(zero_copy_only=False)  # noqa: FBT003
        return places[flags]

    def column(self, column: InputColumn) -> pa.Array:
        """Return one column of a side, of all pairs."""
        place = place_of(column)
        if column.side == "target":
            return self.target.take(place, self.target_rows)
        return self.source[place].take(pa.array(self.source_rows))


def place_of(column: InputColumn) -> int:
    """Return the place by which a condition names a column.

    Raises:
        TypeError: the expression names its columns, it is no condition on pairs.
    """
    if not isinstance(column.name, int):
        raise TypeError(f"a column without a place: {column}")
    return column.name


def _parts(name: str, condition: Expression) -> Iterator[Expression]:
    """Yield the parts of a conjunction or disjunction, of those within it, too."""
    match condition:
        case Call(function, arguments) if function == name:
            for part in arguments:
                yield from _parts(name, part)
        case _:
            yield condition


def _without(places: Numbers, some: Numbers) -> Numbers:
    """Return ascending places but for some of them."""
    return np.setdiff1d(places, some, assume_unique=True)
