"""What it takes to resolve a command in one kind of session, chosen once."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from puredelta.spark.resolve.classic_expressions import ClassicResolver
from puredelta.spark.resolve.classic_frames import ClassicFrames
from puredelta.spark.resolve.connect_expressions import ConnectResolver
from puredelta.spark.resolve.connect_frames import ConnectFrames
from puredelta.spark.resolve.expressions import Resolver
from puredelta.spark.resolve.statement_timestamp import (
    BoundTimestamp,
    ConnectTimestamp,
    StatementTimestamp,
)
from puredelta.spark.session.session import SessionInfo
from puredelta.spark.values.casters import ClassicCaster, ConnectCaster
from puredelta.spark.values.store_assignment import Caster


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """The tools of one command."""

    resolver: Resolver
    caster: Caster
    instant: StatementTimestamp
    is_source_deterministic: bool | None
    """``None``: this session cannot tell."""


def open_analysis(
    spark: SparkSession, target: DataFrame, source: DataFrame, *, session: SessionInfo
) -> Analysis:
    """Return the tools for a target and a source as the user knows them; runs no job."""
    if session.is_connect:
        return Analysis(
            resolver=ConnectResolver(
                ConnectFrames(target, source), case_sensitive=session.case_sensitive
            ),
            caster=ConnectCaster(ansi=session.ansi),
            instant=ConnectTimestamp(spark),
            is_source_deterministic=None,
        )
    frames = ClassicFrames(spark, target, source)
    catalyst = frames.catalyst
    instant = BoundTimestamp(catalyst)
    return Analysis(
        resolver=ClassicResolver(frames, instant=instant, time_zone=session.time_zone),
        caster=ClassicCaster(catalyst),
        instant=instant,
        is_source_deterministic=bool(catalyst.analyzed(source).deterministic()),
    )
