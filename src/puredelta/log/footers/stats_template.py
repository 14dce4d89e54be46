"""The statistics of files of one kind as one text with gaps, which a footer's numbers fill.

Nearly every file of a directory has all bounds of all columns, so that only they differ. A file
that lacks one, or has a column of NULLs alone, is encoded column by column instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import TypeAlias

from puredelta.log.footers.leaf_plan import LeafPlan
from puredelta.log.footers.leaf_values import Decode, is_text, is_whole_number
from puredelta.protocol.table.stats import encode_maximum, encode_minimum, statistics_object
from puredelta.worker.footers.chunk_shapes import Found, Raw

_Texts: TypeAlias = "Callable[[Raw, Raw], tuple[str, str] | None]"
"""Minimum and maximum as JSON; ``None`` if one has none."""

_GAP = "%s"


@dataclass(frozen=True, slots=True)
class StatsTemplate:
    """``add.stats`` of files of one row group whose columns are no structs, arrays or maps."""

    text: str
    leaves: tuple[int, ...]
    """The chunks of the columns, in their order."""
    bounded: tuple[tuple[int, _Texts | None], ...]
    """The chunks that have bounds, and how these are written; ``None``: as they are."""

    @classmethod
    def of(
        cls,
        plans: Sequence[LeafPlan],
        names: Sequence[str],
        *,
        prefix_length: int,
        tight_bounds: bool | None,
    ) -> StatsTemplate | None:
        """Return the template of columns; ``names`` are JSON. ``None`` if one is in no chunk."""
        if any(plan.absent or plan.nested for plan in plans):
            return None
        members = [f"{name.replace('%', '%%')}:{_GAP}" for name in names]
        bounds = []
        bounded = []
        for plan, member in zip(plans, members, strict=True):
            if plan.decode is not None and not plan.might_contain_nan:
                bounds.append(member)
                bounded.append((plan.leaves.start, _texts(plan.decode, prefix_length)))
        text = statistics_object(
            _GAP,
            minimum=",".join(bounds),
            maximum=",".join(bounds),
            null_count=",".join(members),
            tight_bounds=tight_bounds,
        )
        return cls(text, tuple(plan.leaves.start for plan in plans), tuple(bounded))

    def fill(self, num_rows: int, chunks: Sequence[Found]) -> str | None:
        """Return the statistics of a file; ``None`` if it does not fill every gap."""
        nulls = [chunks[leaf][1] for leaf in self.leaves]
        if None in nulls or num_rows in nulls:
            return None
        lows: list[Raw | str] = []
        highs: list[Raw | str] = []
        for leaf, texts in self.bounded:
            _, _, low, high = chunks[leaf]
            if low is None or high is None:
                return None
            if texts is None:
                lows.append(low)
                highs.append(high)
            elif (pair := texts(low, high)) is not None:
                lows.append(pair[0])
                highs.append(pair[1])
            else:
                return None
        return self.text % (num_rows, *lows, *highs, *nulls)


def _texts(decode: Decode, prefix_length: int) -> _Texts | None:
    def bounds(low: Raw, high: Raw) -> tuple[str, str] | None:
        minimum, maximum = decode(low, high)
        least = encode_minimum(minimum, prefix_length)
        greatest = encode_maximum(maximum, prefix_length)
        return None if least is None or greatest is None else (least, greatest)

    def short_texts(low: Raw, high: Raw) -> tuple[str, str] | None:
        if not isinstance(low, bytes) or not isinstance(high, bytes):
            return None
        is_short = len(low) <= prefix_length and len(high) <= prefix_length
        if is_short and low.isascii() and high.isascii():
            return encode_basestring(low.decode()), encode_basestring(high.decode())
        return bounds(low, high)

    if is_whole_number(decode):
        return None
    return short_texts if is_text(decode) else bounds
