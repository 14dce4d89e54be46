"""Write ``configuration.md`` from the table of settings; ``--check`` only compares."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from puredelta.catalogs.settings import KEYS, OWN_PREFIX
from puredelta.spark.offload.workers import PREFIX as WORKERS_PREFIX
from puredelta.spark.offload.workers import WORKER_CONFS
from puredelta.spark.session.delta_conf import (
    HONOURED,
    OWN,
    PREFIX,
    REFUSED,
    WITHOUT_EFFECT,
    DeltaConf,
)
from puredelta.spark.session.read_settings import READER_SETTINGS
from puredelta.spark.session.storage import OPTION_PREFIX

PAGE = Path(__file__).with_name("configuration.md")
INTRODUCTION = f"""\
# Configuration

Generated from `src/puredelta/spark/session/delta_conf.py`: change a row there, then run
`python docs/generate_configuration.py`.

The settings are delta-spark's own. Set them in the session (`spark.conf.set(key, value)`, classic
and Connect); each command reads them at its start. The defaults are those of delta-spark 4.4.0.
Keys below begin with `{PREFIX}`, unless they begin with `spark.`. Options of one call
(`mergeSchema`, `userMetadata`) have priority over the session.

The page lists every setting of delta-spark 4.4.0. A boolean setting with another value is an error,
as in delta-spark (`INVALID_CONF_VALUE.TYPE_MISMATCH`). A name below `{PREFIX}` that is no setting
is a warning, once; delta-spark ignores it.

Of Spark's own settings the commands follow `spark.sql.caseSensitive`, `spark.sql.ansi.enabled`,
`spark.sql.storeAssignmentPolicy`, `spark.sql.session.timeZone` and
`spark.sql.autoBroadcastJoinThreshold`; CONVERT follows `spark.sql.files.ignoreCorruptFiles`,
`spark.sql.parquet.binaryAsString`, `spark.sql.parquet.int96AsTimestamp`,
`spark.sql.parquet.inferTimestampNTZ.enabled` and `spark.sql.legacy.parquet.nanosAsLong`. Rewrites
never skip lost or corrupt files, for any setting of the session.

Settings of Parquet's writer (`parquet.block.size`, `parquet.page.size`, `parquet.writer.version`,
`parquet.bloom.filter.enabled#column`, `parquet.compression`, `parquet.crypto.*`,
`parquet.encryption.*`, ...) hold for each file of a statement, from the session, Hadoop's
configuration or the options of a write. Spark writes then what workers would copy, which takes
longer. A codec in `spark.sql.parquet.compression.codec` holds for copies, too; unset, a copy keeps
the codec of its file. `outputTimestampType`, `writeLegacyFormat`, `fieldId.write.enabled` and the
rebase modes in write are always those that the protocol needs.
"""


def main() -> int:
    text = page()
    if "--check" in sys.argv[1:]:
        return 0 if PAGE.exists() and PAGE.read_text() == text else 1
    PAGE.write_text(text)
    return 0


def page() -> str:
    """The whole page."""
    return "\n".join(
        [
            INTRODUCTION,
            "## Honoured",
            "",
            *table("effect", HONOURED),
            "",
            "## Settings of this library",
            "",
            *table("effect", OWN),
            "",
            "## Python workers",
            "",
            "Settings of this library for the Python workers of a MERGE, an UPDATE or a DELETE.",
            f"Keys begin with `{WORKERS_PREFIX}`.",
            "",
            *table("effect", WORKER_CONFS),
            "",
            "## Storage",
            "",
            f"`{OPTION_PREFIX}<option>` sets an option of object stores by its name in",
            "obstore. It has priority over Hadoop's settings, which also apply: see",
            "[storage.md](storage.md).",
            "",
            "## Catalogs",
            "",
            f"Keys begin with `{OWN_PREFIX}NAME.`; those of the connector",
            "`UCSingleCatalog` are taken, too: see [Unity Catalog](guides/unity-catalog.md).",
            "",
            "| key | effect |",
            "| --- | --- |",
            *(f"| `{key}` | {effect} |" for key, effect in KEYS.items()),
            "",
            "## Log stores",
            "",
            "`spark.delta.logStore.class` and `spark.delta.logStore.<scheme>.impl` have no effect:",
            "a commit is put if absent by the storage itself ([storage.md](storage.md)).",
            "Where they name `S3DynamoDBLogStore` for S3, writes are refused, since other writers",
            "may then replace commits of this library.",
            "`spark.io.delta.storage.S3DynamoDBLogStore.*` and `delta.enableFastS3AListFrom` have",
            "no effect.",
            "",
            "## Refused",
            "",
            "These statements are refused where the setting has another value than its default:",
            "what it would change is always as the last column says. Others go on.",
            "",
            *refused(),
            "",
            "## Settings of Spark's reader",
            "",
            "Spark follows them all; the table says who else does.",
            "",
            "| setting | who follows it | reason |",
            "| --- | --- | --- |",
            *(
                f"| `{key}` | {one.follower.value} | {one.reason} |"
                for key, one in READER_SETTINGS.items()
            ),
            "",
            "Options of one read that have the name of such a setting, without its prefix, are not",
            "passed on by a table: a frame of it follows the session. A Parquet source with one",
            "that changes how rows are read is read by Spark alone.",
            "",
            "## Without effect",
            "",
            "These settings are accepted and have no effect: they are about speed, or features",
            "that this library does not have, or they turn off a repair.",
            "",
            *table("reason", WITHOUT_EFFECT),
            "",
        ]
    )


def table(last: str, rows: Iterable[DeltaConf]) -> list[str]:
    """One line per setting."""
    head = [f"| setting | default | {last} |", "| --- | --- | --- |"]
    return [*head, *(f"| `{shown(r)}` | {default(r)} | {r.effect} |" for r in rows)]


def refused() -> list[str]:
    """One line per setting, with the statements that refuse it."""
    return [
        "| setting | default | statements | here |",
        "| --- | --- | --- | --- |",
        *(
            f"| `{row.name}` | {default(row)} | {group.statements} | {row.effect} |"
            for group in REFUSED
            for row in group.confs
        ),
    ]


def shown(row: DeltaConf) -> str:
    """The name of a setting without the prefix of its table; in a table of many, the key."""
    return row.key if row in OWN else row.name


def default(row: DeltaConf) -> str:
    """The default as the page shows it."""
    return "" if row.default is None else f"`{row.default}`"


if __name__ == "__main__":
    sys.exit(main())
