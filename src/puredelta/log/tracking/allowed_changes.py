"""Which changes of columns a user lets a stream follow, by options of the reader or settings.

Added columns come as they are. A renamed, dropped or wider column may break what the stream writes
to, so that the query does not go on before its user has said that it may.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.tracking.tracked_schema import TrackedSchema
from puredelta.protocol.schema.schema_json import encode_schema
from puredelta.protocol.table.schema_changes import FieldDifference, SchemaChanges, find_changes

ALWAYS = "always"
RENAME = "allowSourceColumnRename"
DROP = "allowSourceColumnDrop"
TYPE_CHANGE = "allowSourceColumnTypeChange"
OPTIONS = (RENAME, DROP, TYPE_CHANGE)
RENAME_AND_DROP = "allowSourceColumnRenameAndDrop"
"""Only a setting has this name."""
SETTINGS_PREFIX = "spark.databricks.delta.streaming."


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedChanges:
    """What a user has said. A value is ``always``, or the version of one change."""

    options: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    """Every setting of the session; those for one stream end with ``.ckpt_`` and its number."""

    def require(self, older: TrackedSchema, newer: TrackedSchema) -> None:
        """Refuse to go on after a change that the user has not allowed.

        Raises:
            InvalidRequestError: it is not allowed
                (DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION), or nobody can
                read older rows after it (DELTA_SCHEMA_CHANGED_WITH_VERSION).
        """
        changes = find_changes(older.schema, newer.schema)
        if not changes.is_readable:
            raise InvalidRequestError(
                f"Detected schema change in version {newer.version}: the stream read "
                f"{encode_schema(older.schema)}, that version has {encode_schema(newer.schema)}. "
                "The change of a type cannot be followed. Begin with a fresh checkpoint directory "
                "and a later version.",
                code=ErrorCode.SCHEMA_CHANGED_WITH_VERSION,
                version=newer.version,
            )
        number = stream_number(newer.source_path)
        kinds = [kind for kind, found in _kinds(changes) if found]
        if all(self._has_allowed(kind, number, newer.version) for kind in kinds):
            return
        raise _not_allowed(changes, kinds, number, older.version, newer.version)

    def _has_allowed(self, kind: str, number: int, version: int) -> bool:
        if self.options.get(kind) in {ALWAYS, str(version)}:
            return True
        names = (kind,) if kind == TYPE_CHANGE else (kind, RENAME_AND_DROP)
        for name in names:
            key = SETTINGS_PREFIX + name
            if self.settings.get(key, "").lower() == ALWAYS:
                return True
            if self.settings.get(f"{key}.ckpt_{number}", "").lower() in {ALWAYS, str(version)}:
                return True
        return False


def stream_number(source_path: str) -> int:
    """Return the number by which settings name a stream: Java's hash of a text.

    >>> stream_number("file:/tmp/probe/r/cka/sources/0")
    -627915970
    """
    units = source_path.encode("utf-16-be")
    number = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        number = (31 * number + (high << 8 | low)) & 0xFFFFFFFF
    return number - (1 << 32) if number >= 1 << 31 else number


def _kinds(changes: SchemaChanges) -> Iterator[tuple[str, Sequence[FieldDifference]]]:
    yield RENAME, changes.renamed
    yield DROP, changes.dropped
    yield TYPE_CHANGE, changes.widened


def _not_allowed(
    changes: SchemaChanges, kinds: Sequence[str], number: int, before: int, after: int
) -> InvalidRequestError:
    options = [f'.option("{kind}", "{after}")' for kind in kinds]
    always = [f'.option("{kind}", "{ALWAYS}")' for kind in kinds]
    here = [f"SET {SETTINGS_PREFIX}{kind}.ckpt_{number} = {after}" for kind in kinds]
    everywhere = [f'SET {SETTINGS_PREFIX}{kind} = "{ALWAYS}"' for kind in kinds]
    return InvalidRequestError(
        f"We've detected one or more non-additive schema change(s) ({_name(changes)}) between "
        f"Delta version {before} and {after} in the Delta streaming source. "
        f"Changes: {'; '.join(_details(changes))}. Please check if you want to manually propagate "
        "the schema change(s) to the sink table before we proceed with stream processing using "
        f"the finalized schema at version {after}. Then allow them for this series of changes by "
        f"{' '.join(options)} or {'; '.join(here)}, for this stream by {' '.join(always)}, or for "
        f"all streams by {'; '.join(everywhere)}.",
        code=ErrorCode.STREAMING_CANNOT_CONTINUE_POST_SCHEMA_EVOLUTION,
        previous_version=before,
        version=after,
        kinds=tuple(kinds),
    )


def _name(changes: SchemaChanges) -> str:
    """Return what delta-spark calls these changes."""
    columns = [
        word for word, found in (("RENAME", changes.renamed), ("DROP", changes.dropped)) if found
    ]
    if not changes.widened:
        return " AND ".join(columns) + " COLUMN"
    return " AND ".join([*([", ".join(columns)] if columns else []), "TYPE WIDENING"])


def _details(changes: SchemaChanges) -> Iterator[str]:
    if changes.renamed:
        pairs = ", ".join(f"{c.before} -> {c.after}" for c in changes.renamed)
        yield f"Columns renamed: {pairs}"
    if changes.dropped:
        yield f"Columns dropped: {', '.join(c.before for c in changes.dropped)}"
    if changes.widened:
        pairs = ", ".join(f"{c.before} -> {c.after}" for c in changes.widened)
        yield f"Columns with widened types: {pairs}"
