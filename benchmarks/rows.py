"""Rows of the benchmark's tables, each a pure function of its number.

The columns are those of ``web_returns`` of TPC-DS, or 200 of a wide table. Any row can be made
again from its number alone, so that what a merge must leave behind is computed, not read.

Row numbers give distinct integer keys: order numbers are even and grow with the row number,
three rows an order. The odd ones are free for new rows inside of the key range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers: TypeAlias = npt.NDArray[np.int64]
Words: TypeAlias = npt.NDArray[np.uint64]

ORDER, ITEM, PART = "wr_order_number", "wr_item_sk", "wr_part"
MONEY = pa.decimal128(7, 2)
WIDE_COLUMNS = 200
_ITEMS = 6_000
_NULL_EVERY = 25

_SURROGATES = (
    ("wr_returned_date_sk", 73_000),
    ("wr_returned_time_sk", 86_400),
    ("wr_refunded_customer_sk", 100_000),
    ("wr_refunded_cdemo_sk", 1_920_800),
    ("wr_refunded_hdemo_sk", 7_200),
    ("wr_refunded_addr_sk", 50_000),
    ("wr_returning_customer_sk", 100_000),
    ("wr_returning_cdemo_sk", 1_920_800),
    ("wr_returning_hdemo_sk", 7_200),
    ("wr_returning_addr_sk", 50_000),
    ("wr_web_page_sk", 60),
    ("wr_reason_sk", 35),
)
_AMOUNTS = (
    "wr_return_amt",
    "wr_return_tax",
    "wr_return_amt_inc_tax",
    "wr_fee",
    "wr_return_ship_cost",
    "wr_refunded_cash",
    "wr_reversed_charge",
    "wr_account_credit",
    "wr_net_loss",
)
CHECKED = ("wr_reason_sk", "wr_return_quantity", "wr_return_amt", "wr_net_loss")
CHECKED_WIDE = ("c001", "c002", "c003", "c195")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSet:
    """Which rows: their numbers, and what is common to them or differs."""

    numbers: Numbers
    parts: npt.NDArray[np.int32] | None = None
    """Values of the partition column, where there is one."""
    interleaved: bool = False
    """New keys between those of the table, instead of the row numbers' own."""
    changed: npt.NDArray[np.bool_] | None = None
    """Rows with other values than the table's; ``None``: none of them."""

    def __len__(self) -> int:
        return len(self.numbers)


def mixed(values: Numbers | Words, salt: int) -> Words:
    """Scramble 64 bits (splitmix64), differently for each salt."""
    with np.errstate(over="ignore"):
        state = values.astype(np.uint64) + np.uint64((salt + 1) * 0x9E3779B97F4A7C15 % 2**64)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        scrambled: Words = state ^ (state >> np.uint64(31))
        return scrambled


