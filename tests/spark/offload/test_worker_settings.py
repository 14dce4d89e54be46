"""What a session lets Python workers do."""

from __future__ import annotations

import pytest

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.spark.offload.workers import (
    PREFIX,
    WORKER_CONFS,
    WorkerMemory,
    WorkerSettings,
)


def test_without_a_setting_workers_do_all_they_can() -> None:
    found = WorkerSettings.parse({})
    assert (found.enabled, found.quickack, found.gc_freeze, found.keep_memory) == (True,) * 4
    assert found.limits.small_file_rows > 0


def test_each_setting_is_read() -> None:
    off = {conf.key: "false" for conf in WORKER_CONFS if conf.default == "true"}
    found = WorkerSettings.parse(off)
    assert (found.enabled, found.quickack, found.gc_freeze, found.keep_memory) == (False,) * 4
    assert found.limits.small_file_rows == 0
    memory = WorkerSettings.parse({f"{PREFIX}lookupBytes": "1000"}).memory
    assert memory.task_max == 1000
    assert memory.parts_max > 1


def test_memory_is_a_number_of_bytes() -> None:
    with pytest.raises(InvalidRequestError, match="'64m': set it to a number of bytes") as refused:
        WorkerSettings.parse({f"{PREFIX}lookupBytes": "64m"})
    assert refused.value.code is ErrorCode.INVALID_CONF_VALUE


def test_workers_of_a_cluster_may_hold_little() -> None:
    here, there = WorkerMemory.of("local[2]"), WorkerMemory.of("yarn")
    assert (here.parts_max, here.all_max) == (1, here.task_max)
    assert there.task_max < here.task_max
    assert there.parts_max > 1
    assert there.tasks_max(there.task_max) is None
    assert here.tasks_max(here.task_max // 2) == 2
    assert WorkerSettings.parse({"spark.master": "local"}).memory == here
    assert WorkerSettings.parse({}).memory == there
