"""A commit to a catalog-managed table: staged, ratified, published, reported.

1. The content is put under a new name into ``_delta_log/_staged_commits``.
2. The catalog ratifies the name as the next version. From here on the version is committed.
3. Every commit that the catalog still lists is copied to its plain name, oldest first, only where
   no file is there: other clients do the same.
4. The newest of them is reported. A catalog may then forget it, so nothing is reported before its
   copy is there.

Failures of the steps 3 and 4 are not failures of the commit: the next writer repeats them.

A request without an answer is sent again as it was. The content never gets another name before the
catalog has said that the version belongs to another file, because both could be ratified.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from puredelta.catalogs.catalog import (
    LoadedTable,
    RatifiedCommit,
    TableCreation,
    TableKind,
    TableUpdate,
)
from puredelta.catalogs.failures import CatalogRequestError, Refusal
from puredelta.errors import (
    CommitUnknownError,
    CorruptTableError,
    DeltaError,
    InvalidRequestError,
    Message,
)
from puredelta.log.managed.managed_store import ManagedStore, NewManagedTable, behind
from puredelta.protocol.actions.log_paths import commit_name, log_path, staged_name
from puredelta.store.base import PutOutcome

logger = logging.getLogger(__name__)

_WAITS_S = (0.0, 0.1, 0.3, 1.0, 3.0, 5.0)
"""Before each sending of the same request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedCommit:
    """The content of one version, as an attempt has bound it."""

    version: int
    content: bytes = field(repr=False)
    timestamp_ms: int
    """Its in-commit timestamp."""
    update: TableUpdate
    txn_id: str


def ratify(
    store: ManagedStore,
    commit: ManagedCommit,
    *,
    new_id: Callable[[], str],
    sleep: Callable[[float], None],
) -> PutOutcome:
    """Commit one version; ``ALREADY_EXISTS`` means that another writer has it.

    Any exception but `CommitUnknownError` means that the table is as before.

    Raises:
        CommitUnknownError: the catalog did not answer, and may still ratify the commit.
        CatalogRequestError: the catalog refuses the commit for good, or was never reached.
        CorruptTableError: the catalog has lost commits (DELTA_CATALOG_IS_BEHIND).
        OSError: the content could not be staged.
    """
    if _is_lost(store, commit.version):
        return PutOutcome.ALREADY_EXISTS
    store.require_same(commit.version - 1)
    staged = RatifiedCommit(
        version=commit.version,
        timestamp_ms=commit.timestamp_ms,
        file_name=staged_name(commit.version, new_id()),
        size_bytes=len(commit.content),
        modified_ms=commit.timestamp_ms,
    )
    store.files.put_if_absent(staged.path, commit.content)  # a new name: what is there is ours
    return _Ratification(store, commit, staged, sleep).run()


def _is_lost(store: ManagedStore, version: int) -> bool:
    """Return whether the version is published already; then the catalog must know it."""
    if not store.files.exists(log_path(commit_name(version))):
        return False
    table = store.refresh()
    if (table.latest_version or 0) >= version:
        return True
    raise behind(
        table,
        f"its newest version is {table.latest_version}, and version {version} is published",
    )


@dataclass(slots=True)
class _Ratification:
    """One staged commit and its requests."""

    store: ManagedStore
    commit: ManagedCommit
    staged: RatifiedCommit
    sleep: Callable[[float], None]
    failure: CatalogRequestError | None = None
    """The last refusal."""
    may_follow: bool = False
    """Whether a request may have been carried out, or may be later, without an answer."""

    def run(self) -> PutOutcome:
        """Return the outcome; an error says that nothing is committed, or that it is unknown."""
        try:
            return self._settle()
        except CommitUnknownError:
            raise
        except (OSError, DeltaError) as failure:
            if self.may_follow:
                raise self._unknown() from failure
            raise

    def _settle(self) -> PutOutcome:
        """Send the request until its outcome is known."""
        for wait_s in _WAITS_S:
            asked_s = None if self.failure is None else self.failure.retry_after_s
            self.sleep(max(wait_s, asked_s or 0.0))
            outcome = self._send()
            if outcome is not None:
                return outcome
        outcome = self._find_outcome()
        if outcome is not None:
            return outcome
        if self.failure is not None and not self.may_follow:
            raise self.failure
        raise self._unknown()

    def _send(self) -> PutOutcome | None:
        """Send the request once; None if it should be sent again."""
        store = self.store
        try:
            table = store.catalog.ratify(store.table, self.staged, self.commit.update)
        except CatalogRequestError as failure:
            return self._refused(failure)
        return self._done(table)

    def _refused(self, failure: CatalogRequestError) -> PutOutcome | None:
        self.failure = failure
        match failure.refusal:
            case Refusal.NO_ANSWER:
                self.may_follow = self.may_follow or failure.may_be_done
                return None
            case Refusal.TOO_MANY_COMMITS:
                publish_quietly(self.store, self.store.refresh())
                return None
            case Refusal.VERSION_TAKEN:
                self.may_follow = True  # a program on the way may have sent our request twice
                return self._find_outcome()
            case Refusal.CHANGED:
                return self._find_outcome()
            case _:
                outcome = self._find_outcome() if self.may_follow else None
        if outcome is None:
            raise failure
        return outcome

    def _done(self, table: LoadedTable) -> PutOutcome:
        """The commit is ratified: nothing that follows can undo it, so nothing raises."""
        self.store.note_content(self.commit.version, self.commit.content)
        try:
            self.store.accept(table, floor=self.commit.version)
        except DeltaError as problem:
            logger.warning(
                "Version %d of %s is committed, but the catalog's answer is odd: %s",
                self.commit.version,
                table.name,
                problem,
            )
        else:
            publish_quietly(self.store, table)
        return PutOutcome.CREATED

    def _find_outcome(self) -> PutOutcome | None:
        """Return the owner of the version by what the catalog says; None while it has none."""
        try:
            table = self.store.refresh()
        except CatalogRequestError as failure:
            if failure.refusal is not Refusal.NO_ANSWER:
                raise
            return None
        version = self.commit.version
        if (table.latest_version or 0) < version:
            return None
        listed = next((c for c in table.commits if c.version == version), None)
        if listed is not None:
            is_ours = listed.file_name == self.staged.file_name
        else:  # published and forgotten: the copy has the same bytes
            is_ours = self._published_content() == self.commit.content
        return self._done(table) if is_ours else PutOutcome.ALREADY_EXISTS

    def _published_content(self) -> bytes:
        path = log_path(commit_name(self.commit.version))
        try:
            return self.store.files.read(path)
        except OSError as failure:
            raise self._unknown() from failure

    def _unknown(self) -> CommitUnknownError:
        version, name = self.commit.version, self.store.table.name
        return CommitUnknownError(
            Message.COMMIT_STATE_UNKNOWN_RATIFIED,
            table=name,
            version=version,
            txn_id=self.commit.txn_id,
            path=self.staged.path,
        )


