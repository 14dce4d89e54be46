"""A sample of ``make fuzz``, and what takes memory: bombs, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz import checkpoints
from tests.fuzz.bombs import BOMBS
from tests.fuzz.logs import FORMS, any_log, valid_log
from tests.fuzz.mutations import mutated
from tests.fuzz.outcome import outcome

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("form", FORMS)
def test_a_log_that_nobody_changed_is_read(form: str) -> None:
    assert outcome(valid_log(form)).startswith("read")


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_a_mutated_log_is_read_rightly_or_refused(random: Random) -> None:
    assert outcome(mutated(any_log(random), random))


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from((*checkpoints.CHECKED, *checkpoints.UNCHECKED)),
    st.randoms(use_true_random=False),
)
def test_a_damaged_checkpoint_gives_the_same_state_or_is_refused(form: str, random: Random) -> None:
    assert checkpoints.outcome(form, random)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", BOMBS)
def test_memory_is_bounded_by_the_size_of_the_input(name: str) -> None:
    """The process measures itself, and ends at 4 GiB whatever happens."""
    command = [sys.executable, "-m", "tests.fuzz.bombs", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
