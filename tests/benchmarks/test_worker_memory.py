"""Workers hold what was planned: in an address space that is not much larger nothing fails."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.worker_memory import (
    COPIES,
    LOOKUPS,
    MEGABYTE,
    OWN_BYTES,
    RATIO_MAX,
    SHAPES,
    TASK_MAX,
    measured,
)

LIMITED = sys.platform == "linux"
LEFT_TO_SPARK = {"more long texts than fit", "long texts after short ones"}


@pytest.mark.thorough
@pytest.mark.skipif(not LIMITED, reason="no limit of the address space")
@pytest.mark.parametrize("name", LOOKUPS)
def test_a_lookup_fits_into_what_was_planned_or_is_left_to_spark(tmp_path: Path, name: str) -> None:
    shape = LOOKUPS[name]
    shape.lay(tmp_path)
    planned = shape.planned(tmp_path)
    assert (planned is None) is (name in LEFT_TO_SPARK)
    if planned is None:
        return
    parts, size = planned
    assert size <= TASK_MAX + OWN_BYTES
    answer = measured(name, tmp_path, parts=parts, limit=int(size * RATIO_MAX))
    assert (answer["code"], answer["refusal"]) == (0, None)


@pytest.mark.thorough
@pytest.mark.skipif(not LIMITED, reason="no limit of the address space")
@pytest.mark.parametrize("name", COPIES)
def test_a_copy_takes_what_was_planned(tmp_path: Path, name: str) -> None:
    """2,000 columns took 2.8 times what was planned, 600 columns 3 times."""
    shape = SHAPES[name]
    shape.lay(tmp_path)
    planned = shape.planned(tmp_path)
    assert planned is not None
    nothing, found = measured("nothing", tmp_path), measured(name, tmp_path)
    assert found["peak"] - nothing["peak"] <= RATIO_MAX * planned[1]


@pytest.mark.sampled(3)
@pytest.mark.skipif(not LIMITED, reason="no limit of the address space")
@pytest.mark.parametrize("megabytes", [40, 90])
@pytest.mark.parametrize("name", ["copy of long texts in a dictionary", "long texts"])
def test_a_worker_without_memory_leaves_its_file_to_spark(
    tmp_path: Path, name: str, megabytes: int
) -> None:
    """It raised what Arrow or numpy raise, which names no file and ends the statement."""
    shape = SHAPES[name]
    shape.lay(tmp_path)
    answer = measured(name, tmp_path, limit=megabytes * MEGABYTE)
    assert answer["code"] == 0, answer["refusal"]
    assert "emory" in answer["refusal"]
    assert not list(tmp_path.glob("copy*"))
