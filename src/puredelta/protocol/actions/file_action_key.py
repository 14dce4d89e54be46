"""What tells the files of a table apart: the path and the deletion vector (X-31, X-81).

Writers spell one path in several ways, so paths are compared in their canonical form. A file
whose deletion vector changes is another logical file, because other rows of it count. Rules
about the physical file, such as conflicts between commits, use the canonical path alone.
"""

from __future__ import annotations

from typing import NamedTuple

from puredelta.protocol.actions.actions import FileAction
from puredelta.protocol.actions.paths import CanonicalPath, canonical_path

VECTOR_SEPARATOR = "\0"
"""Stands between path and deletion vector in `FileActionKey.encoded`; no path has it."""


class FileActionKey(NamedTuple):
    """The identity of a logical file: two actions with equal keys are about the same file.

    A named tuple, because replaying a log makes and hashes one for every action.
    """

    path: CanonicalPath
    vector_id: str | None
    """`DeletionVectorDescriptor.unique_id`; ``None`` for a file without a deletion vector."""

    @classmethod
    def of(cls, action: FileAction) -> FileActionKey:
        """Return the key of the file that an action adds or removes."""
        vector = action.deletion_vector
        return cls(canonical_path(action.path), None if vector is None else vector.unique_id)

    @property
    def encoded(self) -> str:
        """The key as one text, for columns of keys; equal texts mean equal keys.

        Escaped bytes in a path need not be UTF-8, which Arrow cannot hold: they are written
        with backslashes.
        """
        path: str = self.path
        if not path.isascii():
            path = path.encode("utf-8", "backslashreplace").decode()
        return path if self.vector_id is None else f"{path}{VECTOR_SEPARATOR}{self.vector_id}"