def order_numbers(rows: RowSet) -> Numbers:
    """Return the first key column."""
    return 2 * (rows.numbers // 3) + (1 if rows.interleaved else 2)


def item_numbers(rows: RowSet) -> Numbers:
    """Return the second key column; distinct within an order."""
    items: Numbers = (mixed(rows.numbers, 0) % np.uint64(_ITEMS)).astype(np.int64)
    return 3 * items + rows.numbers % 3 + 1


def make_rows(rows: RowSet, *, wide: bool = False) -> pa.Table:
    """Return the rows with every column."""
    changed = np.zeros(len(rows), np.bool_) if rows.changed is None else rows.changed
    columns = _wide_columns(rows, changed) if wide else _narrow_columns(rows, changed)
    if rows.parts is not None:
        columns[PART] = pa.array(rows.parts)
    return pa.table(columns)


def make_keys(rows: RowSet) -> pa.Table:
    """Return the key columns only."""
    return pa.table(
        {
            ITEM: pa.array(item_numbers(rows).astype(np.int32)),
            ORDER: pa.array(order_numbers(rows)),
        }
    )


def _narrow_columns(rows: RowSet, changed: npt.NDArray[np.bool_]) -> dict[str, pa.Array]:
    columns: dict[str, pa.Array] = {
        name: _integers(rows.numbers, salt, bound)
        for salt, (name, bound) in enumerate(_SURROGATES, start=1)
    }
    columns[ITEM] = pa.array(item_numbers(rows).astype(np.int32))
    columns[ORDER] = pa.array(order_numbers(rows))
    quantity = (mixed(rows.numbers, 50) % np.uint64(100)).astype(np.int32)
    columns["wr_return_quantity"] = pa.array(quantity + changed.astype(np.int32) * 1_000)
    for salt, name in enumerate(_AMOUNTS, start=60):
        cents = (mixed(rows.numbers, salt) % np.uint64(900_000)).astype(np.int64)
        columns[name] = money(cents + changed.astype(np.int64) * 100)
    return columns


def _wide_columns(rows: RowSet, changed: npt.NDArray[np.bool_]) -> dict[str, pa.Array]:
    columns = {ITEM: pa.array(item_numbers(rows).astype(np.int32))}
    columns[ORDER] = pa.array(order_numbers(rows))
    texts = pa.array([f"text {n:04d}" for n in range(1_000)])
    for n in range(WIDE_COLUMNS - 2):
        drawn = mixed(rows.numbers, 100 + n)
        if n % 3 == 0:
            columns[f"c{n:03d}"] = _integers(rows.numbers, 100 + n, 1_000_000)
        elif n % 3 == 1:
            cents = (drawn % np.uint64(900_000)).astype(np.int64)
            columns[f"c{n:03d}"] = money(cents + changed.astype(np.int64) * 100)
        else:
            columns[f"c{n:03d}"] = texts.take(pa.array((drawn % np.uint64(1_000)).view(np.int64)))
    return columns


def _integers(numbers: Numbers, salt: int, bound: int) -> pa.Array:
    drawn = mixed(numbers, salt)
    nulls = (drawn >> np.uint64(40)) % np.uint64(_NULL_EVERY) == 0
    return pa.array((drawn % np.uint64(bound)).astype(np.int32) + 1, mask=nulls)


def money(cents: Numbers) -> pa.Array:
    """Return amounts as decimals without going through text."""
    words = np.empty((len(cents), 2), np.int64)
    words[:, 0] = cents
    words[:, 1] = cents >> 63
    return pa.Array.from_buffers(MONEY, len(cents), [None, pa.py_buffer(words.tobytes())])


# --- what rows add up to --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Totals:
    """The number of rows and the sum of a hash of each: equal for equal sets of rows."""

    rows: int = 0
    checksum: int = 0

    def __add__(self, other: Totals) -> Totals:
        return Totals(self.rows + other.rows, (self.checksum + other.checksum) % 2**64)

    def __sub__(self, other: Totals) -> Totals:
        return Totals(self.rows - other.rows, (self.checksum - other.checksum) % 2**64)


def checked_columns(*, wide: bool, partitioned: bool) -> tuple[str, ...]:
    """Return the columns that the checksum covers: the keys, then values of every type."""
    values = CHECKED_WIDE if wide else CHECKED
    return (ORDER, ITEM, *values, *((PART,) if partitioned else ()))


def total(table: pa.Table, columns: tuple[str, ...]) -> Totals:
    """Add up a hash of every row over ``columns``; their order matters, that of rows does not."""
    state: Words = np.zeros(table.num_rows, np.uint64)
    for salt, name in enumerate(columns):
        state = mixed(state ^ _words(table[name]), salt)
    with np.errstate(over="ignore"):
        return Totals(table.num_rows, int(state.sum(dtype=np.uint64)))


def _words(column: pa.ChunkedArray) -> Words:
    """Return a column as words; NULL is a value of its own."""
    if pa.types.is_decimal(column.type):
        column = pa.chunked_array([_unscaled(c) for c in column.cast(MONEY).chunks], pa.int64())
    elif not pa.types.is_integer(column.type):
        # "text 0042": the digits tell it from every other text of these tables.
        column = pc.utf8_slice_codeunits(column.cast(pa.string()), 5)
    filled = pc.fill_null(column.cast(pa.int64()), -(2**62))
    values: Numbers = filled.to_numpy()
    return values.view(np.uint64)


def _unscaled(amounts: pa.Array) -> pa.Array:
    """Return the low words of decimals, which hold all of a small one."""
    words = np.frombuffer(amounts.buffers()[1], np.int64)[0::2]
    values = words[amounts.offset : amounts.offset + len(amounts)]
    return pa.array(values, mask=amounts.is_null().to_numpy(zero_copy_only=False))
