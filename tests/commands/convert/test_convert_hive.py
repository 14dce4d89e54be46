"""C-02, C-08: CONVERT of tables of the catalog, in Hive's metastore."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.connect_session import answers_of


def require_all(root: Path, amount: str, more_than: int) -> None:
    answers = answers_of("tests.commands.convert.hive_checks", root, amount)
    assert len(answers["checks"]) > more_than
    assert not answers["failed"], "\n\n".join(answers["failed"].values())


@pytest.mark.spark
def test_c_02_in_a_metastore(tmp_path: Path) -> None:
    """What depends on how Hive stores an entry."""
    require_all(tmp_path, "sample", 2)


@pytest.mark.spark
@pytest.mark.thorough
def test_c_02_everything_in_a_metastore(tmp_path: Path) -> None:
    require_all(tmp_path, "every", 25)
