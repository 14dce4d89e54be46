"""Writes, streams and statements, as a program that prints what each of them recorded.

``python -m tests.reference.recorded delta`` runs them through delta-spark, with ``puredelta``
through an activated session. Of every commit it prints what the history says: operation,
parameters, the names of the metrics, whether it was a blind append.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from tests.reference.everyday import Shop, Statement, make_session, rows_shown
from tests.reference.recorded_statements import DONE
from tests.reference.recorded_steps import BUILT, FEEDS, MERGES, SAVED, STREAMS, WRITTEN

BLOCKS = {
    "merges": MERGES,
    "saved": SAVED,
    "written": WRITTEN,
    "built": BUILT,
    "streams": STREAMS,
    "feeds": FEEDS,
    "statements": DONE,
}


def main(engine: str, blocks: list[str]) -> None:
    """Run every step and print what it returned and what it committed."""
    for name in blocks or BLOCKS:
        with tempfile.TemporaryDirectory() as root:
            spark = make_session(engine, root)
            shop = Shop(spark=spark, tables=importlib.import_module(f"{engine}.tables"), root=root)
            known: set[Path] = set()
            for label, statement in BLOCKS[name]:
                lines = [*answer(statement, shop), *news(Path(root), known)]
                told = [f"# {name}: {label}", *(f"> {line}" for line in lines)]
                sys.stdout.write(re.sub(root, "ROOT", "".join(f"{line}\n" for line in told)))
                sys.stdout.flush()
            spark.stop()


def answer(statement: Statement, shop: Shop) -> list[str]:
    """Run a step: what it returned, or the classes of its error."""
    try:
        given = statement(shop)
    except Exception as error:  # noqa: BLE001 - either implementation's own
        sys.stderr.write(f"{error}\n")
        found = re.findall(r"\[([A-Z][A-Z0-9_]{5,}(?:\.[A-Z0-9_]+)?)\]", str(error))
        codes = [code for code in found if code not in _AROUND]
        return [f"error {codes[0] if codes else type(error).__name__}"]
    if isinstance(given, DataFrame):
        return rows_shown(given)
    return [f"  {line}" for line in given] if isinstance(given, list) else []


def news(root: Path, known: set[Path]) -> list[str]:
    """Describe the commits below a directory that were not there before."""
    found = sorted(set(root.rglob("_delta_log/*.json")) - known)
    known.update(found)
    return [line for path in found for line in _said(path, str(path.parents[1].relative_to(root)))]


def _said(path: Path, table: str) -> list[str]:
    lines = []
    for line in path.read_text().splitlines():
        ((kind, value),) = json.loads(line).items()
        if kind in _SHOWN:
            shown = json.dumps(_SHOWN[kind](value), sort_keys=True)
            # Physical names are others in every run.
            shown = re.sub(r"col-[0-9a-f-]{36}", "col-UUID", shown)
            lines.append(f"{table} {int(path.stem)} {shown}")
    return sorted(lines)


def _operation(info: dict[str, Any]) -> Any:
    own_text = info["operation"] in {"MERGE", "UPDATE", "DELETE"}
    parameters = {k: _parsed(v) for k, v in info["operationParameters"].items() if k != "queryId"}
    if own_text:  # conditions are plain SQL here, and Catalyst's text there
        parameters.pop("predicate", None)
        for clauses in parameters.values():
            for clause in clauses:
                clause.pop("predicate", None)
    return {
        "operation": info["operation"],
        "parameters": parameters,
        "metrics": sorted(info.get("operationMetrics", {})),
        "blind": info.get("isBlindAppend"),
        "words": info.get("userMetadata"),
    }


def _metadata(value: dict[str, Any]) -> Any:
    known = {k: v for k, v in value.items() if k not in {"id", "createdTime"}}
    return {**known, "schemaString": json.loads(known["schemaString"])}


def _protocol(value: dict[str, Any]) -> Any:
    return {k: sorted(v) if isinstance(v, list) else v for k, v in value.items()}


def _parsed(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


_SHOWN = {"commitInfo": _operation, "metaData": _metadata, "protocol": _protocol}
_AROUND = {
    "STREAM_FAILED",
    "PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR",
    "FOREACH_BATCH_USER_FUNCTION_ERROR",
}
"""Errors that say only where another one happened."""


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
