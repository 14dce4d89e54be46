"""Parts of the reports of statements that move whole files, as OPTIMIZE and RESTORE do. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from puredelta.commands.report.parts import DECISIONS_MAX, FileAction, FileDecision, SettingValue
from puredelta.log.files.file_table import FileTable
from puredelta.spark.session.delta_conf import DeltaConf


def first_decisions(
    files: Iterable[tuple[str, int]], action: FileAction, reason: str
) -> tuple[FileDecision, ...]:
    """Return a decision for each of the first files, which are given by path and size in bytes."""
    return tuple(
        FileDecision(path=path, action=action, reason=reason, size_bytes=size_bytes)
        for path, size_bytes in islice(files, DECISIONS_MAX)
    )


def first_file_decisions(
    files: FileTable, action: FileAction, reason: str
) -> tuple[FileDecision, ...]:
    """Return a decision for each of the first files of a table; the others are not looked at."""
    rows = files.rows.slice(0, DECISIONS_MAX)
    named = zip(rows["path"].to_pylist(), rows["size_bytes"].to_pylist(), strict=True)
    return first_decisions(named, action, reason)


def setting_values(confs: Iterable[DeltaConf], made: Mapping[str, str]) -> tuple[SettingValue, ...]:
    """Return settings with their values; ``made`` are those that the session has made."""
    return tuple(
        SettingValue(
            key=conf.key,
            value="unset" if (value := conf.text(made)) is None else value,
            origin="session" if conf.key in made else "default",
            effect=conf.effect,
        )
        for conf in confs
    )
