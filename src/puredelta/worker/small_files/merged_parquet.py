"""Decodes columns of many small Parquet files as if they were one, inside a Spark worker.

Two columns of a file of a thousand rows are decoded in less time than Arrow takes to open the
file: its footer describes every column, and all that is made of the description is thrown away
again. So files whose schemas are the same, byte by byte, become row groups of one file in memory:
the columns' chunks as they lie in the files, and a footer that describes nothing else. Arrow opens
that file once and decodes it, whatever encodings and codecs are in it.

A file of any other layout is not added; the caller reads it alone.

Trap this module knows: in a footer a column is found by its path (field 3 of ColumnMetaData: a
list of one name) and the header of the codec (field 4), which must follow. As statistics may hold
any bytes, a file in which these occur twice is not added.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing

import pyarrow as pa

from puredelta.worker.files import DataPath
from puredelta.worker.footers.sound_footer import MAGIC
from puredelta.worker.footers.thrift_compact import (
    NEXT_I64,
    NEXT_LIST,
    ONE_STRUCT,
    SECOND_I64,
    STOP,
    ZERO,
    UnsupportedLayoutError,
    i64,
    i64_at,
    i64_of,
    structs,
)
from puredelta.worker.limits import LIMITS
from puredelta.worker.read_rows import OpenFile
from puredelta.worker.small_files.footer_file import FooterFile
from puredelta.worker.small_files.footer_template import NOT_A_FOOTER, FooterTemplate, found_once

_ONE_ROW_GROUP = NEXT_LIST + ONE_STRUCT
_NUMBER = rb"[\x80-\xff]*[\x00-\x7f]"
_SIZES_AND_PLACES = re.compile(
    # Fields 6, 7 and 9 of ColumnMetaData, all of which must be there; and 11, or none that is 10.
    rb"(\x16%b\x16(%b))\x26(%b)(?:\x26(%b)|(?!\x16))" % ((_NUMBER,) * 4)
)
"""How a chunk's description goes on after the number of its values: its sizes, of which the
second says how many bytes are stored; where its data begins, and its dictionary.
"""


class MergedParquet:
    """Chunks of files that are alike, to be decoded together."""

    def __init__(self, template: FooterTemplate, *, rows_max: int = LIMITS.small_file_rows) -> None:
        """``rows_max``: files of more rows are not added."""
        self._template = template
        self._rows_max = rows_max
        self.rows_of_files: list[int] = []
        """How many rows every file has that was added."""
        self.num_rows = 0
        self._row_groups: list[bytes] = []
        self._contents: list[bytes] = [MAGIC]
        self._end = len(MAGIC)

    def add(self, file: FooterFile) -> bool:
        """Add the columns of a file, unless it is unlike the first, or of another layout.

        Raises:
            OSError: it cannot be read.
        """
        try:
            num_rows, rows, groups_at = self._rows_of(file)
            chunks, runs = self._chunks(file.tail, groups_at, rows)
            if any(not len(MAGIC) <= begin <= end <= file.data_end for begin, end in runs):
                return False
            contents = [file.read(begin, end) for begin, end in runs]
        except NOT_A_FOOTER:
            return False
        self._contents += contents
        self._end += sum(map(len, contents))
        self._row_groups.append(_row_group(chunks, rows))
        self.rows_of_files.append(num_rows)
        self.num_rows += num_rows
        return True

    def add_path(self, path: DataPath) -> bool:
        """Open a file and add it, as `add`."""
        file = FooterFile.opened(path)
        if file is None:
            return False
        with closing(file):
            return self.add(file)

    def _rows_of(self, file: FooterFile) -> tuple[int, bytes, int]:
        """Return how many rows a file has, how its footer says so, and where its row group is."""
        template, tail = self._template, file.tail
        rows_at = file.footer_at + len(template.begin)
        if not tail.startswith(template.begin, file.footer_at) or not template.is_ending_of(tail):
            raise UnsupportedLayoutError
        num_rows, groups_at = i64_at(tail, rows_at)
        if not tail.startswith(_ONE_ROW_GROUP, groups_at) or not 0 < num_rows <= self._rows_max:
            raise UnsupportedLayoutError
        return num_rows, tail[rows_at:groups_at], groups_at

    def _chunks(
        self, tail: bytes, start: int, num_values: bytes
    ) -> tuple[list[bytes], list[tuple[int, int]]]:
        """Describe the chunks of a file as if they had been added.

        Return also where they are in the file, those that follow each other as one.
        """
        chunks: list[bytes] = []
        runs: list[tuple[int, int]] = []
        run_begin = end = moved = 0
        merged_end = self._end
        for column in self._template.columns:
            at = found_once(tail, column.path, start)
            known = column.codec + num_values
            found = _SIZES_AND_PLACES.match(tail, at + len(known))
            if found is None or not tail.startswith(known, at):
                raise UnsupportedLayoutError
            sizes, stored, data, dictionary = found.groups()
            begin = data_at = i64_of(data)
            if dictionary is not None and 0 < (dictionary_at := i64_of(dictionary)) < data_at:
                begin = dictionary_at
            if begin != end:
                runs.append((run_begin, end))
                run_begin, merged_end = begin, merged_end + end - run_begin
                moved = merged_end - begin
            end = begin + i64_of(stored)
            places = [SECOND_I64, i64(data_at + moved)]
            if begin < data_at:
                places += [SECOND_I64, i64(begin + moved)]
            chunks.append(b"".join([column.description, num_values, sizes, *places, STOP, STOP]))
        return chunks, [*runs[1:], (run_begin, end)]

    def opened(self) -> OpenFile:
        """Return one file of all that were added. Raises Arrow's errors."""
        return self._template.file_of(self._contents, self._row_groups, self.num_rows)

    def read(self, names: Sequence[str]) -> Iterator[list[pa.Array]]:
        """Yield some of the columns of every file, in the order in which they were added.

        Raises Arrow's errors.
        """
        file = self.opened()
        table = pa.Table.from_batches(
            file.read(max(1, self.num_rows)), file.schema_arrow
        ).combine_chunks()
        if table.num_rows != self.num_rows:
            raise pa.ArrowInvalid(f"{table.num_rows} rows instead of {self.num_rows}")
        whole = [column for name in names for column in table[name].chunks]
        first = 0
        for num_rows in self.rows_of_files:
            yield [column.slice(first, num_rows) for column in whole]
            first += num_rows


def _row_group(chunks: Sequence[bytes], num_rows: bytes) -> bytes:
    """Describe a RowGroup; its size is not read."""
    return b"".join([NEXT_LIST, structs(chunks), NEXT_I64, ZERO, NEXT_I64, num_rows, STOP])