def publish(store: ManagedStore, table: LoadedTable) -> None:
    """Copy every commit that the catalog lists to its plain name, in order, and report them.

    Safe to repeat and to race: a copy is made only where no file is there.

    Raises:
        CorruptTableError: a plain file holds another commit than the ratified one, or a staged
            file has another size.
        OSError, CatalogRequestError: a copy or the report failed; later commits are not copied.
    """
    for commit in table.commits:
        if commit.version > store.published:
            _publish_one(store, commit)
            store.mark_published(commit.version)
    if table.commits:
        store.catalog.report_published(table, table.commits[-1].version)


def _publish_one(store: ManagedStore, commit: RatifiedCommit) -> None:
    path = log_path(commit_name(commit.version))
    content = store.read_staged(commit)
    created = store.files.put_if_absent(path, content)
    if created is not PutOutcome.CREATED and store.files.read(path) != content:
        raise CorruptTableError(
            Message.CATALOG_IS_BEHIND_OTHER_COMMIT,
            file_name=commit.file_name,
            path=f"{store.root_uri}/{path}",
            version=commit.version,
        )
    store.note_plain(commit.version)


def publish_quietly(store: ManagedStore, table: LoadedTable) -> None:
    """Publish; a failure is logged, because commits are safe without it."""
    try:
        publish(store, table)
    except (OSError, DeltaError) as failure:
        logger.warning(
            "Commits of %s are ratified, but not all are published yet; the next writer publishes "
            "them: %s",
            table.name,
            failure,
        )


def create_managed(
    store: ManagedStore,
    new: NewManagedTable,
    commit: ManagedCommit,
    *,
    sleep: Callable[[float], None],
) -> None:
    """Write version 0 as a plain file, then make the table known.

    Raises:
        InvalidRequestError: the name was taken meanwhile (TABLE_OR_VIEW_ALREADY_EXISTS).
        CommitUnknownError: the catalog did not answer, and may still create the table.
        CatalogRequestError: the catalog refuses the definition, or was never reached.
    """
    store.files.put_if_absent(log_path(commit_name(commit.version)), commit.content)
    creation = TableCreation(
        name=new.name,
        kind=TableKind.MANAGED,
        location=new.staged.stated_location,
        definition=commit.update,
        timestamp_ms=commit.timestamp_ms,
    )
    last: DeltaError | None = None
    may_follow = False
    for wait_s in _WAITS_S:
        sleep(wait_s)
        try:
            created = store.catalog.create(creation)
        except CatalogRequestError as failure:
            last = failure
            is_unanswered = failure.refusal is Refusal.NO_ANSWER
            may_follow = may_follow or (is_unanswered and failure.may_be_done)
            if not (may_follow or is_unanswered):
                is_taken = failure.refusal is Refusal.EXISTS
                raise (_taken(new) if is_taken else failure) from None
            if may_follow and _is_created(store, new):
                return
            continue
        try:
            store.accept(created, floor=-1)
        except DeltaError as odd:  # it is created all the same: its files must stay
            last, may_follow = odd, True
            break
        return
    if last is not None and not may_follow:
        raise last
    raise CommitUnknownError(
        Message.COMMIT_STATE_UNKNOWN_NEW_TABLE,
        table=new.name,
        version=commit.version,
        txn_id=commit.txn_id,
        path=new.staged.location,
    ) from last


def _is_created(store: ManagedStore, new: NewManagedTable) -> bool:
    """Return whether an unanswered creation is done.

    Raises:
        InvalidRequestError: a table of another id has the name.
    """
    try:
        table = store.catalog.load(new.name)
    except CatalogRequestError:
        return False
    if table.table_id != new.staged.table_id:
        raise _taken(new)
    store.accept(table, floor=-1)
    return True


def _taken(new: NewManagedTable) -> InvalidRequestError:
    return InvalidRequestError(Message.TABLE_OR_VIEW_ALREADY_EXISTS_MEANWHILE, name=str(new.name))
