"""The bytes that texts of a source take, decoded: what a worker has to hold of them.

Footers say it of values that are stored one after the other. Of dictionaries, and of texts that are
stored by their difference, they say less than there is: such columns are decoded, a batch at a
time. So are nested columns, and the rows of parts, because long texts may be close together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from puredelta.spark.scan.data_file import DataFile
from puredelta.worker.lookup.lookup_read import SourcePart, is_text
from puredelta.worker.read_rows import OpenFile

_BATCH_ROWS = 65_536

_Bytes: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTexts:
    """The texts in the files of a source."""

    files: Sequence[DataFile]
    stored: Mapping[str, Sequence[int | None]]
    """Bytes according to the footer of each file, or ``None``, by column inside the files."""
    open_file: Callable[[DataFile], BinaryIO]

    def largest_part(self, names: Sequence[str], *, parts: int = 1, bytes_max: int) -> int:
        """Return the bytes of some columns in the part of the source with most of them.

        ``parts`` are those of `SourcePart`. Reading stops at more than ``bytes_max`` in all. An
        unreadable text counts as that many.
        """
        total: _Bytes = np.zeros(parts, np.int64)
        unknown: list[tuple[DataFile, list[str]]] = []
        for number, file in enumerate(self.files):
            known = {name: self._known_bytes(name, number) for name in names}
            if parts == 1:
                total += sum(size for size in known.values() if size is not None)
                known = {name: size for name, size in known.items() if size is None}
            if known:
                unknown.append((file, list(known)))
        try:
            for file, columns in unknown:
                total = self._with_decoded(file, columns, total, bytes_max)
        except (OSError, pa.ArrowException):
            return bytes_max + 1
        return bytes_max + 1 if total.sum() > bytes_max else int(total.max())

    def _known_bytes(self, name: str, number: int) -> int | None:
        stored = self.stored.get(name)
        return None if stored is None else stored[number]

    def _with_decoded(
        self, file: DataFile, names: Sequence[str], total: _Bytes, bytes_max: int
    ) -> _Bytes:
        """Add the bytes of some columns of a file to those of each part."""
        total = total.copy()
        with self.open_file(file) as opened:
            source = OpenFile(pa.PythonFile(opened, mode="r"))
            num_rows, begin = source.metadata.num_rows, 0
            parts = [SourcePart(number=n, count=len(total)) for n in range(len(total))]
            spans = [part.rows(num_rows) for part in parts]
            for batch in source.read(_BATCH_ROWS, leaves=source.leaves_of(names)):
                lengths = _lengths(batch)
                for part, (start, stop) in enumerate(spans):
                    total[part] += lengths[max(0, start - begin) : max(0, stop - begin)].sum()
                begin += batch.num_rows
                if total.sum() > bytes_max:
                    break
        return total


def _lengths(batch: pa.RecordBatch) -> _Bytes:
    """Return the bytes of the texts of each row, and its share of nested columns."""
    lengths: _Bytes = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        if pa.types.is_nested(column.type) and len(column):
            lengths += -(-column.nbytes // len(column))
            continue
        texts = (
            column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        )
        if is_text(texts.type):
            lengths += pc.binary_length(texts).fill_null(0).to_numpy(zero_copy_only=False)
    return lengths
