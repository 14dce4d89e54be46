"""Files in which keys are looked up, as they reach a task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from puredelta.worker.lookup.lookup_request import FileLookup, LookupBatch


def batch_of(files: Sequence[FileLookup]) -> LookupBatch:
    """Return files in columns."""
    return LookupBatch(
        ordinals=np.array([file.ordinal for file in files], np.int32),
        paths=[file.path for file in files],
        constants=[file.constants for file in files],
        deleted={file.ordinal: (file.words, file.bits) for file in files if file.words},
    )
