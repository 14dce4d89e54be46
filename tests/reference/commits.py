"""Commits of two implementations side by side: what has to be equal, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NUMBERED = {"timestamp", "inCommitTimestamp", "engineInfo", "txnId", "createdTime", "id"}
_OF_FILES = {"path", "size", "stats", "tags", "deletionTimestamp", "modificationTime"}


def commits_since(table: Path, version: int) -> list[list[str]]:
    """The actions of each commit after a version, as sorted text without ids and times."""
    log = table / "_delta_log"
    names = sorted(p.name for p in log.glob("*.json") if int(p.name[:20]) > version)
    return [sorted(map(_shown, (log / name).read_text().splitlines())) for name in names]


def latest_version(table: Path) -> int:
    """The newest version, -1 where there is no table."""
    found = (int(p.name[:20]) for p in (table / "_delta_log").glob("*.json"))
    return max(found, default=-1)


def outcome(table: Path, run: Callable[[], Any]) -> list[list[str]] | str:
    """Run a command: what it committed, or the class of its error."""
    before = latest_version(table)
    try:
        run()
    except Exception as error:  # noqa: BLE001 - either implementation's own
        return error_class(error)
    return commits_since(table, before)


def error_class(error: Exception) -> str:
    """The error class, also where PySpark hands through the Java exception."""
    condition = getattr(error, "getCondition", lambda: None)()
    if condition:
        return str(condition)
    found = re.search(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)?)\]", str(error))
    return found[1] if found else type(error).__name__


def _shown(line: str) -> str:
    ((kind, action),) = json.loads(line).items()
    left_out = _NUMBERED | (_OF_FILES if kind in {"add", "remove"} else set())
    kept = {key: value for key, value in action.items() if key not in left_out}
    if kind == "commitInfo":
        kept["operationParameters"] = {
            key: _in_order(_parsed(value)) for key, value in kept["operationParameters"].items()
        }
        if kept["operation"] == "DROP FEATURE":
            del kept["isBlindAppend"]  # puredelta looks at the files, and says that it did
        # Row tracking: the reference tags what writes rows, puredelta every commit.
        tags = {k: v for k, v in kept.pop("tags", {}).items() if not k.endswith(".preserved")}
        kept["tags"] = tags
    if kind == "protocol":
        kept = _in_order(kept)
    if kind == "metaData":
        kept["schemaString"] = json.loads(kept["schemaString"])
    if kind == "domainMetadata":
        configuration = _parsed(kept["configuration"])
        if isinstance(configuration, dict):
            configuration.pop("domainName", None)
        kept["configuration"] = configuration
    text = json.dumps({kind: kept}, sort_keys=True)
    return re.sub(r"\b1[6-9]\d{11}\b", "TIME", _UUID.sub("UUID", text))


def _in_order(value: Any) -> Any:
    """Sort the feature lists of a protocol."""
    if not isinstance(value, dict):
        return value
    return {
        key: sorted(item) if key.endswith("Features") else _in_order(item)
        for key, item in value.items()
    }


def _parsed(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value
