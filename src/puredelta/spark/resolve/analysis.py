"""The resolver of a command's expressions for one kind of session."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from puredelta.spark.resolve.classic import ClassicFrames, ClassicResolver
from puredelta.spark.resolve.connect import ConnectFrames, ConnectResolver
from puredelta.spark.resolve.expressions import Resolver
from puredelta.spark.resolve.statement_timestamp import (
    ClassicTimestamp,
    ConnectTimestamp,
    StatementTimestamp,
)
from puredelta.spark.session.session import SessionInfo
from puredelta.spark.values.casters import caster_of
from puredelta.spark.values.store_assignment import Caster


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """The tools of one command."""

    resolver: Resolver
    caster: Caster
    timestamp: StatementTimestamp


def open_analysis(
    spark: SparkSession, target: DataFrame, source: DataFrame, *, session: SessionInfo
) -> Analysis:
    """Return the tools for a target and a source as the user knows them; runs no job."""
    caster = caster_of(spark, session)
    if session.is_connect:
        frames = ConnectFrames(target, source)
        resolver = ConnectResolver(frames, case_sensitive=session.case_sensitive)
        return Analysis(resolver=resolver, caster=caster, timestamp=ConnectTimestamp(spark))
    timestamp = ClassicTimestamp(spark)
    own = ClassicFrames(target, source)
    classic = ClassicResolver(spark, own, timestamp=timestamp, time_zone=session.time_zone)
    return Analysis(resolver=classic, caster=caster, timestamp=timestamp)
