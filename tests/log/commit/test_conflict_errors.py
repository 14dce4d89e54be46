from __future__ import annotations

import pytest

from puredelta.errors import ConflictError
from puredelta.log.commit.conflict_errors import conflict_error
from puredelta.log.commit.conflicts import Conflict, ConflictKind, WinningCommit
from puredelta.log.replay.commit_files import Commit
from puredelta.protocol.actions.actions import CommitInfo

WINNER = WinningCommit.of(
    Commit(version=7, modified_ms=0, actions=(CommitInfo(operation="WRITE", txn_id="t"),))
)


@pytest.mark.parametrize("kind", ConflictKind)
def test_every_kind_has_a_text_that_says_who_won_and_what_to_do(kind: ConflictKind) -> None:
    conflict = Conflict(kind=kind, detail="why {so}", files=("a", "b"), partition="[p={1}]")
    error = conflict_error((conflict, conflict), WINNER, table="db.t", read_version=6)
    assert isinstance(error, ConflictError)
    assert "a concurrent WRITE" in error.message
    assert "db.t" in error.message
    assert "had read version 6" in error.message
    assert "run it again: it will see version 7" in error.message
    shown = {text for text in ("why {so}", "in the partition [p={1}]") if text in error.message}
    assert len(shown) == 1
    assert error.details["files"] == ("a", "b")
