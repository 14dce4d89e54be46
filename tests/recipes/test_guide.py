"""The examples of the guide run, in their order, and what they assert is true."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark.sql import SparkSession

GUIDE = Path(__file__).parents[2] / "docs" / "upserts.md"


def test_the_guide(spark: SparkSession, tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) > 5
    names: dict[str, object] = {"spark": spark}
    for block in blocks:
        exec(block.replace('"/data/', f'"{tmp_path}/'), names)
