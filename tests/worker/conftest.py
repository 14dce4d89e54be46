from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq
import pytest


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What Arrow opens: paths, and files in memory."""
    sources: list[object] = []

    class Noting(pq.ParquetReader):  # type: ignore[misc]
        def open(self, source: object, **options: Any) -> Any:
            sources.append(source)
            return super().open(source, **options)

    monkeypatch.setattr(pq, "ParquetReader", Noting)
    return sources
