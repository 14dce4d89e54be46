"""delta-rs."""

from __future__ import annotations

import json
import os
from functools import partial

import pyarrow.parquet as pq
from deltalake import DeltaTable, Field, Schema, convert_to_deltalake
from deltalake.schema import PrimitiveType

from benchmarks.requests import STORAGE_OPTIONS, Answer, Command, Kind, Request, with_clauses

_METHODS = {
    Kind.UPDATE: "when_matched_update_all",
    Kind.DELETE: "when_matched_delete",
    Kind.INSERT: "when_not_matched_insert_all",
    Kind.DELETE_BY_SOURCE: "when_not_matched_by_source_delete",
}


class RustEngine:
    """deltalake."""

    def __init__(self) -> None:
        self._options = json.loads(os.environ.get(STORAGE_OPTIONS, "null"))

    def prepare(self, request: Request) -> Command:
        command = self._convert if request["do"] == "convert" else self._merge
        return partial(command, request)

    def report(self) -> Answer:
        return {}

    def _merge(self, request: Request) -> None:
        source = pq.read_table(request["source"], partitioning=None)
        merge = DeltaTable(request["table"], storage_options=self._options).merge(
            source, request["on"], source_alias="s", target_alias="t"
        )
        with_clauses(merge, request["clauses"], _METHODS).execute()

    def _convert(self, request: Request) -> None:
        if request["partition_schema"] is None:
            convert_to_deltalake(request["table"], storage_options=self._options)
            return
        name = request["partition_schema"].split()[0]
        partitions = Schema([Field(name, PrimitiveType("integer"))])
        convert_to_deltalake(
            request["table"],
            partition_by=partitions,
            partition_strategy="hive",
            storage_options=self._options,
        )
