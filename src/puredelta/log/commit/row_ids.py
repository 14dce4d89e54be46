"""Row tracking: fresh row ids and commit versions of added files (X-14).

Every commit to a table that lists the feature assigns them, even while the feature is not enabled,
because later readers identify rows by them. They depend on the version and on winning commits, so
every attempt to commit assigns them again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from puredelta.errors import CorruptTableError, InvalidRequestError, Message
from puredelta.log.files.row_counts import physical_rows
from puredelta.protocol.actions.actions import Action, Add, DomainMetadata, Remove
from puredelta.protocol.actions.paths import CanonicalPath, canonical_path
from puredelta.protocol.schema.schema_json import parse_json
from puredelta.protocol.table.row_tracking import ROW_TRACKING
from puredelta.protocol.table.table_config import TableConfig

ROW_TRACKING_DOMAIN = "delta.rowTracking"
PRESERVED_TAG = "delta.rowTracking.preserved"
NO_ROW_ID = -1
ROW_ID_MAX = (1 << 63) - 1

_SHOWN_LENGTH = 200

_HIGH_WATER_MARK = "rowIdHighWaterMark"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowIds:
    """The two values of a file that identify its rows."""

    base_row_id: int | None
    default_row_commit_version: int | None


def assigns_row_ids(config: TableConfig) -> bool:
    """Return whether writers must assign row ids: the feature is supported and not suspended."""
    return config.supports(ROW_TRACKING) and not config.properties.row_tracking_suspended


def high_water_mark(domains: Iterable[DomainMetadata]) -> int:
    """Return the highest row id assigned so far, -1 if there is none."""
    for domain in domains:
        if domain.domain == ROW_TRACKING_DOMAIN and not domain.removed:
            return _mark(domain.configuration)
    return NO_ROW_ID


def _mark(text: str) -> int:
    try:
        mark = parse_json(text).get(_HIGH_WATER_MARK, NO_ROW_ID)
        if isinstance(mark, int) and not isinstance(mark, bool) and NO_ROW_ID <= mark <= ROW_ID_MAX:
            return mark
        problem = f"{mark!r} is no row id"
    except (ValueError, AttributeError) as error:
        problem = str(error)
    raise CorruptTableError(
        Message.LOG_CORRUPTED_ROW_TRACKING,
        row_tracking_domain=ROW_TRACKING_DOMAIN,
        text=text[:_SHOWN_LENGTH],
        problem=problem,
    )


def assign_row_ids(
    actions: Iterable[Action],
    *,
    version: int,
    highest: int,
    recommitted: Mapping[CanonicalPath, RowIds],
) -> tuple[Action, ...]:
    """Give ids above ``highest`` to new files and put the new high water mark in front.

    Files that were in the table before keep their ids. If a winning commit has assigned ids to
    such a file since it was read (``recommitted``, by canonical path), these ids are used.
    """
    result: list[Action] = []
    mark = highest
    for action in actions:
        match action:
            case Add() | Remove() if ids := recommitted.get(canonical_path(action.path)):
                result.append(
                    replace(
                        action,
                        base_row_id=ids.base_row_id,
                        default_row_commit_version=ids.default_row_commit_version,
                    )
                )
            case Add() if action.base_row_id is None or action.base_row_id > highest:
                result.append(
                    replace(action, base_row_id=mark + 1, default_row_commit_version=version)
                )
                mark += _rows_of(action, mark)
            case Add(default_row_commit_version=None):
                result.append(replace(action, default_row_commit_version=version))
            case DomainMetadata(domain=domain) if domain == ROW_TRACKING_DOMAIN:
                pass
            case _:
                result.append(action)
    if mark > highest:
        configuration = json.dumps({_HIGH_WATER_MARK: mark}, separators=(",", ":"))
        result.insert(0, DomainMetadata(domain=ROW_TRACKING_DOMAIN, configuration=configuration))
    return tuple(result)


def _rows_of(add: Add, mark: int) -> int:
    rows = physical_rows(add)
    if rows is not None and mark + rows > ROW_ID_MAX:
        raise InvalidRequestError(
            Message.ARITHMETIC_OVERFLOW_ROW_IDS,
            rows=rows,
            row_id_max=ROW_ID_MAX,
            path=add.path,
            high_water_mark=mark,
        )
    if rows is None:
        raise InvalidRequestError(Message.ROW_ID_ASSIGNMENT_WITHOUT_STATS, path=add.path)
    return rows
