"""The end of every command: one commit, its hooks, and cleanup after a failure.

Only this module commits a transaction, so all operations leave the same values in the history:
the user's metadata, the operation metrics if they are wanted, the application's version.

The creation of the commit file divides the module. A failure before it removes the data files, and
the table is unchanged. After it the commit is final: later failures are logged, never raised, and
no file is removed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from puredelta.catalogs.catalog import CommittedVersion, name_of_address
from puredelta.commands.command import Command, PostCommitHook
from puredelta.commands.dependent_rules import require_harmless_change
from puredelta.commands.generate import update_manifests
from puredelta.errors import CommitUnknownError, DeltaError
from puredelta.iceberg.entry import export_log
from puredelta.log.commit.commit_request import CommitRequest, Committed
from puredelta.log.commit.post_commit import CheckpointWish, write_due_checkpoint
from puredelta.log.managed.table_update import table_update
from puredelta.protocol.actions.actions import (
    Action,
    Add,
    AddChangeFile,
    Metadata,
    Remove,
)
from puredelta.protocol.actions.paths import path_below_root
from puredelta.protocol.table.iceberg_compat import ICEBERG
from puredelta.spark.catalog.catalog_entries import follow_named_entry
from puredelta.spark.catalog.relation_cache import refresh_cached_frames
from puredelta.spark.session.catalogs import require_catalog
from puredelta.spark.session.types import to_spark
from puredelta.spark.write.parquet_job import named_failures

logger = logging.getLogger(__name__)


@contextmanager
def discarded_on_failure(discard: Callable[[], None]) -> Iterator[None]:
    """Commit files in the block; if it fails, ``discard`` them and raise again.

    The files stay if the commit may have succeeded: its outcome is unknown, or it was
    interrupted. An extra file is harmless, a missing one is lost data.
    """
    try:
        yield
    except CommitUnknownError:
        raise
    except Exception:
        discard()
        raise


def remove_quietly(remove: Callable[[], None]) -> None:
    """Remove files; those that cannot be removed are left for VACUUM, without an error."""
    try:
        remove()
    except (OSError, DeltaError) as failure:
        logger.warning("Files of a command could not be removed: %s", failure)


def finish(
    command: Command,
    request: CommitRequest,
    *,
    discard: Callable[[], None] | None = None,
    checkpoint: CheckpointWish = CheckpointWish.AT_INTERVAL,
) -> Committed:
    """Commit the prepared actions of a command, refresh cached frames, and run the command's hooks.

    The command's application id, user metadata and metrics are added here. ``discard`` removes
    the data files of the command; it is called if the commit is known to have failed. New data
    files are flushed before the commit names them.
    """
    with discarded_on_failure(discard or _nothing):
        if discard is not None and command.settings.flushes_files:
            _flush_new_files(command, request)
        committed = _commit(command, request)
    write_due_checkpoint(command.log, committed, wish=checkpoint, environment=command.environment)
    for hook in (*_HOOKS, *command.hooks):
        _run(hook, command, committed)
    return committed


def _commit(command: Command, request: CommitRequest) -> Committed:
    require_harmless_change(request.actions, command.existing, command.session.settings)
    settings = command.settings
    marks = () if settings.set_transaction is None else (settings.set_transaction,)
    recorded = settings.records_metrics or request.always_records_metrics
    now_ms = command.clock()
    whole = replace(
        request,
        actions=(*(_stamped(action, now_ms) for action in request.actions), *marks),
        metrics=request.metrics if recorded else None,
        user_metadata=settings.user_metadata,
    )
    return command.transaction.commit(whole)


def _stamped(action: Action, now_ms: int) -> Action:
    """Give a tombstone the time of the commit, from which VACUUM counts."""
    if isinstance(action, Remove) and action.deleted_ms is None:
        return replace(action, deleted_ms=now_ms)
    return action


def _flush_new_files(command: Command, request: CommitRequest) -> None:
    """Make new files durable before a commit names them; files that only get a vector are old."""
    removed = {action.path for action in request.actions if isinstance(action, Remove)}
    named = (
        path_below_root(command.log.root_uri, action.path)
        for action in request.actions
        if isinstance(action, Add | AddChangeFile) and action.path not in removed
    )
    with named_failures(command.log.root_uri):
        command.log.store.flush([path for path in named if path is not None])


def _run(hook: PostCommitHook, command: Command, committed: Committed) -> None:
    """Run a hook after the commit; its failure does not affect the commit."""
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
    """Refresh cached frames, unless the commit changed neither files nor metadata."""
    if any(isinstance(action, Add | Remove | Metadata) for action in committed.actions):
        refresh_cached_frames(command.spark, command.log)


def _follow_in_catalog(command: Command, committed: Committed) -> None:
    """Let the catalog entry of a table show its newest columns.

    A catalog that ratifies commits has learned of them with the commit.
    """
    name = name_of_address(command.log.address)
    is_changed = any(isinstance(action, Metadata) for action in committed.actions)
    if command.log.managed is not None or not is_changed:
        return
    before = None if command.existing is None else command.existing.config
    if name is None:
        if before is not None and before.schema != committed.config.schema:
            columns = to_spark(committed.config.schema)
            follow_named_entry(command.spark, command.log.address, columns)
        return
    update = table_update(before, committed.config, committed.actions)
    at = CommittedVersion(
        location=command.log.root_uri,
        version=committed.version,
        timestamp_ms=committed.timestamp_ms,
    )
    require_catalog(command.spark, name.catalog).follow(name, update, at)


def _follow(command: Command, committed: Committed) -> None:
    """Update symlink manifests, repeatedly if other commits follow meanwhile.

    Another writer may have written manifests before this commit, without its files.
    """
    changes_files = any(isinstance(action, Add | Remove) for action in committed.actions)
    if not committed.config.properties.symlink_manifests or not changes_files:
        return
    for _ in range(_MANIFEST_TRIES_MAX):
        snapshot = command.log.snapshot()
        update_manifests(command.log.store, snapshot, committed.actions)
        if command.log.latest_version() == snapshot.version:
            return


def _warn_readers(command: Command, committed: Committed) -> None:
    """Warn that metadata of another format (UniForm without a table feature) is outdated."""
    formats = [name for name in committed.config.properties.universal_formats if name != ICEBERG]
    if formats:
        logger.warning(
            "Version %d of %s is committed, but its metadata for %r is not written, which the "
            "property delta.universalFormat.enabledFormats asks for: readers of that format see "
            "an older version. Let delta-spark write it, or unset the property.",
            committed.version,
            command.log.root_uri,
            ", ".join(formats),
        )


def _export(command: Command, committed: Committed) -> None:
    """Export the newest version to Iceberg, with those that an earlier failure left out."""
    properties = committed.config.properties
    if properties.iceberg_export or ICEBERG in properties.universal_formats:
        export_log(command.log)


def _reset(command: Command, _: Committed) -> None:
    command.settings.reset_set_transaction(command.spark)


def _nothing() -> None:
    """Remove nothing: the commit names no new data file."""


_MANIFEST_TRIES_MAX = 5
_CATALOG_ENTRY = PostCommitHook(name="update of the catalog entry", run=_follow_in_catalog)
_MANIFESTS = PostCommitHook(name="update of symlink manifests", run=_follow)
_OTHER_FORMATS = PostCommitHook(name="warning about other formats", run=_warn_readers)
_SET_TRANSACTION = PostCommitHook(name="reset of txnVersion", run=_reset)
_CACHED_FRAMES = PostCommitHook(name="refresh of cached frames", run=_refresh)
_ICEBERG = PostCommitHook(name="export to Iceberg", run=_export)
_HOOKS = (
    _SET_TRANSACTION,
    _CACHED_FRAMES,
    _CATALOG_ENTRY,
    _MANIFESTS,
    _OTHER_FORMATS,
    _ICEBERG,
)
"""After every commit, in this order."""
