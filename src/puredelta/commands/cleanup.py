"""What happens to written files when their commit fails."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from puredelta.errors import CommitUnknownError, DeltaError

logger = logging.getLogger(__name__)


@contextmanager
def discarded_on_failure(discard: Callable[[], None]) -> Iterator[None]:
    """Commit files inside; where that fails, ``discard`` them and raise again.

    They stay where the commit may have landed: its outcome is unknown, or somebody
    interrupted it. A file too many is harmless, a missing one is data lost.
    """
    try:
        yield
    except CommitUnknownError:
        raise
    except Exception:
        discard()
        raise


def remove_quietly(remove: Callable[[], None]) -> None:
    """Remove files; what cannot be removed is left for VACUUM and must hide no other error."""
    try:
        remove()
    except (OSError, DeltaError) as failure:
        logger.warning("Files of a command could not be removed: %s", failure)
