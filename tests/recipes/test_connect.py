"""The same calls over Spark Connect, beside the same models."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.connect_session import ask


@pytest.mark.upserts
def test_recipes_over_connect(tmp_path: Path) -> None:
    assert ask("tests.recipes.connect_recipes", tmp_path) == {
        "refused": "SOURCE_KEY_NOT_UNIQUE",
        "diff": True,
        "blame": 0,
    }
