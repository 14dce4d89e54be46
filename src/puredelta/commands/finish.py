"""The end of every command: one commit, and what follows it.

Here alone a transaction is committed, so every operation says the same things in the history:
the user's metadata, the operation metrics if they are wanted, the application's version.

The moment the store has created the commit file divides the module. Before it, a failure
removes the data files and the table is as it was. After it the commit stands: whatever fails
then is logged, never raised, and no file is removed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from puredelta.commands.cleanup import discarded_on_failure
from puredelta.commands.command import Command, PostCommitHook
from puredelta.log.commit.commit_request import CommitRequest
from puredelta.log.commit.transaction import CheckpointWish, Committed
from puredelta.protocol.actions.actions import Add, Metadata, Remove
from puredelta.spark.catalog.cached_frames import refresh_cached_frames

logger = logging.getLogger(__name__)


def finish(
    command: Command,
    request: CommitRequest,
    *,
    discard: Callable[[], None] | None = None,
    checkpoint: CheckpointWish = CheckpointWish.AT_INTERVAL,
) -> Committed:
    """Commit what a command has prepared, refresh cached frames, and run the command's hooks.

    The command's application id, user metadata and choice of metrics are put in here.
    ``discard`` removes the data files; it is called where the commit is known not to stand.

    Raises:
        ConflictError: another writer's commit and this one cannot both stand.
        InvalidRequestError: the actions would break the table.
        CommitUnknownError: the store does not say whether the commit landed; files are kept.
        OSError: the store failed before anything was written.
    """
    with discarded_on_failure(discard or _nothing):
        committed = _commit(command, request, checkpoint)
    for hook in (_CACHED_FRAMES, *command.hooks):
        _run(hook, command, committed)
    return committed


def _commit(command: Command, request: CommitRequest, checkpoint: CheckpointWish) -> Committed:
    settings = command.settings
    marks = () if settings.set_transaction is None else (settings.set_transaction,)
    whole = replace(
        request,
        actions=(*request.actions, *marks),
        metrics=request.metrics if settings.records_metrics else None,
        user_metadata=settings.user_metadata,
    )
    return command.transaction.commit(
        whole.actions,
        whole.operation,
        metrics=whole.metrics,
        is_blind_append=whole.is_blind_append,
        user_metadata=whole.user_metadata,
        tags=whole.tags,
        if_created=whole.if_created,
        checkpoint=checkpoint,
    )


def _run(hook: PostCommitHook, command: Command, committed: Committed) -> None:
    """Run what follows a commit; the commit stands whatever happens here."""
    try:
        hook.run(command, committed)
    except Exception as error:
        logger.warning(
            "Version %d of %s is committed, but the %s after it failed: %s",
            committed.version,
            command.log.root_uri,
            hook.name,
            error,
            exc_info=True,
        )


def _refresh(command: Command, committed: Committed) -> None:
    """Let cached frames show the new version; a commit that changes no table leaves them alone."""
    if any(isinstance(action, Add | Remove | Metadata) for action in committed.actions):
        refresh_cached_frames(command.spark, command.log)


def _nothing() -> None:
    """Remove nothing: the commit names no new data file."""


_CACHED_FRAMES = PostCommitHook(name="refresh of cached frames", run=_refresh)
