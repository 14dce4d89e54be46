"""The streaming queries of a session that run, and the sources of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from puredelta.spark.jvm.classes import proxy_name, session_of
from puredelta.spark.jvm.plans import Plan

_EXECUTION = "StreamingExecutionRelation"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningQuery:
    """A query, and its sources in the order in which Spark numbers them."""

    checkpoint: str
    sources: tuple[str | None, ...]
    """The names of those that are Python objects; None for others."""

    def source_path(self, name: str) -> str:
        """Return where Spark keeps what it knows of a source."""
        return f"{self.checkpoint}/sources/{self.sources.index(name)}"


def running_queries(spark: SparkSession) -> Iterator[RunningQuery]:
    """Yield the queries of a session that run."""
    for wrapper in session_of(spark).streams().active():
        query = wrapper.streamingQuery()
        yield RunningQuery(
            checkpoint=str(query.resolvedCheckpointRoot()),
            sources=tuple(_sources(Plan(query.analyzedPlan()))),
        )


def _sources(plan: Plan) -> Iterator[str | None]:
    names: set[str] = set()
    others: list[Any] = []
    for leaf in plan.leaves:
        if not leaf.java.isStreaming():
            continue
        name = proxy_name(leaf.java.source()) if leaf.kind == _EXECUTION else None
        # Sources of ours are not compared: that would be a call to Python inside of another.
        if name is None and not any(leaf.java.equals(other) for other in others):
            others.append(leaf.java)
            yield None
        elif name is not None and name not in names:
            names.add(name)
            yield name
