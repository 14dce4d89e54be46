"""Commit files: newline-delimited JSON, one action a line (section "Delta Log Entries")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from puredelta.errors import CorruptTableError, Message
from puredelta.protocol.actions.action_json import parse_action
from puredelta.protocol.actions.actions import Action, CommitInfo, Metadata
from puredelta.store.base import Store

_COMMIT_INFO_KEY = b'"commitInfo"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One version as it was written. ``actions`` keeps the order of the file."""

    version: int
    modified_ms: int
    actions: tuple[Action, ...]

    @property
    def commit_info(self) -> CommitInfo | None:
        """Provenance; by protocol the first action where in-commit timestamps are enabled."""
        return next((a for a in self.actions if isinstance(a, CommitInfo)), None)

    @property
    def metadata(self) -> tuple[Metadata, ...]:
        """The metadata actions: one or none in a valid log."""
        return tuple(a for a in self.actions if isinstance(a, Metadata))


def read_actions(store: Store, path: str) -> list[Action]:
    """Read every action of a commit, compaction or JSON checkpoint file.

    Unknown kinds of action are left out, as the protocol asks.
    """
    return list(parse_actions(read_log_file(store, path), f"{store.root_uri}/{path}"))


def parse_actions(content: bytes, source: str) -> Iterator[Action]:
    """Parse the lines of a commit file; ``source`` names it in errors. Blank lines are skipped."""
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line or line.isspace():
            continue
        try:
            action = parse_action(line)
        except CorruptTableError as error:
            raise CorruptTableError(
                f"{source}, line {number}: {error.message}",
                code=error.code,
                **{**error.details, "path": source, "line_number": number},
            ) from error
        if action is not None:
            yield action


def read_commit_info(store: Store, path: str) -> CommitInfo | None:
    """Read the provenance of a commit alone: the file may have megabytes of adds."""
    content = read_log_file(store, path)
    for number, line in enumerate(content.split(b"\n"), start=1):
        if _COMMIT_INFO_KEY in line:
            for action in parse_actions(line, f"{store.root_uri}/{path}, line {number}"):
                if isinstance(action, CommitInfo):
                    return action
    return None


def read_log_file(store: Store, path: str) -> bytes:
    """Read a file that was listed.

    Raises:
        CorruptTableError: it was removed, by a clean-up or by hand (DELTA_LOG_FILE_NOT_FOUND).
    """
    try:
        return store.read(path)
    except FileNotFoundError as error:
        raise log_file_not_found(store, path) from error


def log_file_not_found(store: Store, path: str) -> CorruptTableError:
    """Build the error for a file of the log that should be there."""
    return CorruptTableError(
        Message.LOG_FILE_NOT_FOUND_READ,
        root_uri=store.root_uri,
        path_shown=path,
        path=f"{store.root_uri}/{path}",
    )
