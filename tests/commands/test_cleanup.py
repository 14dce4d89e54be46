"""Written files whose commit does not come to its end."""

from __future__ import annotations

import pytest

from puredelta.commands.finish import discarded_on_failure
from puredelta.errors import CommitUnknownError, ConflictError, ErrorCode


@pytest.mark.parametrize(
    ("failure", "discarded"),
    [
        (ConflictError("a rival won", code=ErrorCode.CONCURRENT_APPEND), 1),
        (OSError("disk full"), 1),
        (CommitUnknownError("no answer", code=ErrorCode.COMMIT_STATE_UNKNOWN), 0),
        (KeyboardInterrupt(), 0),  # the commit file may be there already
    ],
    ids=lambda value: type(value).__name__,
)
def test_files_go_unless_a_version_may_name_them(failure: BaseException, discarded: int) -> None:
    calls: list[str] = []
    with pytest.raises(type(failure)), discarded_on_failure(lambda: calls.append("discarded")):
        raise failure
    assert len(calls) == discarded
