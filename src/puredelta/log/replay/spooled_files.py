"""New files of a table, a million of them, without an object or a text in memory for each.

The actions wait as the lines of a commit, packed, in a temporary file. They leave it as bytes for
the commit, or as Arrow columns for the checkpoint, a few thousand at a time.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import IO

import pyarrow as pa

from puredelta.errors import InvalidRequestError, Message
from puredelta.log.files.file_table import FILE_SCHEMA, FileTable
from puredelta.log.files.row_counts import physical_rows
from puredelta.log.replay.action_columns import parse_commit
from puredelta.protocol.actions.action_json import encode_action, parse_action
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.actions.paths import encode_path

_LINES_MAX = 8192
_BYTES_MAX = 8 * 1024 * 1024
"""What is packed together: whichever comes first."""
_IN_MEMORY_MAX_BYTES = 16 * 1024 * 1024
"""More goes to the disk."""
_SOURCE = "the files of a new table"


@dataclass(frozen=True, slots=True)
class _Pack:
    position: int
    packed_bytes: int
    num_bytes: int


class SpooledFiles:
    """New files of one table, each once, in the order in which they are added."""

    def __init__(self) -> None:
        self.num_files = 0
        self.size_bytes = 0
        """Of the data files."""
        self.num_rows: int | None = 0
        """Of the data files; None where one of them does not tell."""
        self.partition_columns: set[frozenset[str]] = set()
        """The columns that files have partition values of: one set, if all is well."""
        self._codec = pa.Codec("lz4")
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY_MAX_BYTES)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._packs: list[_Pack] = []
        self._lines: list[str] = []
        self._length = 0
        self._last_path = ""
        self._values: dict[int, tuple[Mapping[str, str | None], str]] = {}

    @classmethod
    def of(cls, adds: Iterable[Add]) -> SpooledFiles:
        """Spool these actions. The caller guarantees that paths are unique."""
        files = cls()
        for add in adds:
            files.partition_columns.add(frozenset(add.partition_values))
            files._append(encode_action(add) + "\n", add.size_bytes, physical_rows(add))
        return files

    def add(
        self,
        path: str,
        partition_values: Mapping[str, str | None],
        *,
        size_bytes: int,
        modified_ms: int,
        stats: str | None,
        num_rows: int | None,
    ) -> None:
        """Add a file whose rows are new; ``path`` is decoded, relative to the table.

        The mapping is that of all files with these values: its text is made once.

        Raises:
            InvalidRequestError: files do not come in the order of their paths, each once.
        """
        if path <= self._last_path:
            raise InvalidRequestError(
                Message.DUPLICATE_ACTIONS_FOUND_FILES, last_path=self._last_path, path=path
            )
        self._last_path = path
        known = self._values.get(id(partition_values))
        if known is None:
            self.partition_columns.add(frozenset(partition_values))
            members = ",".join(
                f"{encode_basestring(k)}:{'null' if v is None else encode_basestring(v)}"
                for k, v in partition_values.items()
            )
            known = self._values[id(partition_values)] = (partition_values, f"{{{members}}}")
        described = "" if stats is None else f',"stats":{encode_basestring(stats)}'
        self._append(
            f'{{"add":{{"path":{encode_basestring(encode_path(path))},"partitionValues":{known[1]},'
            f'"size":{size_bytes},"modificationTime":{modified_ms},"dataChange":true'
            f"{described}}}}}\n",
            size_bytes,
            num_rows,
        )

    @property
    def commit_bytes(self) -> int:
        """The size of the lines in a commit."""
        return sum(pack.num_bytes for pack in self._packs) + sum(
            len(line.encode()) for line in self._lines
        )

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of the commit, many at once."""
        for pack in self._packs:
            self._file.seek(pack.position)
            packed = self._file.read(pack.packed_bytes)
            yield self._codec.decompress(packed, pack.num_bytes, asbytes=True)
        if self._lines:
            yield "".join(self._lines).encode()

    def tables(self) -> Iterator[FileTable]:
        """Yield the files as Arrow columns, some thousands at once."""
        for content in self.lines():
            actions = list(parse_commit(content, _SOURCE))
            tables = [action for action in actions if isinstance(action, FileTable)]
            adds = [action for action in actions if isinstance(action, Add)]
            if adds:
                tables.append(FileTable.of(adds))
            yield from tables

    def table(self) -> FileTable:
        """Return all files as Arrow columns."""
        tables = [FILE_SCHEMA.empty_table(), *(table.rows for table in self.tables())]
        return FileTable(pa.concat_tables(tables))

    def adds(self) -> Iterator[Add]:
        """Yield the actions, parsed from the spool."""
        for content in self.lines():
            for line in content.splitlines():
                action = parse_action(line)
                if isinstance(action, Add):
                    yield action

    def _append(self, line: str, size_bytes: int, num_rows: int | None) -> None:
        self.num_files += 1
        self.size_bytes += size_bytes
        if self.num_rows is not None:
            self.num_rows = None if num_rows is None else self.num_rows + num_rows
        self._lines.append(line)
        self._length += len(line)
        if len(self._lines) >= _LINES_MAX or self._length >= _BYTES_MAX:
            self._pack()

    def _pack(self) -> None:
        content = "".join(self._lines).encode()
        packed = self._codec.compress(content, asbytes=True)
        position = self._file.seek(0, 2)
        self._file.write(packed)
        self._packs.append(
            _Pack(position=position, packed_bytes=len(packed), num_bytes=len(content))
        )
        self._lines, self._length = [], 0
        self._values.clear()
