"""What is gone from a log that a stream still needs."""

from __future__ import annotations

from puredelta.errors import CorruptTableError, ErrorCode


def commit_missing(root_uri: str, wanted: int, found: int) -> CorruptTableError:
    """Say that commits are gone that were not delivered."""
    return CorruptTableError(
        f"The stream from your Delta table was expecting to process data from version "
        f"{wanted}, but the earliest available version in the _delta_log directory is {found}. "
        "The files in the transaction log may have been deleted due to log cleanup. Begin with "
        "a fresh checkpoint directory, or set the option 'failOnDataLoss' to 'false' to "
        f"continue, which loses the rows between. The table is {root_uri}.",
        code=ErrorCode.MISSING_FILES_UNEXPECTED_VERSION,
        version=wanted,
        earliest=found,
    )


def start_gone(root_uri: str, version: int, why: str) -> CorruptTableError:
    """Say that the version with which a stream began cannot be read any more."""
    return CorruptTableError(
        f"If you never deleted it, it's likely your query is lagging behind: version {version} "
        f"of {root_uri}, with which the stream began, cannot be read now ({why}). "
        "Please delete its checkpoint to restart from scratch.",
        code=ErrorCode.LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE,
        version=version,
    )
