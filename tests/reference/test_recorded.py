"""Writes, streams and statements leave the same history on delta-spark and in an activated session.

Each runs in a process of its own: a session with delta-spark's JAR is not activated.
"""

from __future__ import annotations

import pytest

from tests.reference.recorded import BLOCKS
from tests.reference.test_everyday import printed


@pytest.mark.parametrize("block", BLOCKS)
def test_the_same_is_recorded(block: str) -> None:
    pytest.importorskip("delta", reason="delta-spark is installed by `make reference`")
    theirs, ours = (printed(engine, block, program="recorded") for engine in ("delta", "puredelta"))
    labels = list(dict.fromkeys(f"{block}: {label}" for label, _ in BLOCKS[block]))
    assert list(ours) == list(theirs) == labels
    assert ours == theirs
