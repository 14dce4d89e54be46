"""What MERGE means, in plain Python: the judge of random statements (M-70..M-79)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
Condition = Callable[[Row | None, Row | None], bool | None]
"""Of a target row and a source row; None is NULL."""
Values = Callable[[Row | None, Row | None], Row]


class AmbiguousError(Exception):
    """Several source rows match one target row."""


@dataclass(frozen=True, kw_only=True)
class Action:
    """A clause: ``fires`` is None without a condition, ``make`` is None for DELETE."""

    fires: Condition | None = None
    make: Values | None = None


@dataclass(frozen=True, kw_only=True)
class Result:
    rows: list[Row]
    updated: int = 0
    deleted: int = 0
    inserted: int = 0


def merge_rows(
    target: Sequence[Row],
    source: Sequence[Row],
    on: Condition,
    *,
    matched: Sequence[Action] = (),
    not_matched: Sequence[Action] = (),
    by_source: Sequence[Action] = (),
) -> Result:
    rows: list[Row] = []
    updated = deleted = 0
    matched_source: set[int] = set()
    insert_only = not matched and not by_source
    sole_delete = len(matched) == 1 and matched[0] == Action()
    for old in target:
        partners = [n for n, new in enumerate(source) if on(old, new)]
        matched_source.update(partners)
        if len(partners) > 1 and not insert_only and not sole_delete:
            raise AmbiguousError(old)
        new = source[partners[0]] if partners else None
        action = _first(matched if partners else by_source, old, new)
        if action is None:
            rows.append(old)
        elif action.make is None:
            deleted += 1
        else:
            updated += 1
            rows.append(action.make(old, new))
    inserted = 0
    for number, new in enumerate(source):
        if number in matched_source:
            continue
        action = _first(not_matched, None, new)
        if action is not None and action.make is not None:
            inserted += 1
            rows.append(action.make(None, new))
    return Result(rows=rows, updated=updated, deleted=deleted, inserted=inserted)


def _first(actions: Sequence[Action], old: Row | None, new: Row | None) -> Action | None:
    return next((a for a in actions if a.fires is None or a.fires(old, new)), None)
