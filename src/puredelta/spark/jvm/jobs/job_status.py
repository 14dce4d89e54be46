"""How far the jobs with a tag are. Classic sessions only; nothing is waited for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from puredelta.spark.jvm.classes import JVM_ERRORS, context_of


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCounts:
    """Tasks of the stages that Spark knows of so far."""

    done: int
    known: int
    running_jobs: int


def count_jobs(spark: SparkSession, tag: str) -> int | None:
    """Return how many jobs with the tag have been started; ``None`` if Spark does not say."""
    try:
        return len(_tracker(spark).getJobIdsForTag(tag))
    except JVM_ERRORS:
        return None


def find_tasks(spark: SparkSession, tag: str | None) -> TaskCounts | None:
    """Return the tasks of the tag's jobs that are running, without a tag those of all jobs;
    ``None`` if none is, or Spark does not say.
    """
    done = known = running = 0
    try:
        tracker = _tracker(spark)
        jobs = tracker.getActiveJobIds() if tag is None else tracker.getJobIdsForTag(tag)
        for job in jobs:
            found = tracker.getJobInfo(job)
            if found.isEmpty() or found.get().status().toString() != "RUNNING":
                continue
            running += 1
            for stage in found.get().stageIds():
                info = tracker.getStageInfo(stage)
                if not info.isEmpty():
                    done += info.get().numCompletedTasks()
                    known += info.get().numTasks()
    except JVM_ERRORS:
        return None
    return TaskCounts(done=done, known=known, running_jobs=running) if running else None


def count_running_tasks(spark: SparkSession, tag: str) -> int:
    """Return how many tasks of the tag's jobs run, those of failed and cancelled jobs, too: a task
    that is killed runs until it notices. 0 if Spark does not say.
    """
    try:
        tracker = _tracker(spark)
        jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForTag(tag))
        stages = {stage for job in jobs if not job.isEmpty() for stage in job.get().stageIds()}
        infos = (tracker.getStageInfo(stage) for stage in stages)
        return sum(info.get().numActiveTasks() for info in infos if not info.isEmpty())
    except JVM_ERRORS:
        return 0


def _tracker(spark: SparkSession) -> Any:
    return context_of(spark).statusTracker()
